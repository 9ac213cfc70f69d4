"""The registry: charts x references x conditioners x layers x dimensions x starts. Every property test takes each entry."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow.flow.chart import Log, Logit, Power
from fokkerflow.flow.config import Network
from fokkerflow.flow.flow import Flow, weights
from fokkerflow.flow.presets import anchored, paper
from fokkerflow.flow.reference import TruncatedGamma
from fokkerflow.flow.sampling import exact_draw
from fokkerflow.flow.start import Condition
from fokkerflow.sde.model import SDE
from fokkerflow.sde.models import BDFS, CIR, Heston, Jacobi, SeasonalOU
from fokkerflow.sde.probing import sample_parameters, sample_states

KEY = jax.random.key(3)
MAX_DT = 0.5
GRU = Network("gru", 4, 2)
MLP = Network("mlp", 5, 1)


def small_anchored(sde: SDE, **options: Any) -> Flow:
    n = 128
    tau = MAX_DT * np.exp(np.linspace(-7.0, 0.0, n))
    x0, p = jnp.asarray(sample_states(sde, n)), jnp.asarray(sample_parameters(sde, n))
    return anchored(KEY, sde, MAX_DT, x0, p, jnp.asarray(tau), **{"network": MLP, **options})


CONFIGURATIONS: dict[str, Callable[[], Flow]] = {
    "paper-heston": lambda: paper(
        KEY, Heston(), ((0, 3), (-6.5, 6.5)), layers=(3, 2), components=3, width=4, depth=2, start_width=0.1
    ),
    "paper-jacobi-trained-beta": lambda: paper(
        KEY, Jacobi(), ((0, 1),), layers=3, components=3, width=4, depth=2, start_width=0.2, trainable_reference=True
    ),
    "anchored-heston": lambda: small_anchored(Heston()),
    "anchored-cir-log-gru": lambda: small_anchored(CIR(), charts=(Log(),), network=GRU, components=4),
    "anchored-cir-power-gamma": lambda: small_anchored(
        CIR(), charts=(Power(0.0, 0.6),), references=(TruncatedGamma(shape=2.2),), components=4
    ),
    "anchored-bdfs": lambda: small_anchored(BDFS(), parents=((), (), (0, 1)), components=3),
    "anchored-jacobi-deep": lambda: small_anchored(Jacobi(), layers=3),
    "anchored-jacobi-logit": lambda: small_anchored(Jacobi(), charts=(Logit(),), network=GRU),
    "anchored-seasonal": lambda: small_anchored(SeasonalOU()),
}
ANCHORED = [name for name in CONFIGURATIONS if name.startswith("anchored")]


class Case(NamedTuple):
    """A flow with random weights, one condition, and its compiled functions."""

    flow: Flow
    condition: Condition
    x0: jax.Array
    p: jax.Array
    log_density: Callable[[Any], Any]  # over a batch of states
    rosenblatt: Callable[[Any], Any]
    exact: Callable[[Any], Any]  # over a batch of base points
    draws: jax.Array


@functools.cache
def built(name: str) -> Flow:
    return CONFIGURATIONS[name]()


@functools.cache
def case(name: str) -> Case:
    flow = built(name)
    theta, with_weights = weights(flow)
    flow = with_weights(theta + 0.3 * jax.random.normal(jax.random.key(5), theta.shape))
    sde = flow.sde
    x0, p = jnp.array(sde.start), jnp.array([sde.typical[n] for n in sde.parameters])
    condition = eqx.filter_jit(flow.condition)(0.2, 0.3, x0, p)
    log_density = jax.jit(jax.vmap(lambda x: flow.log_density(x, condition)))
    rosenblatt = jax.jit(jax.vmap(lambda x: flow.rosenblatt(x, condition)))
    exact = jax.jit(jax.vmap(lambda u: exact_draw(flow, u, condition)))
    draws = exact(jax.random.uniform(jax.random.key(7), (500, sde.dimension)))
    return Case(flow, condition, x0, p, log_density, rosenblatt, exact, draws)

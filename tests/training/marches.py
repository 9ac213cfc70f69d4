"""Small marches that several tests share, each made once."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow.densities import density
from fokkerflow.flow import Flow, paper, weights
from fokkerflow.sde.models import OU
from fokkerflow.training import Conditions, Gaps, Law, NeuralGalerkin, Progress, Trained, Uniform, fit, sequence_for
from fokkerflow.training.felt_weights import felt_weights

SDE = OU()
LAW = Law(SDE, {"x": Uniform(-0.2, 0.2)}, {"kappa": Uniform(1.4, 1.6), "mean": Uniform(0, 0.2), "sigma": Uniform(0.55, 0.65)})
GAPS = Gaps(5e-4, 0.5)
BOX = ((-5.0, 5.0),)
P = jnp.array([1.5, 0.1, 0.6])
WIDTH = 0.05
TINY: dict[str, Any] = {"layers": 2, "components": 1, "width": 4, "depth": 1, "points": 120, "start_width": WIDTH}
SMALL_ANCHORED: dict[str, Any] = {"components": 2, "width": 4, "depth": 1, "points": 120}


@functools.cache
def ou_flow(components: int = 1) -> Flow:
    """The paper's flow for the OU process, a little away from its start, where half of the derivatives vanish."""
    key = jax.random.key(4)
    flow = paper(key, SDE, BOX, layers=2, components=components, width=4, depth=1, start_width=WIDTH)
    theta, with_weights = weights(flow)
    return with_weights(theta + 0.05 * jax.random.normal(key, theta.shape))


@functools.cache
def felt(components: int = 1) -> jax.Array:
    """Numbers of the weights that the density of `ou_flow` depends on."""
    return jnp.asarray(felt_weights(ou_flow(components)))


def conditions(flow: Flow, n: int, seed: int = 0) -> Conditions:
    return sequence_for(flow, LAW, GAPS, seed).take(n)


def alone(flow: Flow, n: int) -> Conditions:
    """Draws for one start and one set of parameters."""
    drawn = conditions(flow, n)
    return drawn._replace(x0=np.full_like(drawn.x0, 0.2), p=np.broadcast_to(P, drawn.p.shape).copy())


def march(**options: Any) -> Trained:
    """The paper's method on the OU process: one Gaussian in a box."""
    settings = {**TINY, "box": BOX, "damping": 1e-6, "tolerance": 3e-3, **options}
    return fit(SDE, LAW, GAPS.longest, method="neural-galerkin", preset="reduced", **settings)


@functools.cache
def small_march() -> tuple[Trained, tuple[Progress, ...]]:
    reports: list[Progress] = []
    return march(progress=reports.append), tuple(reports)


def settings_of(trained: Trained) -> NeuralGalerkin:
    """As the record of a density has them, which has been through JSON."""
    stored = trained.record.settings
    return NeuralGalerkin(**{**stored, "spreads": tuple(stored["spreads"])})


def error_from_start(trained: Trained, x0: float, tau: float) -> np.ndarray:
    """Errors of log q within two standard deviations, against the OU density of a start as wide as the flow's."""
    kappa, mean, sigma = P
    decay, width = jnp.exp(-kappa * tau), BOX[0][1] * WIDTH
    centre = mean + (x0 - mean) * decay
    variance = sigma**2 / (2 * kappa) * (1 - decay**2) + (width * decay) ** 2
    x = centre + jnp.sqrt(variance) * jnp.linspace(-2, 2, 21)
    exact = -0.5 * (x - centre) ** 2 / variance - 0.5 * jnp.log(2 * jnp.pi * variance)
    return np.asarray(_log_q(trained, x, x0, tau, P, 0.0) - exact)


def error(trained: Trained, x0: float, tau: float, p: jax.Array, t0: float) -> np.ndarray:
    """Errors of log q against the exact density of a Gaussian process, down to two below its peak."""
    exact = density("exact", trained.sde)
    x = jnp.linspace(-2, 2, 101)
    log_p = np.asarray(exact.log_prob_batch(x[:, None], jnp.array([x0]), tau, p, t0=t0))
    near = log_p > np.max(log_p) - 2
    return (np.asarray(_log_q(trained, x, x0, tau, p, t0)) - log_p)[near]


@eqx.filter_jit
def _log_q(trained: Trained, x: jax.Array, x0: float, tau: float, p: jax.Array, t0: float) -> jax.Array:
    arrays = jnp.asarray([x0]), jnp.asarray(tau), p, jnp.asarray(t0)
    return jax.vmap(lambda x: trained.log_density(x[None], *arrays))(x)

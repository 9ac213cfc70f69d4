"""Which weights the density depends on at all.

A GRU cell that sees one input from a zero state never uses its recurrent matrix (paper section 4.2): a third of the weights of
the paper's flows are without effect. A factorisation that leaves them out is three times cheaper.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fokkerflow.flow import Flow, approximate_draw, base_dimension, weights
from fokkerflow.sde.model import Parameters, State
from fokkerflow.sde.probing import sample_parameters, sample_states
from fokkerflow.training.theta_path import Theta

_PROBES = 16
_MOVE = 1e-3
"""Moves weights off exact zeros, at which a derivative may vanish by accident, and not so far that a narrow start is left."""


def felt_weights(flow: Flow) -> Int[np.ndarray, " c"]:
    """The numbers of the weights whose derivative is not exactly zero at every one of a few probes."""
    base = np.random.default_rng(0).uniform(size=(_PROBES, base_dimension(flow)))
    probes = sample_states(flow.sde, _PROBES), sample_parameters(flow.sde, _PROBES), base
    gradients = np.asarray(_gradients(flow, *map(jnp.asarray, probes)))
    return np.flatnonzero(np.any(gradients != 0, axis=0))


@eqx.filter_jit
def _gradients(flow: Flow, x0: Float[Array, "n d"], p: Float[Array, "n n_p"], base: Float[Array, "n k"]) -> Float[Array, "n m"]:
    theta, with_weights = weights(flow)
    moved = theta + _MOVE * jnp.cos(jnp.arange(theta.size))

    def gradient(x0: State, p: Parameters, base: Float[Array, " k"]) -> Theta:
        condition = flow.condition(0.0, 0.1, x0, p)
        x = approximate_draw(with_weights(moved), base, condition)
        return jax.grad(lambda t: with_weights(t).log_density(x, condition))(moved)

    return jax.vmap(gradient)(x0, p, base)

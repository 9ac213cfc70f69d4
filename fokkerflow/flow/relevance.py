"""Which inputs can change the shape of the transition density, and which only shift its mean.

In Heston's model y0 and mu move y and nothing else. The anchor carries such shifts exactly, so the networks need not see
them, and a flow that does not see them cannot get them wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow._precision import in_float64
from fokkerflow.sde.model import SDE
from fokkerflow.sde.probing import sample_states

_ZERO = 1e-12
_PROBES = 64


class ShapeInputs(NamedTuple):
    """Indices of the coordinates of x0, and of the parameters, that matter for the shape; whether the time t0 does."""

    states: tuple[int, ...]
    parameters: tuple[int, ...]
    time: bool


@in_float64
def shape_inputs(
    sde: SDE, x0: Float[Array, "n d"], p: Float[Array, "n n_p"], t0: Float[Array, " n"] | None = None
) -> ShapeInputs:
    """Find what matters for the shape from the derivatives of drift and covariance at sample points.

    A real coordinate is a pure shift if the covariance and the Jacobian of the drift do not depend on it, and if it drives no
    coordinate that is not itself a pure shift. A parameter (or the time) is one, if the covariance and the Jacobian do not
    depend on it and it enters the drift of pure shifts only.

    **Arguments:**

    - `sde`: the model.
    - `x0`, `p`: conditions that the flow is meant for; states spread around the model's start are tried as well.
    - `t0`: their times, for non-autonomous models; zeros if left out.
    """
    probes = min(_PROBES, len(x0))
    states = jnp.concatenate([x0[:probes], jnp.asarray(sample_states(sde, probes))])
    parameters = jnp.concatenate([p[:probes], p[:probes]])
    times = jnp.zeros(probes) if t0 is None else t0[:probes]
    times = jnp.concatenate([times, times + jnp.linspace(0.0, 1.0, probes)])
    drift, noise = _sensitivities(sde, times, states, parameters)

    d = sde.dimension
    shifts = {j for j, domain in enumerate(sde.domains) if domain.is_line and drift.second[j] < _ZERO and noise[j] < _ZERO}
    while bad := {j for j in shifts if any(drift.first[i, j] > _ZERO for i in range(d) if i not in shifts)}:
        shifts -= bad

    def only_shifts(k: int) -> bool:
        others = [i for i in range(d) if i not in shifts]
        return bool(drift.second[k] < _ZERO and noise[k] < _ZERO and np.all(drift.first[others, k] < _ZERO))

    n = len(sde.parameters)
    return ShapeInputs(
        tuple(j for j in range(d) if j not in shifts),
        tuple(k for k in range(n) if not only_shifts(d + k)),
        not sde.autonomous and not only_shifts(d + n),
    )


class _DriftSensitivity(NamedTuple):
    first: Float[np.ndarray, "d inputs"]  # largest |d b_i / d input|
    second: Float[np.ndarray, " inputs"]  # largest |d (Jacobian of b) / d input|


def _sensitivities(
    sde: SDE, t: Float[Array, " n"], x: Float[Array, "n d"], p: Float[Array, "n n_p"]
) -> tuple[_DriftSensitivity, Float[np.ndarray, " inputs"]]:
    """Largest derivatives over the samples with respect to all inputs (states, parameters, time), in this order."""
    d, n = sde.dimension, len(sde.parameters)
    inputs = jnp.concatenate([x, p, t[:, None]], 1)

    def drift(v: Array) -> Array:
        return sde.drift(v[-1], v[:d], v[d : d + n])

    def jacobian(v: Array) -> Array:
        return jax.jacfwd(lambda x: sde.drift(v[-1], x, v[d : d + n]))(v[:d])

    def covariance(v: Array) -> Array:
        return sde.covariance(v[-1], v[:d], v[d : d + n])

    first, second, noise = (
        np.asarray(jnp.max(jnp.abs(jax.vmap(jax.jacfwd(f))(inputs)), 0)) for f in (drift, jacobian, covariance)
    )
    return _DriftSensitivity(first, second.max((0, 1))), noise.max((0, 1))

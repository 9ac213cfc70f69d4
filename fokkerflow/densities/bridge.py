"""A Gaussian bridge of variable stiffness, in the time and scale in which it is a stationary Ornstein-Uhlenbeck process.

The bridge xi over [0, 1] has the weight ``exp(-int (xi'^2 + k xi^2) / 2)``. With the solutions of ``phi'' = k phi`` that vanish
at one end, phi_1 at 0 and phi_2 at 1, its covariance is phi_1 phi_2 / Wronskian. So

    w^2 = phi_1 phi_2 / Wronskian ,     s = log(phi_1 / phi_2) / 2 ,     ds = dtheta / (2 w^2) ,

and xi / w as a function of s has covariance ``e^{-|s - s'|}``, wherever the bridge runs and however stiff it is (Doob 1942).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.densities.chebyshev import Stretched
from fokkerflow.densities.transfer import STEP, STEPS
from fokkerflow.sde.linalg import solve
from fokkerflow.sde.model import Scalar

_TABLE = np.linspace(-12.0, 12.0, 193)
_NEWTON_STEPS = 4


class Bridge(NamedTuple):
    """A bridge at equal steps of s.

    - `interpolation`: from the points of time to the steps.
    - `deviation`: w at the steps.
    - `k`: the stiffness at the steps.
    - `wronskian`: 1 / phi_1(1) where phi_1'(0) = 1; it is 1 for k = 0.
    """

    interpolation: Float[Array, "steps n"]
    deviation: Float[Array, " steps"]
    k: Float[Array, " steps"]
    wronskian: Scalar


def gaussian_bridge(time: Stretched, k: Float[Array, " n"]) -> Bridge:
    """The bridge of stiffness k, given at the points of `time`. One linear solve.

    The steps cover a span of `STEP` * `STEPS` in s. Of it a bridge of constant stiffness uses sqrt(k); what remains is for both
    ends, where theta falls by e^{-2} per unit of s.
    """
    second = time.derivative @ time.derivative
    inner = slice(1, -1)
    matrix = second[inner, inner] - jnp.diag(k[inner])
    solution = solve(matrix, -jnp.stack([second[inner, -1], second[inner, 0]], 1))
    zero, one = jnp.zeros(1), jnp.ones(1)
    phi1 = jnp.concatenate([zero, solution[:, 0], one])
    phi2 = jnp.concatenate([one, solution[:, 1], zero])
    wronskian = time.derivative[0] @ phi1
    # phi_1 / theta and phi_2 / (1 - theta) are smooth, and positive at the ends too.
    rise = jnp.concatenate([wronskian[None], phi1[1:] / time.points[1:]])
    fall = jnp.concatenate([phi2[:-1] / time.rest[:-1], -time.derivative[-1:] @ phi2])
    theta, rest = _times(time, rise, fall)
    at = time.interpolation(theta, rest)
    return Bridge(at, jnp.sqrt(theta * rest * (at @ rise) * (at @ fall) / wronskian), at @ k, wronskian)


def _times(time: Stretched, rise: Float[Array, " n"], fall: Float[Array, " n"]) -> tuple[Array, Array]:
    """theta and 1 - theta at equal steps of s, by Newton's method in half the logit of theta, from a table."""

    def s(half: Array) -> Array:
        at = time.interpolation(jax.nn.sigmoid(2 * half), jax.nn.sigmoid(-2 * half))
        return half + jnp.log((at @ rise) / (at @ fall)) / 2

    table = s(jnp.array(_TABLE))
    middle = (table[0] + table[-1]) / 2
    wanted = middle + STEP * (np.arange(STEPS + 1) - STEPS / 2)
    half = jnp.interp(wanted, table, _TABLE)
    for _ in range(_NEWTON_STEPS):
        value, slope = jax.jvp(s, (half,), (jnp.ones_like(half),))
        half = half - (value - wanted) / slope
    return jax.nn.sigmoid(2 * half), jax.nn.sigmoid(-2 * half)

"""E[exp(-int rate(s, X_s) ds)] over the stationary Ornstein-Uhlenbeck process X, for complex rates: a transfer matrix.

``dX = -X ds + sqrt(2) dB``, whose stationary law is N(0, 1). Its semigroup is diagonal in Hermite polynomials (Mehler 1866),
so on n Gauss-Hermite points it is a constant n x n matrix, exact for polynomials of degree below n.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fokkerflow.sde.model import Scalar

STEP = 0.14
STEPS = 96
"""Steps of the process in its own time s; a multiple of four, for the extrapolation."""
LEVELS = 28
"""Gauss-Hermite points. They reach to 9.4 standard deviations."""
_EXTRAPOLATION = (64 / 45, -20 / 45, 1 / 45)
"""Of steps of length h, 2 h and 4 h, each symmetric and second order, to order six (Richardson)."""


class Rates(NamedTuple):
    """The rate ``real + i omega imaginary + omega^2 square / 2`` at steps and levels. Paths do not go where not `inside`."""

    real: Float[Array, "steps levels"]
    imaginary: Float[Array, "steps levels"]
    square: Float[Array, "steps levels"]
    inside: Bool[Array, "steps levels"]


def expectation(rates: Rates, spacing: Scalar, count: int) -> tuple[Float[Array, " count"], Float[Array, " count"]]:
    """Real and imaginary parts of the expectation for the frequencies ``omega = (j + 1/2) spacing``, j < count.

    The rates are to vanish towards both ends of the time; X is stationary there, not fixed. The error is of order `STEP`^6, and
    of second order in the rates: a small rate is integrated to all digits by any step.

    Costs `STEPS` products of a constant matrix with a vector for each frequency, times 1.75.
    """
    values = [weight * _transfer(rates, spacing, count, 2**j) for j, weight in enumerate(_EXTRAPOLATION)]
    total = sum(values[1:], values[0])
    return total[:count], total[count:]


def _transfer(rates: Rates, spacing: Scalar, count: int, stride: int) -> Float[Array, " parts"]:
    """Strang's splitting: factors at every `stride`-th point, the semigroup between them. Real parts, then imaginary ones."""
    semigroup, ground = _SEMIGROUPS[stride], jnp.array(_GROUND)
    length = STEP * stride
    squares = (spacing * (np.arange(count) + 0.5)) ** 2 / 2

    def advance(state: Array, rate: Rates) -> tuple[Array, None]:
        state = semigroup @ state
        re, im = state[:, :count], state[:, count:]
        size = jnp.exp(-length * (rate.real[:, None] + rate.square[:, None] * squares))
        size = jnp.where(rate.inside[:, None], size, 0.0)
        cos, sin = _odd_multiples(length * spacing / 2 * rate.imaginary, count)
        return jnp.concatenate([size * (re * cos + im * sin), size * (im * cos - re * sin)], 1), None

    start = ground[:, None] * np.repeat([1.0, 0.0], count)
    state, _ = jax.lax.scan(advance, start, jax.tree.map(lambda a: a[stride:-1:stride], rates))
    return ground @ state


def _odd_multiples(angle: Float[Array, " levels"], count: int) -> tuple[Float[Array, "levels n"], Float[Array, "levels n"]]:
    """Cosine and sine of (2 j + 1) angle, j < count, by recurrence: a sine costs as much as twenty products."""
    cos, sin = [jnp.cos(angle)], [jnp.sin(angle)]
    twice = 2 - 4 * sin[0] ** 2
    before = cos[0], -sin[0]
    for _ in range(count - 1):
        now = twice * cos[-1] - before[0], twice * sin[-1] - before[1]
        before = cos[-1], sin[-1]
        cos.append(now[0])
        sin.append(now[1])
    return jnp.stack(cos, -1), jnp.stack(sin, -1)


def _hermite(n: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n n"]]:
    """Gauss-Hermite points for N(0, 1), and the orthogonal matrix of the first n Hermite functions at them."""
    points, weights = np.polynomial.hermite_e.hermegauss(n)
    rows = [np.ones(n), points]
    for m in range(2, n):
        rows.append((points * rows[-1] - np.sqrt(m - 1) * rows[-2]) / np.sqrt(m))
    return points, np.array(rows) * np.sqrt(weights / weights.sum())


POINTS, _FUNCTIONS = _hermite(LEVELS)
_GROUND = _FUNCTIONS[0]
_SEMIGROUPS = {2**j: (_FUNCTIONS.T * np.exp(-(2**j) * STEP * np.arange(LEVELS))) @ _FUNCTIONS for j in range(3)}

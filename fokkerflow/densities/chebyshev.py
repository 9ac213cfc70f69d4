"""Functions on [0, 1] by their values at stretched Chebyshev points: derivative, integral and interpolation."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.sde.model import Scalar

_STRETCH = 0.25
"""Points that each layer takes, per point of all the rest."""
_BISECTIONS = 48


class ChebyshevRule(NamedTuple):
    """Points on [0, 1], ends included, with the matrix that differentiates and the weights that integrate and interpolate."""

    points: Float[np.ndarray, " n"]
    derivative: Float[np.ndarray, "n n"]
    weights: Float[np.ndarray, " n"]
    barycentric: Float[np.ndarray, " n"]


@lru_cache(maxsize=8)
def chebyshev_rule(n: int) -> ChebyshevRule:
    """The rule with n points: Trefethen (2000), Spectral Methods in MATLAB, chapters 6 and 12; errors fall geometrically."""
    k = np.arange(n)
    x = -np.cos(np.pi * k / (n - 1))
    signs = (-1.0) ** k * np.where((k == 0) | (k == n - 1), 0.5, 1.0)
    gaps = x[:, None] - x + np.eye(n)
    derivative = signs[None, :] / signs[:, None] / gaps
    derivative -= np.diag(derivative.sum(1))
    integrals = np.array([0.0 if m % 2 else 2 / (1 - m * m) for m in range(n)])
    weights = np.linalg.solve(np.polynomial.chebyshev.chebvander(x, n - 1).T, integrals)
    return ChebyshevRule((1 + x) / 2, 2 * derivative, weights / 2, signs)


class Stretched(NamedTuple):
    """The rule in a variable u(theta) that gives layers of width `first` at 0 and `last` at 1 points of their own.

        u = (theta + c log(1 + theta / first) / log(1 + 1 / first) + the same at 1) / (1 + 2 c)

    - `points`: theta, ``(n,)``; `rest`: 1 - theta, without cancellation.
    - `derivative`, `weights`: of functions of theta.
    """

    first: Scalar
    last: Scalar
    points: Float[Array, " n"]
    rest: Float[Array, " n"]
    derivative: Float[Array, "n n"]
    weights: Float[Array, " n"]

    def interpolation(self, theta: Float[Array, " q"], rest: Float[Array, " q"]) -> Float[Array, "q n"]:
        """The matrix that interpolates to theta: the barycentric formula (Berrut and Trefethen 2004)."""
        rule = chebyshev_rule(self.points.shape[0])
        gaps = _stretch(theta, rest, self.first, self.last)[0][:, None] - rule.points
        hit = gaps == 0
        share = jnp.where(jnp.any(hit, 1, keepdims=True), hit, rule.barycentric / jnp.where(hit, 1.0, gaps))
        return share / jnp.sum(share, 1, keepdims=True)


def stretched(n: int, first: Scalar, last: Scalar) -> Stretched:
    """The rule for layers of these widths; widths of one and more leave the points about where they are."""
    rule = chebyshev_rule(n)
    u = jnp.array(rule.points)
    theta, rest = _unstretch(u, first, last)
    slope = _stretch(theta, rest, first, last)[1]
    return Stretched(first, last, theta, rest, slope[:, None] * rule.derivative, jnp.array(rule.weights) / slope)


def _stretch(theta: Array, rest: Array, first: Scalar, last: Scalar) -> tuple[Array, Array]:
    """u and its derivative."""
    a, b = _STRETCH / jnp.log1p(1 / first), _STRETCH / jnp.log1p(1 / last)
    from_start = a * jnp.log1p(theta / first)
    from_end = _STRETCH - b * jnp.log1p(rest / last)
    total = 1 + 2 * _STRETCH
    return (theta + from_start + from_end) / total, (1 + a / (first + theta) + b / (last + rest)) / total


def _unstretch(u: Array, first: Scalar, last: Scalar) -> tuple[Array, Array]:
    """theta and 1 - theta for u, by bisection in half the logit of theta."""
    low, high = jnp.full_like(u, -20.0), jnp.full_like(u, 20.0)

    def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        below = _stretch(jax.nn.sigmoid(2 * middle), jax.nn.sigmoid(-2 * middle), first, last)[0] < u
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    low, high = jax.lax.fori_loop(0, _BISECTIONS, halve, (low, high))
    middle = (low + high) / 2
    theta, rest = jax.nn.sigmoid(2 * middle), jax.nn.sigmoid(-2 * middle)
    ends = jnp.arange(u.shape[0])
    theta = jnp.where(ends == 0, 0.0, jnp.where(ends == u.shape[0] - 1, 1.0, theta))
    return theta, jnp.where(ends == 0, 1.0, jnp.where(ends == u.shape[0] - 1, 0.0, rest))

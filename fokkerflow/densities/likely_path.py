"""The most likely path of the variance between two observations of variance and log price, and its saddle."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.densities.chebyshev import Stretched, stretched
from fokkerflow.densities.elastic_variance import ElasticVariance, PathTerms
from fokkerflow.sde.linalg import solve
from fokkerflow.sde.model import Scalar

NODES = 32
NEWTON_STEPS = 12
_LONGEST = 0.7
"""In log v: the step of Newton's method that is still trusted."""


class LikelyPath(NamedTuple):
    """x at the points of theta = t / dt, and the real frequency `tilt` of the saddle."""

    time: Stretched
    x: Float[Array, " n"]
    tilt: Scalar


def most_likely_path(model: ElasticVariance, v0: Scalar, v1: Scalar, dt: Scalar, distance: Scalar, r: Scalar) -> LikelyPath:
    """Minimises ``int (x'^2 / 2 + cost) dt + (distance + int pull dt)^2 / (2 r int v dt)``.

    Collocation at Chebyshev's points, denser where a low variance is pulled up quickly; Newton's method for path and tilt
    together, from the path of a linear process. It need not converge to the last digit: a density that is expanded around the
    path is exact for any path.
    """
    alpha, beta, sigma, _, gamma, _ = model
    time = stretched(NODES, v0 / (alpha * beta * dt), v1 / (alpha * beta * dt))
    up, down = _sinh_ratio(beta * dt, time.points, time.rest), _sinh_ratio(beta * dt, time.rest, time.points)
    x = model.coordinate(alpha * (1 - up - down) + v0 * down + v1 * up)
    second, weights = time.derivative @ time.derivative / dt**2, dt * time.weights
    inner = slice(1, -1)

    def step(_: Array, state: tuple[Array, Scalar]) -> tuple[Array, Scalar]:
        x, tilt = state
        _, pull, v = model.terms(x)
        force, (curve, cross) = tilted_derivatives(model, x, tilt, r)
        matrix = jnp.diag(curve[inner]) - second[inner, inner]
        plain, coupled = solve(matrix, jnp.stack([second @ x - force, -cross], 1)[inner]).T
        row = (weights * cross)[inner]
        miss = distance + weights @ pull - tilt * r * (weights @ v)
        turn = (-miss - row @ plain) / (row @ coupled - r * (weights @ v))
        move = plain + turn * coupled
        longest = jnp.max(jnp.abs(move) * sigma * v[inner] ** (gamma - 1))
        share = jnp.minimum(1.0, _LONGEST / longest)
        return x.at[inner].add(share * move), tilt + share * turn

    _, pull, v = model.terms(x)
    start = (distance + weights @ pull) / (r * (weights @ v))
    return LikelyPath(time, *jax.lax.fori_loop(0, NEWTON_STEPS, step, (x, start)))


def tilted(terms: PathTerms, tilt: Scalar, r: Scalar) -> tuple[Array, Array]:
    """The potential ``cost + tilt pull - tilt^2 r v / 2``, and its derivative in the tilt."""
    cost, pull, v = terms
    return cost + tilt * (pull - tilt * r / 2 * v), pull - tilt * r * v


def tilted_derivatives(model: ElasticVariance, x: Array, tilt: Scalar, r: Scalar) -> tuple[Array, tuple[Array, Array]]:
    """First derivative in x of the tilted potential, its second, and its mixed one in x and the tilt."""

    def along(x: Array) -> tuple[Array, Array]:
        return jax.jvp(lambda x: tilted(model.terms(x), tilt, r), (x,), (jnp.ones_like(x),))[1]

    (force, cross), (curve, _) = jax.jvp(along, (x,), (jnp.ones_like(x),))
    return force, (curve, cross)


def _sinh_ratio(a: Scalar, t: Array, rest: Array) -> Array:
    """sinh(a t) / sinh(a), rest = 1 - t."""
    return jnp.exp(-a * rest) * jnp.expm1(-2 * a * t) / jnp.expm1(-2 * a)

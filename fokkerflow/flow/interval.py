"""A point of an open interval, known by its distances to both ends.

The layers of the flow (paper section 4.2) map an interval to the next one. Close to an end, x alone has lost what matters, its
distance to that end; the pair of log distances keeps it, also where the distance itself underflows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Scalar = Float[Array, ""]


Optional = Any
"""A scalar array, or None where the end of the interval is infinite. None is structure, known when a function is traced, so
annotations leave it to the branch that has looked."""


class Ends(NamedTuple):
    """The ends of an interval; None is infinity, so that an infinite end is known when a function is traced."""

    lower: Optional
    upper: Optional


class Point(NamedTuple):
    """x, log(x - lower) and log(upper - x); the distance to an infinite end is None."""

    value: Scalar
    log_below: Optional
    log_above: Optional

    def rescaled(self, shift: Scalar, log_scale: Scalar) -> Point:
        """The point (x - shift) / scale of the interval that is rescaled likewise."""
        return Point(
            (self.value - shift) * jnp.exp(-log_scale),
            None if self.log_below is None else self.log_below - log_scale,
            None if self.log_above is None else self.log_above - log_scale,
        )


class UnitPoint(NamedTuple):
    """u in (0, 1) by log u and log(1 - u), each of full relative accuracy."""

    log_below: Scalar
    log_above: Scalar


SYMMETRIC = Ends(-1.0, 1.0)
"""[-1, 1], the interval of every layer after the first."""

_LOG_2 = math.log(2.0)


def rescale_ends(ends: Ends, shift: Scalar, log_scale: Scalar) -> Ends:
    scale = jnp.exp(-log_scale)
    return Ends(*(None if end is None else (end - shift) * scale for end in ends))


def unit_to_symmetric(u: UnitPoint) -> Point:
    """2u - 1."""
    lower_half = u.log_below < u.log_above
    from_below = -1.0 + 2.0 * jnp.exp(u.log_below)
    from_above = 1.0 - 2.0 * jnp.exp(u.log_above)
    return Point(jnp.where(lower_half, from_below, from_above), u.log_below + _LOG_2, u.log_above + _LOG_2)


def point_to_unit(point: Point) -> UnitPoint:
    """(x + 1)/2, for a point of [-1, 1]."""
    return UnitPoint(point.log_below - _LOG_2, point.log_above - _LOG_2)


def unit_point(u: Scalar) -> UnitPoint:
    return UnitPoint(jnp.log(u), jnp.log1p(-u))


def from_line(t: Scalar, ends: Ends) -> Point:
    """The point with coordinate t on the whole line: x itself, the log distance to the one finite end (with the sign of the
    direction), or the logit of its position between two. Both log distances are accurate."""
    lower, upper = ends
    if lower is None and upper is None:
        return Point(t, None, None)
    if upper is None:
        return Point(lower + jnp.exp(t), t, None)
    if lower is None:
        return Point(upper - jnp.exp(-t), None, -t)
    log_length = jnp.log(jnp.asarray(upper) - lower)
    below, above = log_length + jax.nn.log_sigmoid(t), log_length + jax.nn.log_sigmoid(-t)
    return Point(jnp.where(t < 0, lower + jnp.exp(below), upper - jnp.exp(above)), below, above)


def log_line_slope(point: Point, ends: Ends) -> Scalar:
    """log dx/dt of `from_line`."""
    if point.log_below is None and point.log_above is None:
        return jnp.zeros_like(point.value)
    if point.log_below is None or point.log_above is None:
        return point.log_above if point.log_below is None else point.log_below
    return point.log_below + point.log_above - jnp.log(jnp.asarray(ends.upper) - ends.lower)

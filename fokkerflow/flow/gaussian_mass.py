"""Logarithm of the standard normal mass of an interval, accurate however small, far out or narrow the interval is.

Section 4 of the paper composes distribution functions of truncated Gaussians. With a width of 1e-4 (the Dirac start)
their logarithms reach -1e8, and the next layer needs the distance to *both* ends of its interval, so every mass here is
computed from the length of its interval and from the end that lies nearest to the mode. With Mills' ratio
R(c) = (1 - Phi(c)) / phi(c), the mass between c >= 0 and c + d is

    Phi(c + d) - Phi(c) = phi(c) M(c, d),   M(c, d) = int_0^d exp(-c t - t^2/2) dt = R(c) - exp(-c d - d^2/2) R(c + d).
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.flow.special import relative_expm1

Values = Float[Array, "*shape"]

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_NODES, _WEIGHTS = (0.5 * (np.polynomial.legendre.leggauss(10)[0] + 1.0), 0.5 * np.polynomial.legendre.leggauss(10)[1])
_MILLS_SWITCH = 10.0  # below: erfc times exp(c^2/2), which loses c^2/2 units of rounding; above: the asymptotic series
_MILLS_SERIES = [float((-1) ** k * math.prod(range(1, 2 * k, 2))) for k in range(19)]  # (-1)^k (2k - 1)!!
_DIRECT = 1.2  # exponents and lengths below this are integrated by the ten nodes, to rounding error


@jax.custom_jvp
def log_mills(c: Values) -> Values:
    """log R(c) for c >= 0, R = (1 - Phi)/phi; relative error of R below 2e-14. Differentiable to any order."""
    near = jnp.minimum(c, _MILLS_SWITCH)
    below = 0.5 * near**2 + jnp.log(0.5 * jax.lax.erfc(near * math.sqrt(0.5))) + LOG_SQRT_2PI
    far = jnp.maximum(c, _MILLS_SWITCH)
    inverse_square = far**-2
    series = jnp.zeros_like(far)
    for coefficient in reversed(_MILLS_SERIES):
        series = coefficient + inverse_square * series
    above = jnp.log(series / far)
    return jnp.where(c < _MILLS_SWITCH, below, above)


@log_mills.defjvp
def _log_mills_jvp(primals: tuple[Values], tangents: tuple[Values]) -> tuple[Values, Values]:
    (c,), (c_dot,) = primals, tangents
    value = log_mills(c)
    return value, (c - jnp.exp(-value)) * c_dot  # R' = c R - 1


@jax.custom_jvp
def log_partial_mills(c: Values, log_d: Values) -> Values:
    """log M(c, d) with d = exp(log_d), for c >= 0, or c >= -d/2 while d is at most 1.2.

    The length enters by its logarithm, so that it may underflow. Relative error of M below 1e-13.
    """
    d = jnp.exp(log_d)
    exponent = d * (c + 0.5 * d)
    t = jnp.minimum(d, 2.0)[..., None] * _NODES
    direct = log_d + jnp.log(jnp.sum(_WEIGHTS * jnp.exp(-jnp.minimum(c[..., None] * t, 2.0) - 0.5 * t**2), -1))
    end = jnp.maximum(c, 0.0)
    first, second = log_mills(jnp.stack([end, end + d]))
    by_parts = first + jnp.log1p(-jnp.exp(-jnp.maximum(exponent, _DIRECT) + second - first))
    return jnp.where(exponent < _DIRECT, direct, by_parts)


@log_partial_mills.defjvp
def _log_partial_mills_jvp(primals: tuple[Values, Values], tangents: tuple[Values, Values]) -> tuple[Values, Values]:
    """dM/dd = exp(-e) and dM/dc = c M - (1 - exp(-e)), e = c d + d^2/2, written without small differences."""
    (c, log_d), (c_dot, log_d_dot) = primals, tangents
    value = log_partial_mills(c, log_d)
    d = jnp.exp(log_d)
    exponent = d * (c + 0.5 * d)
    by_c = c - relative_expm1(exponent) * (c + 0.5 * d) * jnp.exp(log_d - value)
    by_log_d = jnp.exp(log_d - exponent - value)
    return value, by_c * c_dot + by_log_d * log_d_dot


def log_mass(left: Values, right: Values, log_length: Values, left_energy: Values, right_energy: Values) -> Values:
    """log of int exp(-(t^2 - P^2)/2) dt from `left` to `right`, for a fixed point P that the caller chooses.

    **Arguments:**

    - `left`, `right`: the ends, left < right.
    - `log_length`: log(right - left), accurate where the difference of the ends is not.
    - `left_energy`, `right_energy`: (left^2 - P^2)/2 and (right^2 - P^2)/2. Where the mode 0 of the Gaussian is inside the
      interval and its length is above 1.2, P must be 0.
    """
    wide = (left < 0) & (right > 0) & (log_length > math.log(_DIRECT))
    from_left = left > -right
    nearest = jnp.where(wide, 1.0, jnp.where(from_left, left, -right))
    narrow = log_partial_mills(nearest, jnp.where(wide, 0.0, log_length)) - jnp.where(from_left, left_energy, right_energy)
    outside = _upper_tail(jnp.where(wide, -left, 1.0)) + _upper_tail(jnp.where(wide, right, 1.0))
    return jnp.where(wide, LOG_SQRT_2PI + jnp.log1p(-outside), narrow)


def log_tail_mass(left: Values, left_energy: Values) -> Values:
    """`log_mass` from `left` to infinity; P must be 0 where `left` is negative."""
    inside = left < 0
    tail = log_mills(jnp.where(inside, 1.0, left)) - left_energy
    return jnp.where(inside, LOG_SQRT_2PI + jnp.log1p(-_upper_tail(jnp.where(inside, -left, 1.0))), tail)


def log_ndtr(x: Values) -> Values:
    """log Phi(x), with relative accuracy (and accurate derivatives) in the far lower tail."""
    return log_tail_mass(-x, 0.5 * x**2) - LOG_SQRT_2PI


def log_ndtri(log_p: Values) -> Values:
    """The x with log Phi(x) = `log_p`, for log_p <= log(0.9): a start from `ndtri` or from its asymptote, and Newton steps.

    log Phi is concave and increasing, so that Newton's iteration converges from any start on its convex side.
    """
    log_p = jnp.minimum(log_p, -0.1)
    y = jnp.maximum(-2 * log_p, 1e2)
    asymptote = -jnp.sqrt(y - jnp.log(2 * math.pi * (y - jnp.log(2 * math.pi * y))))
    x = jnp.where(log_p > -300.0, jax.scipy.special.ndtri(jnp.exp(jnp.maximum(log_p, -300.0))), asymptote)

    def newton(_: Any, x: Values) -> Values:
        value = log_ndtr(x)
        return x - (value - log_p) * jnp.exp(value + 0.5 * x**2 + LOG_SQRT_2PI)

    return jax.lax.fori_loop(0, 3, newton, x)


def _upper_tail(x: Values) -> Values:
    return 0.5 * jax.lax.erfc(x * math.sqrt(0.5))

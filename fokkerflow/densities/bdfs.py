"""The exact transition density of the three-factor short rate model of Balduzzi, Das, Foresi and Sundaram (paper appendix E).

The long-run mean is an Ornstein-Uhlenbeck process of its own. Given the variances at both ends, the rate is Gaussian, its mean
and variance affine in ``int e^{-k3 s} V ds`` and ``int e^{-2 k3 s} V ds``, whose joint transform is known
(`fokkerflow.densities.killing`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex

from fokkerflow.densities.cir import around_noiseless_path
from fokkerflow.densities.density import Density
from fokkerflow.densities.killing import LIMIT, KillingSeries, flow, killing_series
from fokkerflow.densities.registry import register
from fokkerflow.sde.model import Parameters, Scalar, State
from fokkerflow.sde.models import BDFS

NODES = 28
REACH = 12.5
_TINY = 1e-300
_STEPS = 20
_EDGE_STEPS = 8
_STEEPEST = 1.2


@register("exact", BDFS)
class BDFSDensity(Density):
    sde: BDFS

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        k1, alpha1, sigma1, k2, alpha2, sigma2, k3, rho = p
        (v1, o1, y1), (v0, o0, y0) = x1, x0
        r = (1 - rho) * (1 + rho)
        decay = jnp.expm1(-k3 * dt)
        clock = -decay / k3
        pull = _pull(k2, alpha2, sigma2, k3, dt, o0, o1)
        noiseless = v1 - v0 - decay * v0 - k1 * alpha1 * clock
        distance = y1 - y0 - decay * y0 - pull.mean - rho / sigma1 * noiseless
        unit = 2 / (sigma1 * jnp.sqrt(r) * clock)  # omega = 1 is this eta
        series = killing_series(k1, k3, rho * (k1 - k3) * clock / jnp.sqrt(r), dt)
        scale = 2 / (sigma1**2 * dt)
        ends = _Ends(scale * v0, scale * v1, 2 * alpha1 * k1 / sigma1**2, unit * distance, (unit**2) * pull.variance)
        omega, weight = _contour(*jax.lax.stop_gradient((series, ends)))  # the integral depends on no contour
        exponent, factor = _transform(series, ends, omega)
        peak = jax.lax.stop_gradient(jnp.max(exponent.real))
        total = jnp.sum((factor * jnp.exp(exponent - peak) * weight).real)
        return pull.log_density + peak + jnp.log(jnp.maximum(total, _TINY)) + jnp.log(scale * unit)


class _Ends(NamedTuple):
    """Scaled variances, half the degrees of freedom, and the Gaussian part in units of omega."""

    a0: Scalar
    a1: Scalar
    dimension: Scalar
    distance: Scalar
    variance: Scalar


class _Pull(NamedTuple):
    """The integral of e^{-k3 (dt-s)} k3 O ds given both ends of O, and the log density of the latter end."""

    mean: Scalar
    variance: Scalar
    log_density: Scalar


_LEGENDRE = np.polynomial.legendre.leggauss(48)


def _pull(k2: Scalar, alpha2: Scalar, sigma2: Scalar, k3: Scalar, dt: Scalar, o0: Scalar, o1: Scalar) -> _Pull:
    """By quadrature of squares, so that the small variance after a short time is not a difference."""
    x = (1 + _LEGENDRE[0]) / 2
    t, weight = dt * x**3, dt * _LEGENDRE[1] / 2 * 3 * x**2
    own, passed = jnp.exp(-k2 * t), _response(k2, k3, t)
    variance = -jnp.expm1(-2 * k2 * dt) / (2 * k2)
    slope = jnp.sum(weight * own * passed) / variance
    rest = jnp.sum(weight * (passed - slope * own) ** 2)
    surprise = o1 - o0 - jnp.expm1(-k2 * dt) * (o0 - alpha2)
    mean = -jnp.expm1(-k3 * dt) * alpha2 + _response(k2, k3, dt) * (o0 - alpha2) + slope * surprise
    variance = sigma2**2 * variance
    log_density = -0.5 * (surprise**2 / variance + jnp.log(2 * math.pi * variance))
    return _Pull(mean, sigma2**2 * rest, log_density)


def _response(k2: Scalar, k3: Scalar, t: Array) -> Array:
    """k3 (e^{-k2 t} - e^{-k3 t}) / (k3 - k2), also where the rates agree."""
    x = (k3 - k2) * t
    small = jnp.abs(x) < 1e-5
    ratio = jnp.where(small, 1 - x / 2 + x**2 / 6, -jnp.expm1(-x) / jnp.where(small, 1.0, x))
    return k3 * t * jnp.exp(-k2 * t) * ratio


def _transform(series: KillingSeries, ends: _Ends, omega: Complex[Array, " nodes"]) -> tuple[Array, Array]:
    """The integrand of the inversion as factor * exp(exponent)."""
    at = flow(series, omega)
    ((c11, _), (_, c22)) = at.change
    E = jnp.exp(-series.half)
    still_cosh, still_sinh = (1 + E**2) / 2, -jnp.expm1(-2 * series.half) / 2
    trace = (c11 + c22) / 2
    cosh = still_cosh + trace
    sinh2 = still_sinh**2 + trace * (cosh + still_cosh)
    sinh = cosh * jnp.sqrt(sinh2 / cosh**2)
    sinh_change = trace * (cosh + still_cosh) / (sinh + still_sinh)
    stretch = series.dt / at.phi2
    up = stretch * (cosh + sinh)
    down = stretch * E**2 / (cosh + sinh)
    delta = stretch * ((c22 - c11) / 2 + sinh_change)
    ell = jnp.log1p(trace + sinh_change)
    turns = jnp.round((jnp.angle(up) + at.log_phi2.imag - ell.imag) / (2 * math.pi))
    ell = ell + 2j * math.pi * jax.lax.stop_gradient(turns)
    exponent, factor = around_noiseless_path(ends.a0, ends.a1, ends.dimension, up, down)
    exponent = exponent + delta * (ends.a1 - ends.a0) - ends.dimension * ell
    return exponent + omega * ends.distance + omega**2 * ends.variance / 2, factor


def _height(series: KillingSeries, ends: _Ends, omega: Scalar) -> Scalar:
    """Leading asymptotics of the logarithm of the integrand at real omega."""
    at = flow(series, omega)
    ((c11, _), (_, c22)) = at.change
    E2 = jnp.exp(-2 * series.half)
    stretch = series.dt / at.phi2
    bessel = jnp.sqrt(ends.dimension**2 + 4 * ends.a0 * ends.a1 * stretch**2 * E2)
    return (
        omega * ends.distance
        + omega**2 * ends.variance / 2
        - ends.dimension * jnp.log(at.phi2)
        - stretch * (ends.a0 * (E2 + c22) + ends.a1 * (1 + c11))
        + bessel
        - ends.dimension * jnp.log(ends.dimension + bessel)
    )


def _derivatives(f: Callable[[Scalar], Scalar], x: Scalar) -> tuple[Scalar, Scalar]:
    one = jnp.ones_like(x)

    def slope(x: Scalar) -> Scalar:
        return jax.jvp(f, (x,), (one,))[1]

    return jax.jvp(slope, (x,), (one,))


def _edge(series: KillingSeries, sign: float) -> Scalar:
    """The first zero of phi_2 to one side. All its zeros are real, so no step passes the next one."""

    def step(_: Scalar, omega: Scalar) -> Scalar:
        _, curvature = _derivatives(lambda w: jnp.log(flow(series, w).phi2), omega)
        return omega + 0.9 * sign / jnp.sqrt(-curvature)

    return jax.lax.fori_loop(0, _EDGE_STEPS, step, jnp.zeros_like(series.dt))


def _contour(series: KillingSeries, ends: _Ends) -> tuple[Complex[Array, " nodes"], Complex[Array, " nodes"]]:
    low, high = _edge(series, -1.0), _edge(series, 1.0)
    centre, radius = (low + high) / 2, (high - low) / 2

    def step(_: Scalar, state: tuple[Scalar, Scalar, Scalar]) -> tuple[Scalar, Scalar, Scalar]:
        at, below, above = state
        slope, curvature = _derivatives(lambda w: _height(series, ends, w), at)
        below, above = jnp.where(slope < 0, at, below), jnp.where(slope < 0, above, at)
        new = at - slope / curvature
        inside = (new > below) & (new < above)
        return jnp.where(inside, new, (below + above) / 2), below, above

    limit = 1e-6 * radius
    saddle, _, _ = jax.lax.fori_loop(0, _STEPS, step, (jnp.zeros_like(low), low + limit, high - limit))
    _, curvature = _derivatives(lambda w: _height(series, ends, w), saddle)
    sine = (saddle - centre) / radius
    angle = jnp.arcsin(jnp.clip(sine, -1, 1))
    steepest = math.pi / 4 + (_STEEPEST - math.pi / 4) / (1 + ends.variance * radius**2)
    angle = jnp.clip(angle, -steepest, steepest)
    width = 1 / (radius * jnp.cos(angle) * jnp.sqrt(curvature))
    xi = width * REACH / NODES * (np.arange(NODES) + 0.5)
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    omega = saddle + radius * jax.lax.complex(2 * jnp.sinh(xi / 2) ** 2 * sin, -jnp.sinh(xi) * cos)
    step_ = radius * jax.lax.complex(jnp.cosh(xi) * cos, jnp.sinh(xi) * sin) * width * REACH / NODES / math.pi
    seen = jnp.abs(omega) < LIMIT
    return jnp.where(seen, omega, -1j), jnp.where(seen, step_, 0.0)

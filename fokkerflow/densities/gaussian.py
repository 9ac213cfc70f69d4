"""Exact densities that are Gaussian after a change of variable: Ornstein-Uhlenbeck, its seasonal variant, Black-Scholes."""

from __future__ import annotations

import math

import jax.numpy as jnp

from fokkerflow.densities.density import Density
from fokkerflow.densities.registry import register
from fokkerflow.sde.model import Parameters, Scalar, State
from fokkerflow.sde.models import GBM, OU, SeasonalOU


@register("exact", OU)
class OUDensity(Density):
    """Gaussian with mean ``m + (x0 - m) e^{-kappa dt}`` and variance ``sigma^2 (1 - e^{-2 kappa dt}) / (2 kappa)``.

    **Reference:** Uhlenbeck and Ornstein (1930), On the theory of the Brownian motion; Vasicek (1977).
    """

    sde: OU

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        kappa, mean, sigma = p
        drift = (mean - x0[0]) * -jnp.expm1(-kappa * dt)
        return _log_normal(x1[0] - x0[0] - drift, _reverting_variance(kappa, sigma, dt))


@register("exact", SeasonalOU)
class SeasonalOUDensity(Density):
    """Gaussian; the mean follows a damped cosine, the variance is that of the Ornstein-Uhlenbeck process.

    The periodic solution of the mean's equation is ``m + A [kappa^2 cos(w s) + kappa w sin(w s)] / (kappa^2 + w^2)``,
    ``w = 2 pi``, ``s = t - phase``; the distance from it decays like ``e^{-kappa t}``.
    """

    sde: SeasonalOU

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        kappa, mean, amplitude, phase, sigma = p
        w = 2 * math.pi
        start = w * (t0 - phase)
        lag = jnp.arctan2(w, kappa)
        size = amplitude * kappa / jnp.sqrt(kappa**2 + w**2)
        before = size * jnp.cos(start - lag)
        # cos(b) - cos(a) as a product: no cancellation for small dt
        change = -2 * size * jnp.sin(w * dt / 2) * jnp.sin(start - lag + w * dt / 2)
        drift = (mean + before - x0[0]) * -jnp.expm1(-kappa * dt) + change
        return _log_normal(x1[0] - x0[0] - drift, _reverting_variance(kappa, sigma, dt))


@register("exact", GBM)
class GBMDensity(Density):
    """Lognormal: ``log(x1 / x0)`` is Gaussian with mean ``(mu - sigma^2 / 2) dt`` and variance ``sigma^2 dt``."""

    sde: GBM

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        mu, sigma = p
        return _log_normal(jnp.log(x1[0] / x0[0]) - (mu - sigma**2 / 2) * dt, sigma**2 * dt) - jnp.log(x1[0])


def _reverting_variance(kappa: Scalar, sigma: Scalar, dt: Scalar) -> Scalar:
    return sigma**2 * -jnp.expm1(-2 * kappa * dt) / (2 * kappa)


def _log_normal(deviation: Scalar, variance: Scalar) -> Scalar:
    return -(deviation**2 / variance + jnp.log(2 * math.pi * variance)) / 2

"""The exact transition density of the square-root process (Cox, Ingersoll and Ross 1985), also when it is killed at a rate."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.densities.density import Density
from fokkerflow.densities.registry import register
from fokkerflow.densities.special import SHIFT, Number, bessel_factor
from fokkerflow.sde.model import Parameters, Scalar, State
from fokkerflow.sde.models import CIR


@register("exact", CIR)
class CIRDensity(Density):
    """The noncentral chi-squared density of a square-root process.

    With ``c = 2 beta / (sigma^2 (1 - e^{-beta dt}))``, 2 c v1 has the noncentral chi-squared law with
    ``4 alpha beta / sigma^2`` degrees of freedom and noncentrality ``2 c v0 e^{-beta dt}``.

    Valid under the strict Feller condition; no loss of accuracy for small sigma or dt, or far out in the tails.

    **Reference:** Cox, Ingersoll and Ross (1985), A theory of the term structure of interest rates, equation (18).
    """

    sde: CIR

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        alpha, beta, sigma = p
        exponent, factor = killed_transition(x1[0], x0[0], dt, alpha, beta, sigma, jnp.zeros_like(dt))
        return exponent + jnp.log(factor)


def killed_transition(
    v1: Float[Array, ""],
    v0: Float[Array, ""],
    dt: Float[Array, ""],
    alpha: Float[Array, ""],
    beta: Float[Array, ""],
    sigma: Float[Array, ""],
    rate: Number,
) -> tuple[Number, Number]:
    """G = E[ exp(-rate * int_0^dt V_s ds) ; V_dt in dv1 ] / dv1 for ``dV = beta (alpha - V) dt + sigma sqrt(V) dW``.

    With ``q = (beta dt / 2)^2 + rate (sigma dt)^2 / 2``, ``g = sqrt(q)``, ``nu = 2 alpha beta / sigma^2 - 1``,
    ``lambda = 2 / (sigma^2 dt)`` and ``w = g / sinh g``,

        G = lambda (lambda v1)^nu e^{beta dt (1+nu)/2 + beta (v0-v1)/sigma^2}
            w^{1+nu} e^{-lambda (v0+v1) g coth g} I_nu(z) (z/2)^{-nu} ,         z = 2 lambda w sqrt(v0 v1) .

    It is an entire function of q near the half line q > -pi^2, where it is finite. With rate 0 it is the transition density.

    Evaluated as written, exponents as large as 1/sigma^2 cancel. Here everything is expressed by ``epsilon``, the relative
    distance of v1 from where a noiseless path of the killed process would end, and by its logarithm, so that no
    term is much larger than the logarithm of G.

    **Returns:** `exponent` and `factor` with ``G = factor * exp(exponent)``. They are complex if `rate` is.

    **Reference:** Pitman and Yor (1982), A decomposition of Bessel bridges, (2.m); Broadie and Kaya (2006), Exact simulation
    of stochastic volatility, appendix, where it appears divided by its value at rate 0.
    """
    scale = 2 / (sigma**2 * dt)
    a0, a1 = scale * v0, scale * v1
    dimension = 2 * alpha * beta / sigma**2  # nu + 1, half the degrees of freedom
    half = beta * dt / 2
    dq = rate * (sigma * dt) ** 2 / 2
    g = jnp.sqrt(half**2 + dq)
    decay = jnp.expm1(-2 * g)
    up = -2 * g / decay  # g coth g + g
    down = up * (1 + decay)  # g coth g - g
    exponent, factor = around_noiseless_path(a0, a1, dimension, up, down)
    return exponent - dq / (g + half) * (dimension + a0 - a1), scale * factor


def around_noiseless_path(
    a0: Float[Array, ""], a1: Float[Array, ""], dimension: Float[Array, ""], up: Number, down: Number
) -> tuple[Number, Number]:
    """up^(1+nu) a1^nu e^{-a0 down - a1 up} I_nu(z) (z/2)^{-nu}, nu = dimension - 1, z^2 / 4 = (a0 down) (a1 up), accurately.

    Up to a rate that both ends share, every killed square-root process has this form, with its own `up` and `down`.

    **Returns:** `exponent` and `factor`, whose exponential and which are to be multiplied.
    """
    top = dimension - 1 + SHIFT
    root = jnp.sqrt(top**2 + 4 * a0 * a1 * up * down)
    middle = (top + root) / 2
    epsilon = (a1 * up - a0 * down - top) / (a0 * down + middle)
    ratio = a1 * up / middle  # 1 + epsilon, accurate where that is small
    log_ratio = _log_ratio(epsilon, ratio)
    exponent = -a0 * down * (ratio * log_ratio - epsilon) - middle * (epsilon - log_ratio) - SHIFT * log_ratio
    return exponent, up * bessel_factor(dimension - 1, root) / jnp.sqrt(2 * math.pi * root)


def _log_ratio(epsilon: Number, ratio: Number) -> Number:
    """log(1 + epsilon), accurate for small epsilon and for small ratio = 1 + epsilon."""
    near = jnp.abs(epsilon) < 0.5
    return jnp.where(near, jnp.log1p(jnp.where(near, epsilon, 0.0)), jnp.log(jnp.where(near, 1.0, ratio)))

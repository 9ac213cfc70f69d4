"""The variance of the SVCEV model, ``dV = beta (alpha - V) dt + sigma V^gamma dW``, in units of its noise.

With ``dx = dv / (sigma v^gamma)`` (Lamperti) the process is ``dx = b(x) dt + dW``, and a Girsanov transform removes the drift:

    p(x1 | x0) = e^{int_x0^x1 b dx} E[ exp(-int (b^2 + b') / 2 dt) over Brownian paths from x0 to x1 ] .

All formulas hold, with their derivatives, for gamma from 1/2 to 1, the logarithm at gamma = 1 included.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.sde.model import Scalar

Values = Float[Array, "*s"]


class PathTerms(NamedTuple):
    """What a path collects in unit time.

    - `cost`: (b^2 + b') / 2, of the variance alone.
    - `pull`: minus the drift of the log price that is left when mu and ``rho (F(v1) - F(v0))`` are taken out, with
      ``F' = v^{1/2 - gamma} / sigma``: ``v / 2 + rho (beta (alpha - v) F' + (1/2 - gamma) sigma v^{gamma - 1/2} / 2)``.
    - `variance`: v.
    """

    cost: Values
    pull: Values
    variance: Values


class ElasticVariance(NamedTuple):
    """Parameters, and the variance `origin` at which x = 0."""

    alpha: Scalar
    beta: Scalar
    sigma: Scalar
    rho: Scalar
    gamma: Scalar
    origin: Scalar

    def coordinate(self, v: Values) -> Values:
        """x(v) = (v^k - origin^k) / (k sigma), k = 1 - gamma."""
        k, log = 1 - self.gamma, jnp.log(v / self.origin)
        return log * expm1_ratio(k * log) / self._slope()

    def room(self, x: Values) -> Values:
        """(v / origin)^k: falls to zero, and below, where x leaves the range of the coordinate."""
        return 1 + (1 - self.gamma) * self._slope() * x

    def terms(self, x: Values) -> PathTerms:
        """The terms at x, inside the range of the coordinate."""
        alpha, beta, sigma, rho, gamma, origin = self
        scaled = self._slope() * x
        log = jnp.log(origin) + scaled * log1p_ratio((1 - gamma) * scaled)
        v = jnp.exp(log)
        noise = sigma * jnp.exp((gamma - 1) * log)  # of log v
        drift = beta * (alpha / v - 1) / noise
        b = drift - gamma * noise / 2
        slope = -gamma * noise * drift - beta + gamma * (1 - gamma) / 2 * noise**2
        pull = v / 2 + rho * jnp.exp(log / 2) * (drift + (0.5 - gamma) / 2 * noise)
        return PathTerms((b**2 + slope) / 2, pull, v)

    def gauge(self, v0: Scalar, v1: Scalar) -> Scalar:
        """int b dx from v0 to v1."""
        gamma = self.gamma
        up = self.alpha * power_integral(1 - 2 * gamma, v0, v1) - power_integral(2 - 2 * gamma, v0, v1)
        return self.beta / self.sigma**2 * up - gamma / 2 * jnp.log(v1 / v0)

    def _slope(self) -> Scalar:
        """sigma origin^{gamma - 1}, the size of the noise of log v at the origin."""
        return self.sigma * self.origin ** (self.gamma - 1)


def power_integral(m: Scalar, v0: Scalar, v1: Scalar) -> Scalar:
    """int v^{m - 1} dv from v0 to v1, any m, accurate for neighbours."""
    log = jnp.log(v1 / v0)
    return v0**m * log * expm1_ratio(m * log)


def expm1_ratio(u: Values) -> Values:
    """(e^u - 1) / u, differentiable at 0."""
    small = jnp.abs(u) < 1e-4
    series = 1 + u * (1 / 2 + u * (1 / 6 + u * (1 / 24 + u / 120)))
    return jnp.where(small, series, jnp.expm1(u) / jnp.where(small, 1.0, u))


def log1p_ratio(u: Values) -> Values:
    """log(1 + u) / u, differentiable at 0."""
    small = jnp.abs(u) < 1e-3
    series = 1 - u * (1 / 2 - u * (1 / 3 - u * (1 / 4 - u * (1 / 5 - u * (1 / 6 - u / 7)))))
    return jnp.where(small, series, jnp.log1p(jnp.where(small, 0.0, u)) / jnp.where(small, 1.0, u))

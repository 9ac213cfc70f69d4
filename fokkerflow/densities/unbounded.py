"""A model in coordinates without ends: the logarithm above a lower end, the logit between two ends, by Ito's formula.

A simulated path then cannot leave the domain, however coarse it is. The transformation is z = g(x) in each coordinate, so

    drift of z = g'(x) b + g''(x) Sigma_ii / 2        covariance of z = g'(x) Sigma g'(x)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fokkerflow.sde.domain import Domain
from fokkerflow.sde.model import SDE, Matrix, Parameters, Scalar, State

_FURTHEST = 150.0
"""Where the logarithm of the distance to an end is cut off, so that no path of any length overflows."""


def to_line(sde: SDE, x: State) -> State:
    """z = g(x) of a state inside the domain."""
    return jnp.stack([_coordinate(domain, x[i]) for i, domain in enumerate(sde.domains)])


def log_volume(sde: SDE, x: State) -> Scalar:
    """log det g'(x): the log density of x is that of z plus this."""
    return jnp.sum(jnp.stack([_log_slope(domain, x[i]) for i, domain in enumerate(sde.domains)]))


def coefficients(sde: SDE, t: Scalar, z: State, p: Parameters) -> tuple[State, Matrix]:
    """Drift and covariance of z."""
    parts = [_inverse(domain, z[i]) for i, domain in enumerate(sde.domains)]
    x, first, second = (jnp.stack(column) for column in zip(*parts, strict=True))
    Sigma = sde.covariance(t, x, p)
    drift = (sde.drift(t, x, p) - second / first**2 * jnp.diagonal(Sigma) / 2) / first  # g'' = -x'' / x'^3
    return drift, Sigma / first[:, None] / first


def _coordinate(domain: Domain, x: Scalar) -> Scalar:
    if domain.is_line:
        return x
    below = jnp.log(x - domain.lower)
    return below if domain.is_half_line else below - jnp.log(domain.upper - x)


def _log_slope(domain: Domain, x: Scalar) -> Scalar:
    if domain.is_line:
        return jnp.zeros(())
    slope = -jnp.log(x - domain.lower)
    return slope if domain.is_half_line else slope + jnp.log(domain.upper - domain.lower) - jnp.log(domain.upper - x)


def _inverse(domain: Domain, z: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """x and its first two derivatives in z."""
    if domain.is_line:
        return z, jnp.ones_like(z), jnp.zeros_like(z)
    z = jnp.clip(z, -_FURTHEST, _FURTHEST)
    if domain.is_half_line:
        size = jnp.exp(z)
        return domain.lower + size, size, size
    low, high = jax.nn.sigmoid(z), jax.nn.sigmoid(-z)
    slope = (domain.upper - domain.lower) * low * high
    return domain.lower + (domain.upper - domain.lower) * low, slope, slope * (high - low)

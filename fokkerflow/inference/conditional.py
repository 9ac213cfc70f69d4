"""Conditional distribution functions of a transition (Rosenblatt 1952), averaged over posterior draws: three ways to get them.

- `by_flow`: a trained flow has them in closed form.
- `by_integration`: of any one-dimensional density, by Gauss-Legendre quadrature on both sides of the observation.
- `by_simulation`: of any model, from its simulator: the rank of the observation among simulated ones, each coordinate after
  the linear regression on the coordinates before it has been taken out of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow._precision import in_float64
from fokkerflow.densities.density import Density
from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.inference.likelihood import Transitions
from fokkerflow.inference.predictive import Predictive
from fokkerflow.sde.domain import Domain
from fokkerflow.sde.model import Parameters, Scalar, State
from fokkerflow.sde.moments import moments
from fokkerflow.training.trained import Trained

PANELS, NODES = 24, 8
"""Gauss-Legendre panels on each side of the observation, and nodes in each."""
REACH = 20.0
"""Standard deviations to either side of mean and observation that are integrated over. What is beyond is below 1e-5 even for a
lognormal law whose logarithm has standard deviation one."""


class Integrated(NamedTuple):
    """Distribution functions of shape ``(n, 1)``, and for each transition what the density integrates to."""

    values: Float[np.ndarray, "n 1"]
    mass: Float[np.ndarray, " n"]


def by_flow(density: Surrogate, data: Transitions, p: Float[np.ndarray, "k n_p"]) -> Float[np.ndarray, "n d"]:
    """Averages of `Flow.rosenblatt` over draws."""
    return np.asarray(_flow_average(density.trained, data, jnp.asarray(p)))[: int(data.count)]


def by_integration(density: Density, data: Transitions, p: Float[np.ndarray, "k n_p"]) -> Integrated:
    """Averages of the distribution function over draws, for a density in one dimension."""
    values, mass = (np.asarray(a)[: int(data.count)] for a in _integral_average(density, data, jnp.asarray(p)))
    return Integrated(values[:, None], mass)


def by_simulation(rng: np.random.Generator, predicted: Predictive) -> Float[np.ndarray, "n d"]:
    """Ranks of the observations among the paths of `one_step`, spread over their cell so that they are uniform exactly."""
    paths, observed = predicted.paths, predicted.observed
    if observed is None:
        raise ValueError("Only predictions of observed states have ranks.")
    mean = paths.mean(0)
    centred = np.moveaxis(paths - mean, 0, -1)  # (n, d, paths)
    factor = np.linalg.cholesky(centred @ centred.swapaxes(1, 2))
    below = np.sum(np.linalg.solve(factor, centred) < np.linalg.solve(factor, (observed - mean)[..., None]), axis=-1)
    return (below + rng.uniform(size=below.shape)) / (len(paths) + 1)


@in_float64
@eqx.filter_jit
def _flow_average(trained: Trained, data: Transitions, p: Float[Array, "k n_p"]) -> Float[Array, "n d"]:
    def one(x1: State, x0: State, dt: Scalar, t0: Scalar, p: Parameters) -> State:
        flow = trained.at(dt)
        return flow.rosenblatt(x1, flow.condition(t0, dt, x0, p))

    return jnp.mean(jax.lax.map(lambda row: _each(one, data, row), p), axis=0)


@in_float64
@eqx.filter_jit
def _integral_average(
    density: Density, data: Transitions, p: Float[Array, "k n_p"]
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    def one(x1: State, x0: State, dt: Scalar, t0: Scalar, p: Parameters) -> tuple[Scalar, Scalar]:
        below, above = _sides(density, x1, x0, dt, t0, p)
        return below / (below + above), below + above

    values, mass = jax.lax.map(lambda row: _each(one, data, row), p)
    return jnp.mean(values, axis=0), jnp.mean(mass, axis=0)


def _each(one: Callable[..., Any], data: Transitions, p: Float[Array, " n_p"]) -> Any:
    """`one` for every transition; what is the same for all of them is not repeated."""
    axes = (0, 0, 0 if data.dt.ndim else None, 0 if data.t0.ndim else None, None)
    return jax.vmap(one, in_axes=axes)(data.x1, data.x0, data.dt, data.t0, p)


def _sides(density: Density, x1: State, x0: State, dt: Scalar, t0: Scalar, p: Parameters) -> tuple[Scalar, Scalar]:
    """The mass below and above `x1`. On a half line the integration variable is the square root of the distance to its end."""
    domain = density.sde.domains[0]
    mean, covariance = moments(density.sde, t0, dt, x0, p)
    reach = REACH * jnp.sqrt(covariance[0, 0])
    ends = jnp.minimum(mean[0], x1[0]) - reach, jnp.maximum(mean[0], x1[0]) + reach
    low, middle, high = (_enter(domain, jnp.clip(x, domain.lower, domain.upper)) for x in (ends[0], x1[0], ends[1]))

    def log_mass(r: Scalar) -> Scalar:
        x, log_slope = _leave(domain, r)
        return density.log_prob(x[None], x0, dt, p, t0) + log_slope

    return _integral(log_mass, low, middle), _integral(log_mass, middle, high)


def _integral(log_integrand: Callable[[Scalar], Scalar], low: Scalar, high: Scalar) -> Scalar:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    where = ((np.arange(PANELS)[:, None] + (nodes + 1) / 2) / PANELS).ravel()
    values = jax.vmap(log_integrand)(low + (high - low) * where)
    return (high - low) / PANELS * jnp.dot(np.tile(weights / 2, PANELS), jnp.exp(values))


def _enter(domain: Domain, x: Scalar) -> Scalar:
    return jnp.sqrt(x - domain.lower) if domain.is_half_line else x


def _leave(domain: Domain, r: Scalar) -> tuple[Scalar, Scalar]:
    return (domain.lower + r**2, jnp.log(2 * r)) if domain.is_half_line else (r, jnp.zeros_like(r))

"""Errors of a transition density against a reference, as the paper defines them (its section 5, appendices C and D)."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.stats import qmc

from fokkerflow.densities import Density, Surrogate
from fokkerflow.flow import exact_draw
from fokkerflow.inference import log_likelihoods
from fokkerflow.sde.model import SDE
from fokkerflow.sde.moments import moments
from fokkerflow.sde.series import Series
from fokkerflow.sde.simulate import simulate
from fokkerflow.sde.validation import valid_rows
from fokkerflow.training import Law

SUBSTEPS = 100
_REACH = 9.0
"""Densities are integrated this many standard deviations to either side."""


def star(sde: SDE) -> Float[np.ndarray, "1 n"]:
    """The parameters mu* of the paper's data."""
    return np.array([[sde.typical[name] for name in sde.parameters]])


def trajectory(sde: SDE, dt: float, n: int, seed: int, substeps: int = SUBSTEPS) -> Series:
    """The paper's data: `n` observations at mu*, after as many that are dropped."""
    return simulate(sde, sde.typical, dt=dt, n=n, burn_in=n, substeps=substeps, seed=seed)


def relative_errors(
    density: Density, reference: Density, series: Series, p: Float[np.ndarray, "k n"]
) -> Float[np.ndarray, " k"]:
    """|l_q - l_p| / |l_p| of the log likelihood, for each parameter."""
    exact, found = (np.asarray(log_likelihoods(d, series, p)) for d in (reference, density))
    return np.abs(found - exact) / np.abs(exact)


def relative_l2(
    density: Density,
    reference: Density,
    dt: float,
    x0: Float[np.ndarray, "k d"],
    p: Float[np.ndarray, "k n"],
    nodes: int = 96,
) -> Float[np.ndarray, " k"]:
    """The relative L2 error of the density after `dt`, one number for each pair of start and parameters.

    By Gauss-Legendre nodes in coordinates in which the density is close to a standard Gaussian: logarithm of positive
    states, and Gaussian regression on the states before. Two dimensions.
    """
    x, log_volume = _grid(reference.sde, dt, x0, p, nodes)
    q, exact = (np.asarray(d.log_prob_batch(x, x0[:, None], dt, p[:, None])) for d in (density, reference))
    weight = np.exp(log_volume)
    difference = np.sum(weight * (np.exp(q) - np.exp(exact)) ** 2, axis=1)
    return np.sqrt(difference / np.sum(weight * np.exp(2 * exact), axis=1))


def _grid(sde: SDE, dt: float, x0: Any, p: Any, nodes: int) -> tuple[Float[np.ndarray, "k m d"], Float[np.ndarray, "k m"]]:
    unit, weights = np.polynomial.legendre.leggauss(nodes)
    z = np.stack(np.meshgrid(_REACH * unit, _REACH * unit, indexing="ij"), -1).reshape(-1, 2)
    log_weight = np.log(_REACH**2 * np.outer(weights, weights).ravel())
    x, log_slope = jax.jit(jax.vmap(lambda x0, p: _from_gaussian(sde, dt, x0, p, jnp.asarray(z))))(x0, p)
    return np.asarray(x), np.asarray(log_slope) + log_weight


def _from_gaussian(sde: SDE, dt: float, x0: Array, p: Array, z: Float[Array, "m 2"]) -> tuple[Array, Array]:
    """States whose logarithm (first coordinate, lognormal by moments) and residual (second) are z standard deviations."""
    mean, covariance = moments(sde, 0.0, dt, x0, p)
    log_variance = jnp.log1p(covariance[0, 0] / mean[0] ** 2)
    first = mean[0] * jnp.exp(jnp.sqrt(log_variance) * z[:, 0] - log_variance / 2)
    slope = covariance[0, 1] / covariance[0, 0]
    residual = jnp.sqrt(covariance[1, 1] - slope * covariance[0, 1])
    second = mean[1] + slope * (first - mean[0]) + residual * z[:, 1]
    return jnp.stack([first, second], -1), jnp.log(first) + 0.5 * jnp.log(log_variance) + jnp.log(residual)


@eqx.filter_jit
def _scores(reference: Density, x1: Array, x0: Array, dt: Array, p: Array) -> Array:
    return jax.vmap(lambda a, b: jax.grad(lambda q: reference.log_density(a, b, dt, q, jnp.zeros(())))(p))(x1, x0)


def posterior_like(
    reference: Density, series: Series, p: Float[np.ndarray, " n"], count: int, seed: int
) -> Float[np.ndarray, "k n"]:
    """Draws like a posterior's: Gaussian around `p` with the information of the scores there, inside the constraints."""
    x0, x1, dt, _ = series.transitions()
    with jax.enable_x64(True):
        scores = np.asarray(_scores(reference, *(jnp.asarray(a) for a in (x1, x0, dt[0], p))))
    root = np.linalg.inv(np.linalg.cholesky(scores.T @ scores)).T
    draws = p + np.random.default_rng(seed).normal(size=(20 * count, len(p))) @ root.T
    return draws[valid_rows(reference.sde, draws)][:count]


def flow_draws(
    q: Surrogate, dt: float, x0: Float[np.ndarray, "k d"], p: Float[np.ndarray, "k n"], count: int, seed: int
) -> Float[np.ndarray, "k m d"]:
    """`count` quasi-random draws of the flow for each pair of start and parameters."""
    cube = np.clip(qmc.Sobol(q.sde.dimension, rng=seed).random(count), 1e-12, 1 - 1e-12)
    with jax.enable_x64(True):
        return np.asarray(_flow_draws(q, *(jnp.asarray(a, jnp.float64) for a in (dt, x0, p, cube))))


@eqx.filter_jit
def _flow_draws(q: Surrogate, dt: Array, x0: Array, p: Array, cube: Array) -> Array:
    def one(row: tuple[Array, Array]) -> Array:
        flow = q.trained.at(dt)
        condition = flow.condition(jnp.zeros(()), dt, *row)
        return jax.vmap(lambda u: exact_draw(flow, u, condition))(cube)

    return jax.lax.map(one, (x0, p))


def log_ratios(q: Surrogate, reference: Density, dt: float, law: Law, conditions: int, seed: int) -> Float[np.ndarray, " k"]:
    """log q - log p at one draw of the flow for each of many draws of a law."""
    x0, p = law.sample(np.random.default_rng(seed), conditions)
    x = flow_draws(q, dt, x0, p, 4, seed)[np.arange(conditions), np.arange(conditions) % 4]
    return np.asarray(q.log_prob_batch(x, x0, dt, p)) - np.asarray(reference.log_prob_batch(x, x0, dt, p))

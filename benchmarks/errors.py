"""Errors of a transition density against a reference, as the paper defines them (its section 5, appendices C and D)."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.stats import qmc

from fokkerflow.densities import Density, Surrogate
from fokkerflow.flow import exact_draw
from fokkerflow.inference import log_likelihoods
from fokkerflow.report.accuracy_nodes import l2_nodes
from fokkerflow.report.accuracy_nodes import relative_l2 as relative_l2_error
from fokkerflow.report.accuracy_trials import star, trajectory
from fokkerflow.sde.series import Series
from fokkerflow.sde.validation import valid_rows
from fokkerflow.training import Law

__all__ = [
    "flow_draws",
    "log_ratios",
    "posterior_like",
    "relative_errors",
    "relative_l2",
    "star",
    "trajectory",
]


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

    At the nodes of `fokkerflow.report.accuracy_nodes`, `nodes` of them in each of one or two coordinates.
    """
    at = l2_nodes(reference.sde, dt, x0, p, per_axis=nodes)
    q, exact = (np.asarray(d.log_prob_batch(at.x, x0[:, None], dt, p[:, None])) for d in (density, reference))
    return relative_l2_error(q, exact, at.log_weight)


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

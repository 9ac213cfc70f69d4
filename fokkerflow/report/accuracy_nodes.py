"""The relative L2 error of a transition density, and the points at which it is integrated, in any dimension."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.stats import norm, qmc

from fokkerflow._precision import in_float64
from fokkerflow.sde.domain import Domain
from fokkerflow.sde.linalg import solve
from fokkerflow.sde.model import SDE, Parameters, Scalar, State
from fokkerflow.sde.moments import moments

NODES = {1: 384, 2: 96}
"""Gauss-Legendre nodes in each coordinate, by dimension."""

_DRAWS = 8192
"""Quasi-random points in three dimensions or more."""

_REACH = 9.0
"""Densities are integrated this many standard deviations to either side."""

_SPREAD = 1.2
"""Standard deviation of the quasi-random points: what is integrated is quadratic in densities whose own is about 1."""


class Nodes(NamedTuple):
    """States, and the logarithms of their weights in an integral over states, for each of k pairs of start and parameters."""

    x: Float[np.ndarray, "k m d"]
    log_weight: Float[np.ndarray, "k m"]


def l2_nodes(
    sde: SDE, dt: float, x0: Float[np.ndarray, "k d"], p: Float[np.ndarray, "k n"], *, per_axis: int | None = None
) -> Nodes:
    """Points that integrate functions of the density after `dt`.

    In coordinates z in which the density is close to a standard Gaussian: lognormal or logistic-normal by moments for states
    with ends, Gaussian regression on those for the others. In one and two dimensions z runs over Gauss-Legendre nodes (96
    in each of two coordinates), in more over a Sobol sequence of normal draws, whose weights are the inverse of their density.
    """
    z, log_weight = _unit_nodes(sde.dimension, per_axis)
    x, log_slope = _placed(sde, dt, x0, p, z)
    return Nodes(np.asarray(x), np.asarray(log_slope) + log_weight)


def relative_l2(
    log_q: Float[np.ndarray, "k m"], log_p: Float[np.ndarray, "k m"], log_weight: Float[np.ndarray, "k m"]
) -> Float[np.ndarray, " k"]:
    """``||q - p|| / ||p||`` in L2, from log densities at nodes (paper section 5.1).

    Infinite where q is not finite at a node, NaN where p is not.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        weight, q, p = np.exp(log_weight), np.exp(log_q), np.exp(log_p)
        found = np.sqrt(np.sum(weight * (q - p) ** 2, axis=-1) / np.sum(weight * p**2, axis=-1))
    found = np.where(np.all(np.isfinite(q), axis=-1), found, np.inf)
    return np.where(np.all(np.isfinite(p), axis=-1), found, np.nan)


def _unit_nodes(dimension: int, per_axis: int | None) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, " m"]]:
    if dimension not in NODES:
        z = _SPREAD * norm.ppf(np.clip(qmc.Sobol(dimension, rng=0).random(_DRAWS), 1e-12, 1 - 1e-12))
        return z, -np.log(_DRAWS) - np.sum(norm.logpdf(z, scale=_SPREAD), axis=1)
    unit, weights = np.polynomial.legendre.leggauss(per_axis or NODES[dimension])
    axes = np.meshgrid(*[_REACH * unit] * dimension, indexing="ij")
    product = np.prod(np.meshgrid(*[_REACH * weights] * dimension, indexing="ij"), axis=0)
    return np.stack(axes, -1).reshape(-1, dimension), np.log(product.ravel())


@in_float64
def _placed(sde: SDE, dt: float, x0: Any, p: Any, z: Any) -> tuple[Array, Array]:
    return jax.jit(jax.vmap(partial(_from_gaussian, sde, dt, z)))(x0, p)


def _from_gaussian(
    sde: SDE, dt: float, z: Float[Array, "m d"], x0: State, p: Parameters
) -> tuple[Float[Array, "m d"], Float[Array, " m"]]:
    """States that are z standard deviations out, and log |dx/dz|. States with ends first, each by itself."""
    mean, C = moments(sde, 0.0, dt, x0, p)
    placed: dict[int, Array] = {}
    log_slope = jnp.zeros(len(z))
    for i in sorted(range(len(sde.domains)), key=lambda i: (sde.domains[i].is_line, i)):
        if not sde.domains[i].is_line:
            placed[i], slope = _inside(sde.domains[i], mean[i], C[i, i], z[:, i])
        else:
            placed[i], slope = _regressed(mean, C, placed, i, z[:, i])
        log_slope = log_slope + slope
    return jnp.stack([placed[i] for i in range(len(mean))], -1), log_slope


def _inside(domain: Domain, mean: Scalar, variance: Scalar, z: Float[Array, " m"]) -> tuple[Array, Array]:
    """Above a lower end lognormal by moments; between two ends logistic-normal, with the spread that the slope gives."""
    low = mean - domain.lower
    if domain.is_half_line:
        s2 = jnp.log1p(variance / low**2)
        above = low * jnp.exp(jnp.sqrt(s2) * z - s2 / 2)
        return domain.lower + above, jnp.log(above) + 0.5 * jnp.log(s2)
    width = domain.upper - domain.lower
    share = low / width
    s = jnp.sqrt(variance) / (width * share * (1 - share))
    at = jnp.log(share) - jnp.log1p(-share) + s * z
    log_slope = jax.nn.log_sigmoid(at) + jax.nn.log_sigmoid(-at) + jnp.log(width * s)
    return domain.lower + width * jax.nn.sigmoid(at), log_slope


def _regressed(mean: State, C: Array, placed: dict[int, Array], i: int, z: Float[Array, " m"]) -> tuple[Array, Array]:
    """Gaussian regression of coordinate i on those that are placed."""
    centre, variance = mean[i], C[i, i]
    if placed:
        known = jnp.array(list(placed))
        slopes = solve(C[jnp.ix_(known, known)], C[known, i])
        centre = mean[i] + jnp.stack(list(placed.values()), -1) @ slopes - mean[known] @ slopes
        variance = variance - slopes @ C[known, i]
    root = jnp.sqrt(variance)
    return centre + root * z, jnp.broadcast_to(jnp.log(root), z.shape)

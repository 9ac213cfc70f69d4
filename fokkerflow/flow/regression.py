"""Gaussian regression of a coordinate on its parents: what centres and scales a column beyond its own moments.

The slopes come from the covariance of X_tau. The residual is Gaussian with a scale that follows the noise: in Heston's model
the log price has variance (1 - rho^2) int V ds given the variance path, which is large where v ended high. With
R(x) = Sigma_ii - Sigma_ip Sigma_pp^-1 Sigma_pi at a state whose parents are x, averaged along the way from x0 to x by
Simpson's rule, the residual scale at x is that of the moments times sqrt(mean R(x) / mean R(m)), m the mean.
It tends to one as tau -> 0, and makes the tails of a column right where a linear regression is far off.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.sde.linalg import cholesky
from fokkerflow.sde.model import SDE, Matrix, Parameters, State

Scalar = Float[Array, ""]
_SMALLEST_RESIDUAL = 1e-12  # variance share, should a correlation round to one
_LEAST_NOISE = 1e-6  # of Sigma_ii, should the noise be singular


class Regression(NamedTuple):
    """Linear regression of a coordinate on its parents: coefficients and the log standard deviation of the residual."""

    slopes: Float[Array, " parents"]
    log_residual: Scalar


class Origin(NamedTuple):
    """Where a transition starts."""

    t0: Scalar
    tau: Scalar
    x0: State
    p: Parameters


def regress(correlation: Matrix, i: int, parents: tuple[int, ...]) -> Regression | None:
    """Regression of coordinate `i`, all in units of standard deviations; None without parents."""
    if not parents:
        return None
    order = jnp.array([*parents, i])
    L = cholesky(correlation[order][:, order])
    n = len(parents)
    slopes: list[Scalar] = [L[n, j] for j in range(n)]
    for j in reversed(range(n)):  # L_parents' slopes = last row of L, by back substitution
        slopes[j] = (slopes[j] - sum(L[k, j] * slopes[k] for k in range(j + 1, n))) / L[j, j]
    residual = jnp.maximum(1.0 - jnp.sum(L[n, :n] ** 2), _SMALLEST_RESIDUAL)
    return Regression(jnp.stack(slopes), 0.5 * jnp.log(residual))


def log_noise_ratio(
    sde: SDE, i: int, parents: tuple[int, ...], origin: Origin, mean: State, values: Float[Array, " parents"]
) -> Scalar:
    """Half the log of mean R(values) / mean R(mean): how much wider the residual of coordinate `i` is than at the mean."""
    where, start = jnp.array(parents), origin.x0[jnp.array(parents)]

    def averaged(end: Float[Array, " parents"]) -> Scalar:
        def noise(share: float, at: Float[Array, " parents"]) -> Scalar:
            sigma = sde.covariance(origin.t0 + share * origin.tau, mean.at[where].set(at), origin.p)
            return _residual_variance(sigma, i, parents)

        return noise(0.0, start) + 4 * noise(0.5, (start + end) / 2) + noise(1.0, end)

    return 0.5 * jnp.log(averaged(values) / averaged(mean[where]))


def _residual_variance(sigma: Matrix, i: int, parents: tuple[int, ...]) -> Scalar:
    """The variance of coordinate `i` given its parents, by elimination."""
    order = jnp.array([*parents, i])
    block = sigma[order][:, order]
    for j in range(len(parents)):
        pivot = jnp.where(block[j, j] > 0, block[j, j], 1.0)
        block = block - jnp.outer(block[:, j], block[j]) / pivot
    return jnp.maximum(block[-1, -1], _LEAST_NOISE * sigma[i, i])

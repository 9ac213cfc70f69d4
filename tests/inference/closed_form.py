"""Geometric Brownian motion under a flat prior: a posterior in closed form.

Increments of log S are Normal(m dt, sigma^2 dt) with m = mu - sigma^2 / 2. A flat prior of (mu, sigma) is one of (m, sigma), so
sigma^2 is inverse gamma with shape (n - 2) / 2 and scale SS / 2, and m given sigma is normal around the mean increment.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

import fokkerflow
from fokkerflow import GBM, Series
from fokkerflow.densities.density import Density
from fokkerflow.sde.functions import from_functions
from fokkerflow.sde.model import SDE, Parameters, Scalar, State

DT = 0.25
N = 48


def series(n: int = N, seed: int = 3) -> Series:
    rng = np.random.default_rng(seed)
    log_s = np.concatenate([[0.0], np.cumsum(0.02 + 0.15 * rng.normal(size=n))])
    return Series(DT * np.arange(n + 1), np.exp(log_s), ("s",))


DATA = series()
EXACT = fokkerflow.density("exact", GBM())
GROWING = from_functions(
    lambda x, p: p.mu * x,
    lambda x, p: (p.sigma * x) ** 2,
    states={"s": "positive"},
    parameters={"mu": 0.2, "sigma": 0.3},
    constraints=["mu > 0", "0 < sigma < sqrt(2*mu)"],
    name="growing",
)
"""The same with a constraint: the mean of log S grows, m > 0."""


class Growing(Density):
    """Its exact density."""

    sde: SDE = GROWING

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        return EXACT.log_density(x1, x0, dt, p, t0)


def increments(data: Series) -> np.ndarray:
    return np.diff(np.log(data.states[:, 0]))


def mle(data: Series) -> tuple[float, float]:
    r = increments(data)
    sigma2 = np.mean((r - r.mean()) ** 2) / DT
    return float(r.mean() / DT + sigma2 / 2), float(np.sqrt(sigma2))


def log_likelihood(data: Series, mu: float, sigma: np.ndarray) -> np.ndarray:
    """Of the states, so with the Jacobian of the logarithm."""
    r = increments(data)[:, None]
    each = stats.norm.logpdf(r, (mu - np.square(sigma) / 2) * DT, sigma * np.sqrt(DT))
    return each.sum(0) - np.log(data.states[1:, 0]).sum()


def posterior_draws(data: Series, size: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Independent draws."""
    rng, r = np.random.default_rng(seed), increments(data)
    n, squares = len(r), np.sum((r - r.mean()) ** 2) / DT
    sigma2 = stats.invgamma(0.5 * (n - 2), scale=squares / 2).rvs(size, random_state=rng)
    m = r.mean() / DT + np.sqrt(sigma2 / (n * DT)) * rng.normal(size=size)
    return {"mu": m + sigma2 / 2, "sigma": np.sqrt(sigma2)}

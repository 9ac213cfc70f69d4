"""Posterior draws of the Ornstein-Uhlenbeck model without a sampler: its regular observations are a linear regression."""

from __future__ import annotations

import numpy as np

import fokkerflow


def ou_draws(series: fokkerflow.Series, rng: np.random.Generator, n: int = 200) -> np.ndarray:
    """(kappa, mean, sigma) from the normal-inverse-gamma posterior of x1 on x0, where 0 < slope < 1."""
    x, dt = series.states[:, 0], series.gaps[0]
    design = np.stack([x[:-1], np.ones(len(x) - 1)], 1)
    inverse = np.linalg.inv(design.T @ design)
    best = inverse @ design.T @ x[1:]
    rest = np.sum((x[1:] - design @ best) ** 2)
    variance = rest / rng.chisquare(len(x) - 3, n)
    slope, level = (best + np.sqrt(variance)[:, None] * rng.multivariate_normal(np.zeros(2), inverse, n)).T
    good = (slope > 1e-3) & (slope < 1 - 1e-6)
    kappa = -np.log(slope[good]) / dt
    sigma = np.sqrt(variance[good] * 2 * kappa / (1 - slope[good] ** 2))
    return np.stack([kappa, level[good] / (1 - slope[good]), sigma], 1)

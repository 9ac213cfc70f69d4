"""The parameter laws of the paper (appendices C, D and E) and transitions out to ten standard deviations."""

import jax
import numpy as np

from fokkerflow.sde.models import BDFS
from fokkerflow.sde.moments import moments

LAWS = {
    "train": ((0.1, 0.08), (3.0, 0.2), (0.25, 0.08), (0.05, 0.03), (-0.8, 0.08)),
    "test": ((0.075, 0.1), (3.0, 0.2), (0.25, 0.1), (0.05, 0.1), (-0.8, 0.1)),
}


def draw_parameters(rng, law, n):
    """Rejection from the truncated normals of the law."""
    kept = []
    while len(kept) < n:
        alpha, beta, sigma, mu, rho = (rng.normal(mean, sd) for mean, sd in LAWS[law])
        if alpha > 0 and beta > 0 and 0 < sigma < np.sqrt(2 * alpha * beta) and -1 < rho < 1:
            kept.append((alpha, beta, sigma, mu, rho))
    return np.array(kept)


def draw_transitions(rng, p, reach=10.0):
    """(x1, x0, dt): gaps from a day to a year, variances from 1e-4 to 0.5, ends up to `reach` standard deviations away."""
    n = len(p)
    alpha, beta, sigma, mu, rho = p.T
    dt = np.exp(rng.uniform(np.log(1 / 365), 0, n))
    v0 = np.exp(rng.uniform(np.log(1e-4), np.log(0.5), n))
    decay = np.exp(-beta * dt)
    mean = alpha + (v0 - alpha) * decay
    sd = np.sqrt(sigma**2 / beta * (v0 * decay * (1 - decay) + alpha * (1 - decay) ** 2 / 2))
    z = rng.uniform(-reach, reach, (2, n))
    root = np.sqrt(mean) + z[0] * sd / (2 * np.sqrt(mean))
    v1 = np.where(root > 0.02 * np.sqrt(mean), root**2, mean * np.exp(-np.abs(z[0])))
    integral = dt * (v0 + v1 + mean) / 3
    slope = rho * beta / sigma - 0.5
    y1 = mu * dt + rho / sigma * (v1 - v0 - alpha * beta * dt) + slope * integral + z[1] * np.sqrt((1 - rho**2) * integral)
    return np.stack([v1, y1], 1), np.stack([v0, np.zeros(n)], 1), dt


SVCEV_LAWS = {
    "train": ((0.1, 0.08), (3.0, 0.2), (0.25, 0.08), (0.05, 0.03), (-0.8, 0.08)),
    "test": ((0.1, 0.03), (3.0, 0.2), (0.25, 0.03), (0.05, 0.03), (-0.8, 0.07)),
}
BDFS_LAW = ((1.5, 4.0), (0.005, 0.25), (0.05, 0.4), (4.0, 10.0), (-1.5, 0.25), (1e-3, 0.25), (7.5, 13.0), (0.1, 0.9))


def draw_svcev_parameters(rng, law, n):
    """Rejection from the truncated normals of appendix D."""
    kept = []
    while len(kept) < n:
        alpha, beta, sigma, mu, rho = (rng.normal(mean, sd) for mean, sd in SVCEV_LAWS[law])
        gamma = rng.normal(1.0, 0.2)
        if alpha > 0 and beta > 0 and 0 < sigma < np.sqrt(2 * alpha * beta) and -1 < rho < 1 and 0.5 <= gamma <= 1:
            kept.append((alpha, beta, sigma, mu, rho, gamma))
    return np.array(kept)


def draw_svcev_transitions(rng, p, reach=8.0, lowest=1e-3):
    """(x1, x0, dt) as above: the variance in units of its noise, the log price around its drift at the mean variance."""
    n = len(p)
    alpha, beta, sigma, mu, rho, gamma = p.T
    dt = np.exp(rng.uniform(np.log(1 / 365), 0, n))
    v0 = np.exp(rng.uniform(np.log(lowest), np.log(0.5), n))
    mean = alpha + (v0 - alpha) * np.exp(-beta * dt)
    z = rng.uniform(-reach, reach, (2, n))
    step = z[0] * sigma * np.sqrt(-np.expm1(-2 * beta * dt) / (2 * beta)) * mean ** (gamma - 1)
    k = np.maximum(1 - gamma, 1e-9)
    v1 = mean * np.maximum(1 + k * step, 0.05) ** (1 / k)
    integral = dt * (v0 + v1 + mean) / 3
    power = 1.5 - gamma
    pull = mean / 2 + rho * (
        beta * (alpha - mean) * mean ** (power - 1) / sigma + sigma * (0.5 - gamma) / 2 * mean ** (gamma - 0.5)
    )
    y1 = mu * dt + rho / (sigma * power) * (v1**power - v0**power) - dt * pull + z[1] * np.sqrt((1 - rho**2) * integral)
    return np.stack([v1, y1], 1), np.stack([v0, np.zeros(n)], 1), dt


def draw_bdfs_parameters(rng, n):
    """Rejection from the uniforms of appendix E."""
    low, high = np.array(BDFS_LAW).T
    kept = []
    while len(kept) < n:
        p = rng.uniform(low, high)
        if p[2] < np.sqrt(2 * p[0] * p[1]):
            kept.append(p)
    return np.array(kept)


def draw_bdfs_transitions(rng, p, reach=10.0):
    """(x1, x0, dt): gaps from a day to a year, variances from 1e-3 to 0.75, ends by the moments of the model."""
    n = len(p)
    dt = np.exp(rng.uniform(np.log(1 / 365), 0, n))
    x0 = np.stack([np.exp(rng.uniform(np.log(1e-3), np.log(0.75), n)), *rng.uniform(-2.5, 2.5, (2, n))], 1)
    mean, cov = (np.asarray(m) for m in jax.vmap(lambda t, x, q: moments(BDFS(), 0.0, t, x, q))(dt, x0, p))
    z = rng.uniform(-reach, reach, (n, 3))
    x1 = mean + np.einsum("nij,nj->ni", np.linalg.cholesky(cov), z)
    root = 1 + z[:, 0] * np.sqrt(cov[:, 0, 0]) / (2 * mean[:, 0])
    x1[:, 0] = mean[:, 0] * np.where(root > 0.05, root**2, np.exp(-np.abs(z[:, 0])))
    return x1, x0, dt

"""The parameter laws of the paper (appendix C) and transitions out to ten standard deviations."""

import numpy as np

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

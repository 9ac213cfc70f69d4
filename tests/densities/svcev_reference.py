"""Expectations under the SVCEV model by another way than the package: the backward equation in log v, solved spectrally.

The model is homogeneous in the log price, so ``g(v0) = E[e^{i u (Y_dt - y0)} f(V_dt) | v0]`` solves, with z = log v,

    dg/dt = (beta (alpha / v - 1) - s^2 / 2 + i u rho s sqrt(v)) g_z + s^2 g_zz / 2 + (i u (mu - v / 2) - u^2 v / 2) g ,

``s = sigma v^{gamma - 1}``. Chebyshev collocation in z, with g_z = 0 at ends that no path comes near, and a matrix exponential
in time: no discretisation of time, no Fourier inversion, no bridge.
"""

import numpy as np
from scipy.linalg import expm


def expectation(f, u, v0, dt, p, low, high, n=140):
    """E[e^{i u (Y - y0)} f(V)]; u may be complex."""
    alpha, beta, sigma, mu, rho, gamma = p
    z, first = _chebyshev(n, np.log(low), np.log(high))
    v = np.exp(z)
    s = sigma * v ** (gamma - 1)
    drift = beta * (alpha / v - 1) - s**2 / 2 + 1j * u * rho * s * np.sqrt(v)
    operator = drift[:, None] * first + (s**2 / 2)[:, None] * (first @ first)
    operator += np.diag(1j * u * (mu - v / 2) - u**2 * v / 2)
    # The end values are those that make the slope vanish there.
    ends, inner = [0, n - 1], np.arange(1, n - 1)
    lift = -np.linalg.solve(first[np.ix_(ends, ends)], first[np.ix_(ends, inner)])
    reduced = operator[np.ix_(inner, inner)] + operator[np.ix_(inner, ends)] @ lift
    g = expm(dt * reduced) @ f(v[inner])
    values = np.concatenate([(lift @ g)[:1], g, (lift @ g)[1:]])
    return _interpolate(np.log(v0), z, values)


def _chebyshev(n, low, high):
    """Increasing nodes and the matrix of the first derivative (Trefethen 2000, chapter 6)."""
    k = np.arange(n)
    x = -np.cos(np.pi * k / (n - 1))
    c = np.where((k == 0) | (k == n - 1), 2.0, 1.0) * (-1.0) ** k
    gaps = x[:, None] - x + np.eye(n)
    D = np.outer(c, 1 / c) / gaps
    D -= np.diag(D.sum(1))
    return low + (high - low) * (x + 1) / 2, 2 * D / (high - low)


def _interpolate(at, z, values):
    n = len(z)
    k = np.arange(n)
    weights = (-1.0) ** k * np.where((k == 0) | (k == n - 1), 0.5, 1.0) / (at - z)
    return weights @ values / weights.sum()

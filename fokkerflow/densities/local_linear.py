"""Mean and covariance of a linear diffusion with constant noise, also where its rates are zero, equal or fast."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from fokkerflow.sde.model import Matrix, Scalar, State

_TERMS = 14
_SHORT = 0.5  # the series are used for steps whose rate times time is at most this
_MAX_DOUBLINGS = 24


def linear_law(drift: State, slope: Matrix, trend: State, noise: Matrix, dt: Scalar) -> tuple[State, Matrix]:
    """E and Cov of X_dt - x0 for ``dX = (drift + slope (X - x0) + trend t) dt + S dW``, ``S S' = noise``.

        E = int_0^dt e^{slope (dt - s)} (drift + trend s) ds        Cov = int_0^dt e^{slope s} noise e^{slope' s} ds

    Both are blocks of the exponential of a larger matrix (Van Loan 1978). That matrix also has the entries of ``-slope``, whose
    exponential grows where the process reverts: so the blocks are made for a short step, by their series, and
    the step is doubled, ``Cov(2h) = Cov(h) + F Cov(h) F'`` with ``F = e^{slope h}``: sums of positive terms only.

    Rates times `dt` up to 8e6; beyond, NaN.
    """
    d = len(drift)
    size = jax.lax.stop_gradient(jnp.max(jnp.abs(drift)) + dt * jnp.max(jnp.abs(trend)))
    size = jnp.where(size > 0, size, 1.0)
    A = jnp.zeros((d + 2, d + 2)).at[:d, :d].set(slope * dt)
    A = A.at[:d, d].set(trend * dt**2 / size).at[:d, d + 1].set(drift * dt / size).at[d, d + 1].set(1.0)
    rate = jax.lax.stop_gradient(jnp.max(jnp.sum(jnp.abs(A), axis=1)))
    doublings = jnp.maximum(jnp.ceil(jnp.log2(jnp.maximum(rate, _SHORT) / _SHORT)), 0.0)
    scale = jnp.where(doublings <= _MAX_DOUBLINGS, jnp.exp2(-doublings), jnp.nan)
    F, C = _exponential(A * scale), _short_covariance(slope * dt * scale, noise * dt * scale)

    def double(state: tuple[Matrix, Matrix], k: Scalar) -> tuple[tuple[Matrix, Matrix], None]:
        F, C = state
        G = F[:d, :d]
        more = k < doublings
        return (jnp.where(more, F @ F, F), jnp.where(more, C + G @ C @ G.T, C)), None

    (F, C), _ = jax.lax.scan(double, (F, C), jnp.arange(float(_MAX_DOUBLINGS)))
    return size * F[:d, d + 1], (C + C.T) / 2


def _exponential(A: Matrix) -> Matrix:
    term = total = jnp.eye(len(A))
    for k in range(1, _TERMS + 1):
        term = A @ term / k
        total = total + term
    return total


def _short_covariance(A: Matrix, S: Matrix) -> Matrix:
    """``int_0^1 e^{A s} S e^{A' s} ds = sum_k L^k(S) / (k+1)!`` with ``L(X) = A X + X A'``."""
    term = total = S
    for k in range(1, _TERMS + 4):  # the norm of L is twice that of A
        product = A @ term
        term = product + product.T
        total = total + term / math.factorial(k + 1)
    return total

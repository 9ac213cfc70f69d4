"""Small dense linear algebra that keeps the relative accuracy of small entries and compiles to plain arithmetic."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_THETA = 0.5  # the Taylor polynomial is used for matrices of at most this norm
_MAX_SQUARINGS = 24  # norms up to 8e6


def expm(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The exponential of a small matrix by scaling and squaring of its Taylor polynomial of degree 16.

    Unlike the Pade approximant of `jax.scipy.linalg.expm` there is no linear solve: every operation is a product or a sum,
    so an entry that is tiny because time is short, or because a mode decays fast, is as accurate *relatively* as the
    others (Higham, "The scaling and squaring method for the matrix exponential revisited", 2005, on why a solve is not).
    The truncation error is 0.5^17/17! = 2e-20; s squarings amplify rounding by at most 2^s. Differentiable in both modes.
    Infinite norms, and norms beyond 8e6, give NaN.
    """
    norm = jax.lax.stop_gradient(jnp.max(jnp.sum(jnp.abs(A), axis=0)))
    squarings = jnp.maximum(jnp.ceil(jnp.log2(jnp.maximum(norm, _THETA) / _THETA)), 0.0)
    E = _taylor16(A * jnp.where(squarings <= _MAX_SQUARINGS, jnp.exp2(-squarings), jnp.nan))

    def square(E: Array, k: Array) -> tuple[Array, None]:
        return jnp.where(k < squarings, E @ E, E), None

    return jax.lax.scan(square, E, jnp.arange(float(_MAX_SQUARINGS)))[0]


def _taylor16(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """sum_k A^k / k! for k <= 16 with six products (Paterson and Stockmeyer 1973)."""
    A2 = A @ A
    A3 = A2 @ A
    A4 = A2 @ A2
    powers = (jnp.eye(A.shape[0], dtype=A.dtype), A, A2, A3)
    c = [1 / math.factorial(k) for k in range(17)]
    E = c[16] * A4
    for k in (12, 8, 4):
        E = A4 @ (E + sum(c[k + j] * powers[j] for j in range(4)))
    return E + powers[0] + A + c[2] * A2 + c[3] * A3


def cholesky(C: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Lower triangular L with L L' = C, for a positive semi-definite C of a few rows.

    Unrolled into scalar arithmetic, which fuses into the loops around it where a LAPACK call would interrupt them. A pivot that
    rounding made negative or zero gives a zero column, and a zero derivative, instead of NaN.
    """
    d = C.shape[0]
    L = [[jnp.zeros((), C.dtype) for _ in range(d)] for _ in range(d)]
    for j in range(d):
        pivot = C[j, j] - sum(L[j][k] ** 2 for k in range(j))
        positive = pivot > 0
        root = jnp.sqrt(jnp.where(positive, pivot, 1.0))
        L[j][j] = jnp.where(positive, root, 0.0)
        for i in range(j + 1, d):
            L[i][j] = jnp.where(positive, (C[i, j] - sum(L[i][k] * L[j][k] for k in range(j))) / root, 0.0)
    return jnp.array(L)


def solve(A: Float[Array, "n n"], B: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
    """The solution of A X = B for a matrix of a few dozen rows, by elimination with partial pivoting.

    In plain arithmetic, unlike `jax.numpy.linalg.solve`: batches of LAPACK calls share the threads of the program that waits
    for them, and where threads are few that program can wait for ever. Differentiable in both modes, by solving again.
    """
    return jax.lax.custom_linear_solve(
        lambda x: A @ x, B, lambda _, b: _eliminate(A, b), transpose_solve=lambda _, b: _eliminate(A.T, b)
    )


def _eliminate(A: Array, B: Array) -> Array:
    n = A.shape[0]
    rows = jnp.arange(n)

    def step(M: Array, k: Array) -> tuple[Array, None]:
        p = jnp.argmax(jnp.where(rows < k, -1.0, jnp.abs(M[:, k])))
        above, pivot = M[k], M[p]
        M = M.at[p].set(above).at[k].set(pivot / pivot[k])
        return M - jnp.where(rows == k, 0.0, M[:, k])[:, None] * M[k], None

    return jax.lax.scan(step, jnp.concatenate([A, B.reshape(n, -1)], 1), rows)[0][:, n:].reshape(B.shape)

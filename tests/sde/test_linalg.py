"""The small matrix functions against arithmetic of 60 digits."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from fokkerflow.sde.linalg import cholesky, expm, solve


def reference(A: np.ndarray) -> np.ndarray:
    with mpmath.workdps(60):
        return np.array(mpmath.expm(mpmath.matrix(A.tolist())).tolist(), dtype=float)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 30.0])
def test_exponential_of_a_generator_is_accurate_entry_by_entry(scale: float, rng: np.random.Generator) -> None:
    """Non-negative off the diagonal, as when all entries of the exponential are positive and none is a difference."""
    A = scale * np.tril(rng.uniform(0, 1, (6, 6)))
    np.fill_diagonal(A, -scale * rng.uniform(0, 1, 6))
    np.testing.assert_allclose(expm(jnp.array(A)), reference(A), rtol=3e-13, atol=0)


def test_exponential_of_a_rotation() -> None:
    A = np.array([[0.0, -40.0], [40.0, 0.0]])
    np.testing.assert_allclose(expm(jnp.array(A)), [[np.cos(40), -np.sin(40)], [np.sin(40), np.cos(40)]], atol=1e-12)


def test_exponential_refuses_what_it_cannot_do() -> None:
    assert np.all(np.isnan(expm(jnp.array([[0.0, 1e9], [-1e9, 0.0]]))))


def test_derivative_of_the_exponential(rng: np.random.Generator) -> None:
    """d exp(A) in direction B is the upper right block of exp([[A, B], [0, A]]) (Van Loan 1978)."""
    A, B = rng.normal(size=(2, 4, 4))
    _, tangent = jax.jvp(expm, (jnp.array(A),), (jnp.array(B),))
    np.testing.assert_allclose(tangent, reference(np.block([[A, B], [np.zeros((4, 4)), A]]))[:4, 4:], rtol=1e-11)
    weights = rng.normal(size=(4, 4))
    gradient = jax.grad(lambda A: jnp.sum(weights * expm(A)))(jnp.array(A))
    np.testing.assert_allclose(jnp.sum(gradient * B), jnp.sum(weights * tangent), rtol=1e-11)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_cholesky(d: int, rng: np.random.Generator) -> None:
    a = rng.normal(size=(d, d))
    C = a @ a.T + 0.1 * np.eye(d)
    np.testing.assert_allclose(cholesky(jnp.array(C)), np.linalg.cholesky(C), rtol=1e-11, atol=1e-13)


def test_cholesky_of_a_singular_matrix_is_finite_with_its_derivative() -> None:
    C = jnp.array([[4.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 9.0]])
    L = cholesky(C)
    np.testing.assert_allclose(L @ L.T, C, atol=1e-15)
    assert np.all(np.isfinite(jax.jacfwd(cholesky)(C)))
    assert np.all(np.isfinite(jax.jacrev(cholesky)(jnp.zeros((3, 3)))))


def test_solve_against_numpy_with_derivatives() -> None:
    rng = np.random.default_rng(7)
    A, B = rng.normal(size=(4, 12, 12)), rng.normal(size=(4, 12, 2))
    A[0, 0, 0] = 0.0  # needs a pivot
    assert np.allclose(jax.vmap(solve)(A, B), np.linalg.solve(A, B), rtol=1e-9, atol=1e-11)
    assert np.allclose(solve(jnp.asarray(A[1]), jnp.asarray(B[1, :, 0])), np.linalg.solve(A[1], B[1, :, 0]), rtol=1e-9)
    X, C = np.linalg.solve(A[2], B[2]), rng.normal(size=(12, 2))
    dA, dB = jax.grad(lambda A, B: jnp.sum(C * solve(A, B)), (0, 1))(jnp.asarray(A[2]), jnp.asarray(B[2]))
    back = np.linalg.solve(A[2].T, C)
    assert np.allclose(dB, back, rtol=1e-8)
    assert np.allclose(dA, -back @ X.T, rtol=1e-8)

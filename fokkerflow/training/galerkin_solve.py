"""Three ways to solve the least squares of Neural Galerkin for theta_dot: LSMR on a stored Jacobian or without one, Cholesky.

All minimise the same function of zeta (paper section 3.1; damping as in Fong and Saunders 2011):

    sum_i w_i^2 (grad_theta log q(x_i) . zeta - f_i)^2 + damping sum_j D_j^2 zeta_j^2,
    D_j^2 = g_j + (mean of g^(1/4))^4,     g_j = sum_i w_i^2 (d log q(x_i) / d theta_j)^2.

With D it matters little in which units a weight is. Next to a Dirac start of width 1e-3 the derivatives with respect to the
means of the first layer are a thousand times those of all else, and without D a damping that is harmless for the one
suppresses the other. The mean keeps weights that are hardly felt from moving far; of fourth roots, so that a few large ones do
not decide it, and no median, whose kinks would cost the Runge-Kutta step its order. D also preconditions LSMR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import lineax as lx
from jaxtyping import Array, Float, Int

from fokkerflow.flow import Flow
from fokkerflow.training.galerkin_system import Rows, log_densities_of_theta
from fokkerflow.training.residual import Point
from fokkerflow.training.theta_path import Theta

METHODS = ("cholesky", "lsmr", "lsmr-matrix-free")
Columns = Int[Array, " c"]
_CHUNK = 512  # points whose gradients are held at once where the Jacobian is not stored


class LeastSquares(NamedTuple):
    """How to solve.

    **Attributes:**

    - `method`: "cholesky" factorises the normal equations, summed in chunks: n m^2 operations, m^2 numbers. "lsmr" stores the
      Jacobian, n m numbers, and iterates on it, as the paper does. "lsmr-matrix-free" iterates on products by automatic
      differentiation and stores neither: for more weights than fit.
    - `damping`: relative to the scale above.
    - `tolerance`, `max_iterations`: of LSMR. It may stop early without complaint; that is a regularisation too.
    """

    method: str
    damping: float
    tolerance: float
    max_iterations: int

    def solve(self, flow: Flow, theta: Theta, rows: Rows, felt: Columns) -> Theta:
        """theta_dot at `theta`; `felt` are the weights that the density depends on, the rest stay where they are."""
        solvers = {"cholesky": self._by_cholesky, "lsmr": self._with_jacobian, "lsmr-matrix-free": self._without_jacobian}
        found = solvers[self.method]
        return jnp.zeros_like(theta).at[felt].set(found(flow, theta, rows, felt))

    def _by_cholesky(self, flow: Flow, theta: Theta, rows: Rows, felt: Columns) -> Float[Array, " c"]:
        def add(total: tuple[Array, Array], chunk: Rows) -> tuple[tuple[Array, Array], None]:
            jacobian = _weighted_gradients(flow, theta, chunk.points, chunk.weights)[:, felt]
            gram, moment = total
            return (gram + jacobian.T @ jacobian, moment + jacobian.T @ (chunk.weights * chunk.targets)), None

        empty = (jnp.zeros((felt.size, felt.size)), jnp.zeros(felt.size))
        (gram, moment), _ = jax.lax.scan(add, empty, _chunks(rows))
        scale = _scale(jnp.diagonal(gram))
        factor = jax.scipy.linalg.cho_factor(gram / scale / scale[:, None] + self.damping * jnp.eye(felt.size))
        return jax.scipy.linalg.cho_solve(factor, moment / scale) / scale

    def _with_jacobian(self, flow: Flow, theta: Theta, rows: Rows, felt: Columns) -> Float[Array, " c"]:
        jacobian = _weighted_gradients(flow, theta, rows.points, rows.weights)[:, felt]
        scale = _scale(jnp.sum(jacobian**2, axis=0))
        return self._lsmr(lambda z: jacobian @ (z / scale), rows, felt.size) / scale

    def _without_jacobian(self, flow: Flow, theta: Theta, rows: Rows, felt: Columns) -> Float[Array, " c"]:
        _, change = jax.linearize(log_densities_of_theta(flow, rows.points), theta)
        scale = _scale(_squared_gradients(flow, theta, rows)[felt])

        def product(z: Float[Array, " c"]) -> Float[Array, " n"]:
            moved = jnp.zeros_like(theta).at[felt].set(z / scale, unique_indices=True)
            return jnp.where(rows.weights > 0, rows.weights * change(moved), 0.0)

        return self._lsmr(product, rows, felt.size) / scale

    def _lsmr(self, product: Callable[[Array], Array], rows: Rows, size: int) -> Float[Array, " c"]:
        """Lineax's LSMR has no damping, which is the same as further rows ``sqrt(damping) z = 0``."""
        root = jnp.sqrt(self.damping)
        damped = lx.FunctionLinearOperator(lambda z: (product(z), root * z), jax.ShapeDtypeStruct((size,), jnp.float64))
        right = (rows.weights * rows.targets, jnp.zeros(size))
        method = lx.LSMR(rtol=self.tolerance, atol=self.tolerance, max_steps=self.max_iterations)
        return lx.linear_solve(damped, right, method, throw=False).value


def _scale(squares: Float[Array, " c"]) -> Float[Array, " c"]:
    """D, from the sums of squares of the columns."""
    return jnp.sqrt(squares + jnp.mean(squares**0.25) ** 4)


def _weighted_gradients(flow: Flow, theta: Theta, points: Point, w: Float[Array, " n"]) -> Float[Array, "n m"]:
    """w_i grad_theta log q(x_i); zero where the weight is, whatever the gradient."""

    def gradient(point: Point) -> Theta:
        alone = jax.tree.map(lambda leaf: leaf[None], point)
        return jax.grad(lambda t: log_densities_of_theta(flow, alone)(t)[0])(theta)

    return jnp.where(w[:, None] > 0, w[:, None] * jax.vmap(gradient)(points), 0.0)


def _squared_gradients(flow: Flow, theta: Theta, rows: Rows) -> Theta:
    """The diagonal of the Gram matrix."""

    def add(total: Array, chunk: Rows) -> tuple[Array, None]:
        return total + jnp.sum(_weighted_gradients(flow, theta, chunk.points, chunk.weights) ** 2, axis=0), None

    return jax.lax.scan(add, jnp.zeros_like(theta), _chunks(rows))[0]


def _chunks(rows: Rows) -> Rows:
    """Rows in chunks of equal size; the last one is filled up with rows of weight zero."""
    n = rows.targets.size
    size = min(_CHUNK, n)
    missing = -n % size

    def split(leaf: Array) -> Array:
        filled = jnp.concatenate([leaf, jnp.broadcast_to(leaf[:1], (missing, *leaf.shape[1:]))])
        return filled.reshape(-1, size, *leaf.shape[1:])

    points, targets, w = jax.tree.map(split, rows)
    return Rows(points, targets, w * (jnp.arange(n + missing).reshape(-1, size) < n))

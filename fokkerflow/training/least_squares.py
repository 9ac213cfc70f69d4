"""Regularised Gauss-Newton steps with a memory: the least squares of the space-time trainer.

Every iteration looks at fresh points, so one Gram matrix alone is noisy. Recursive least squares (Plackett 1950) keeps an
exponentially weighted sum of the linearised systems instead: with Jacobian J_i and residual r_i at theta_i,

    G <- rho G + J_i' J_i / n ,        h <- rho h + (J_i' J_i theta_i - J_i' r_i) / n ,

the minimiser of the remembered quadratic is G theta = h, and the step from theta has gradient G theta - h.

The products and factors are NumPy's and SciPy's, outside of JAX: their BLAS is four times as fast at J'J as XLA on a CPU, and
ten times at the Cholesky factor, and these two are most of an iteration (``benchmarks/training.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

Theta = Float[Array | np.ndarray, " m"]
Gram = Float[Array | np.ndarray, "m m"]
_EXTREME = 20.0  # cutoffs
_FLOOR = 1e-9  # of the mean diagonal, for weights that the residual does not feel


class Memory(NamedTuple):
    """The remembered normal equations."""

    gram: Gram
    target: Theta


def forget(theta: Theta) -> Memory:
    """A memory of nothing."""
    return Memory(np.zeros((theta.size, theta.size)), np.zeros(theta.size))


def remember(memory: Memory, rho: float, gram: Gram, gradient: Theta, theta: Theta) -> Memory:
    """Add the system ``(gram, gradient)`` found at `theta`; what was known fades by `rho`."""
    gram, gradient, theta = (np.asarray(a) for a in (gram, gradient, theta))
    return Memory(rho * np.asarray(memory.gram) + gram, rho * np.asarray(memory.target) + gram @ theta - gradient)


def step(memory: Memory, theta: Theta, damping: float) -> Theta:
    """The Levenberg-Marquardt step from `theta`, with Marquardt's scaling by the diagonal; NaN if the system is singular."""
    remembered = np.asarray(memory.gram)  # as a JAX array after a resumption: products would round differently
    diagonal = np.diagonal(remembered)
    gradient = remembered @ np.asarray(theta) - np.asarray(memory.target)
    damped = remembered + np.diag(damping * (diagonal + _FLOOR * np.mean(diagonal)))
    try:
        factor = scipy.linalg.cho_factor(damped, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return np.full_like(gradient, np.nan)
    return -scipy.linalg.cho_solve(factor, gradient, check_finite=False)


def gram(jacobian: Float[Array, "n m"]) -> Gram:
    """J'J, of which NumPy computes one triangle.

    In single precision it would be twice as fast again, but the directions that the last digits decide matter: the damping
    cannot fall below 1e-6 then, and the residual of a Heston flow ends half again as large.
    """
    J = np.asarray(jacobian)
    return J.T @ J


def robust_weights(residuals: Float[Array, " n"], cutoff: float, power: float) -> Float[Array, " n"]:
    r"""Weights w so that (w r)^2 is r^2 up to the cutoff, grows like \|r\|^(2 - 2 power) above it, and is bounded far beyond.

    The cutoff is in units of the median of \|r\|. Next to an inaccessible boundary a density that is still wrong has a
    residual like the inverse distance, 1e10 and more, where there is hardly any mass: such points must have no say at all.
    """
    scale = cutoff * jnp.median(jnp.abs(residuals)) + jnp.finfo(residuals.dtype).tiny
    moderate, extreme = 1 + (residuals / scale) ** 2, 1 + (residuals / (_EXTREME * scale)) ** 2
    return moderate ** (-power / 2) * extreme ** ((power - 1) / 2)

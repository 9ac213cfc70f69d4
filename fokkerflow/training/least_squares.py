"""Regularised Gauss-Newton steps with a memory: the least squares of the space-time trainer.

Every iteration looks at fresh points, so one Gram matrix alone is noisy. Recursive least squares (Plackett 1950) keeps an
exponentially weighted sum of the linearised systems instead: with Jacobian J_i and residual r_i at theta_i,

    G <- rho G + J_i' J_i / n ,        h <- rho h + (J_i' J_i theta_i - J_i' r_i) / n ,

the minimiser of the remembered quadratic is G theta = h, and the step from theta has gradient G theta - h.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Theta = Float[Array, " m"]
Gram = Float[Array, "m m"]
_EXTREME = 20.0  # cutoffs
_FLOOR = 1e-9  # of the mean diagonal, for weights that the residual does not feel


class Memory(NamedTuple):
    """The remembered normal equations."""

    gram: Gram
    target: Theta


def forget(theta: Theta) -> Memory:
    """A memory of nothing."""
    return Memory(jnp.zeros((theta.size, theta.size)), jnp.zeros_like(theta))


def remember(memory: Memory, rho: Float[Array, ""] | float, gram: Gram, gradient: Theta, theta: Theta) -> Memory:
    """Add the system ``(gram, gradient)`` found at `theta`; what was known fades by `rho`."""
    return Memory(rho * memory.gram + gram, rho * memory.target + gram @ theta - gradient)


def step(memory: Memory, theta: Theta, damping: Float[Array, ""] | float) -> Theta:
    """The Levenberg-Marquardt step from `theta`, with Marquardt's scaling by the diagonal."""
    diagonal = jnp.diagonal(memory.gram) + _FLOOR * jnp.mean(jnp.diagonal(memory.gram))
    gradient = memory.gram @ theta - memory.target
    factor = jax.scipy.linalg.cho_factor(memory.gram + damping * jnp.diag(diagonal))
    return -jax.scipy.linalg.cho_solve(factor, gradient)


def robust_weights(residuals: Float[Array, " n"], cutoff: float, power: float) -> Float[Array, " n"]:
    r"""Weights w so that (w r)^2 is r^2 up to the cutoff, grows like \|r\|^(2 - 2 power) above it, and is bounded far beyond.

    The cutoff is in units of the median of \|r\|. Next to an inaccessible boundary a density that is still wrong has a
    residual like the inverse distance, 1e10 and more, where there is hardly any mass: such points must have no say at all.
    """
    scale = cutoff * jnp.median(jnp.abs(residuals)) + jnp.finfo(residuals.dtype).tiny
    moderate, extreme = 1 + (residuals / scale) ** 2, 1 + (residuals / (_EXTREME * scale)) ** 2
    return moderate ** (-power / 2) * extreme ** ((power - 1) / 2)

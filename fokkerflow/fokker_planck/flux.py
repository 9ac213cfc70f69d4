"""Probability flux, and how much of it leaves through a face of the box: paper appendix B.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow.sde.model import SDE, Parameters, Scalar, State

Box = Sequence[tuple[float, float]]


def flux(density: Callable[[State], Scalar], sde: SDE, t: Scalar, x: State, p: Parameters) -> State:
    """J = b q - (1/2) div(Sigma q) at `x`, of shape ``(d,)``."""
    spread = jax.jacfwd(lambda z: sde.covariance(t, z, p) * density(z))(x)
    return sde.drift(t, x, p) * density(x) - 0.5 * jnp.einsum("ijj->i", spread)


def flux_through_face(
    density: Callable[[State], Scalar],
    sde: SDE,
    t: Scalar,
    p: Parameters,
    *,
    box: Box,
    axis: int,
    side: Literal["lower", "upper"],
    nodes: int = 64,
) -> tuple[Scalar, Scalar]:
    """The integral and the maximum of \\|J . n\\| over one face of a box, n its outer normal.

    **Arguments:**

    - `density`: q as a function of x.
    - `box`: ``(lower, upper)`` for each coordinate, finite.
    - `axis`, `side`: which face.
    - `nodes`: Gauss-Legendre nodes along each direction of the face.

    **Returns:** the integral of the absolute normal flux over the face, and its maximum over the nodes.
    """
    d = sde.dimension
    if len(box) != d or not np.all(np.isfinite(box)):
        raise ValueError(f"Got box {box!r}, expected {d} finite pairs (lower, upper), one for each of {', '.join(sde.states)}.")
    if not 0 <= axis < d:
        raise ValueError(f"Got axis {axis}, expected 0 to {d - 1}: {', '.join(sde.states)}.")
    if side not in ("lower", "upper"):
        raise ValueError(f"Got side {side!r}, expected 'lower' or 'upper'.")
    points, weights = _face_rule(box, axis, box[axis][side == "upper"], nodes)
    normal_flux = jnp.abs(jax.vmap(lambda x: flux(density, sde, t, x, p)[axis])(points))
    return jnp.dot(weights, normal_flux), jnp.max(normal_flux)


def _face_rule(box: Box, axis: int, value: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Points ``(n, d)`` and weights ``(n,)`` of a product rule over the face ``x[axis] = value``."""
    unit, unit_weights = np.polynomial.legendre.leggauss(nodes)
    grids, factors = [], []
    for i, (lower, upper) in enumerate(box):
        grids.append(np.array([value]) if i == axis else lower + (upper - lower) * (unit + 1) / 2)
        factors.append(np.ones(1) if i == axis else (upper - lower) * unit_weights / 2)
    points = np.stack(np.meshgrid(*grids, indexing="ij"), -1).reshape(-1, len(box))
    weights = np.prod(np.stack(np.meshgrid(*factors, indexing="ij"), -1), -1).reshape(-1)
    return points, weights

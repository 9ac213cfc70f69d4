"""Where a log density is largest, and how it curves there: Newton's method in unconstrained coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Vector = Float[np.ndarray, " n"]
Objective = Callable[[Vector], tuple[float, Vector]]
"""Value and gradient."""

_STEP = 1e-4
"""Of the central differences of the gradient that make the Hessian; its relative error is about the square."""
_FLOOR = 1e-9
"""Eigenvalues of the Hessian count as at least this share of the largest."""
_HALVINGS = 30
_CONVERGED = 1e-9
_AT_REST = 1e-5
"""Half the squared length of the Newton step in standard deviations: what the value would still gain. Rounding may end a climb
above the first; below the second it has arrived all the same."""


class Peak(NamedTuple):
    """A maximum.

    **Attributes:** the point, value and gradient there, Hessian, whether Newton's method came to rest, and evaluations.
    """

    point: Vector
    value: float
    gradient: Vector
    hessian: Float[np.ndarray, "n n"]
    converged: bool
    evaluations: int

    @property
    def covariance(self) -> Float[np.ndarray, "n n"]:
        """The inverse of the negative Hessian; directions in which the density does not fall count by their curvature."""
        values, vectors = modified(self.hessian)
        return (vectors / values) @ vectors.T


def modified(hessian: Float[np.ndarray, "n n"]) -> tuple[Vector, Float[np.ndarray, "n n"]]:
    """Eigenvalues of the negative Hessian made positive, and eigenvectors."""
    values, vectors = np.linalg.eigh(-hessian)
    sizes = np.abs(values)
    return np.maximum(sizes, max(_FLOOR * sizes.max(), 1e-12)), vectors


def hessian_by_differences(objective: Objective, point: Vector, free: Float[np.ndarray, " k"] | None = None) -> np.ndarray:
    """Central differences of the exact gradient, symmetrised; rows and columns that are not free are minus the unit matrix."""
    n = len(point)
    rows = -np.eye(n)
    chosen = range(n) if free is None else free
    for i in chosen:
        step = _STEP * max(1.0, abs(point[i])) * np.eye(n)[i]
        (_, up), (_, down) = objective(point + step), objective(point - step)
        rows[i] = (up - down) / (2 * step[i])
    rows = np.where(np.isfinite(rows), rows, 0.0)
    return (rows + rows.T) / 2


def climb(objective: Objective, start: Vector, *, steps: int = 200) -> Peak:
    """Newton's method with a modified Hessian and halving of steps, from a point where the value is finite.

    The Hessian costs two gradients for each coordinate. Between two of them it is updated by the rule of Broyden, Fletcher,
    Goldfarb and Shanno; where that comes to rest, or does not get on, a fresh one decides.
    """
    calls = 0

    def counted(u: Vector) -> tuple[float, Vector]:
        nonlocal calls
        calls += 1
        value, gradient = objective(u)
        return float(value), np.asarray(gradient)

    point, (value, gradient) = np.asarray(start, float), counted(start)
    hessian, fresh = hessian_by_differences(counted, point), True
    for _ in range(steps):
        values, vectors = modified(hessian)
        step = vectors @ ((vectors.T @ gradient) / values)
        gain = float(gradient @ step) / 2
        found = _along(counted, point, step, value, gain) if gain > _CONVERGED else None
        if found is None and fresh:
            return Peak(point, value, gradient, hessian, gain < _AT_REST, calls)
        if found is None:
            hessian, fresh = hessian_by_differences(counted, point), True
            continue
        hessian, fresh = _updated(-(vectors * values) @ vectors.T, found[0] - point, found[2] - gradient), False
        point, value, gradient = found
    return Peak(point, value, gradient, hessian_by_differences(counted, point), False, calls)


def _updated(hessian: np.ndarray, step: Vector, change: Vector) -> np.ndarray:
    """The BFGS update of a negative definite Hessian; left as it is where the function curves upwards."""
    towards = hessian @ step
    if not change @ step < -1e-12 * np.linalg.norm(change) * np.linalg.norm(step):
        return hessian
    return hessian - np.outer(towards, towards) / (step @ towards) + np.outer(change, change) / (change @ step)


def _along(objective: Objective, point: Vector, step: Vector, value: float, gain: float) -> tuple[Vector, float, Vector] | None:
    """The first point along a step, halved until the value rises by a part of what was promised."""
    for k in range(_HALVINGS):
        share = 0.5**k
        there = point + share * step
        new, gradient = objective(there)
        if np.isfinite(new) and np.all(np.isfinite(gradient)) and new >= value + 1e-4 * share * gain:
            return there, new, gradient
    return None


def highest(objective: Objective, starts: Iterable[Vector], *, climbs: int = 2) -> Peak:
    """The highest of the maxima reached from the best few starting points.

    **Raises:** ValueError if the value is not finite at any of them.
    """
    rated = [(float(objective(u)[0]), i, u) for i, u in enumerate(starts)]
    usable = sorted((r for r in rated if np.isfinite(r[0])), key=lambda r: -r[0])
    if not usable:
        raise ValueError("the log density is not finite at any starting point")
    return max((climb(objective, u) for _, _, u in usable[:climbs]), key=lambda peak: peak.value)

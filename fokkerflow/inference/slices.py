"""Likelihood slices: the log likelihood along each parameter with the others fixed, paper section 5.1 and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fokkerflow.densities.density import Density
from fokkerflow.inference.likelihood import log_likelihoods
from fokkerflow.sde.series import Series
from fokkerflow.sde.validation import check_parameters, parameter_vector

_RELATIVE_STEP = 1e-3
_REACH = 3.5
"""A slice reaches this many of its own standard deviations to either side."""


@dataclass(frozen=True)
class Slice:
    """The log likelihood along one parameter.

    **Attributes:** name of the parameter, the values of it that satisfy the model's constraints, the log likelihood there,
    and the value through which the slice passes.
    """

    parameter: str
    values: np.ndarray
    log_likelihood: np.ndarray
    through: float

    @property
    def maximiser(self) -> float:
        return float(self.values[np.argmax(self.log_likelihood)])

    @property
    def interval(self) -> tuple[float, float]:
        """The values whose log likelihood is within 1.92 of the largest: 95 % if the other parameters were known."""
        close = self.values[self.log_likelihood >= self.log_likelihood.max() - 1.92]
        return float(close[0]), float(close[-1])


def slices(density: Density, series: Series | Sequence[Series], at: Any, *, points: int = 61) -> list[Slice]:
    """A slice of the log likelihood through `at` along each parameter, wide enough to show its peak.

    **Arguments:**

    - `at`: parameters through which the slices pass, as an array or by name.
    - `points`: evaluations per slice.
    """
    if points < 3:
        raise ValueError(f"Got points = {points}, expected at least 3.")
    p = np.asarray(parameter_vector(density.sde, at))
    check_parameters(density.sde, p)
    peaks, scales = _parabolas(density, series, p)
    low, high = np.minimum(peaks - _REACH * scales, p), np.maximum(peaks + _REACH * scales, p)
    along = np.linspace(low, high, points, axis=1)
    grid = np.repeat(p[None, None], len(p), 0).repeat(points, 1)
    grid[np.arange(len(p)), :, np.arange(len(p))] = along
    values = np.asarray(log_likelihoods(density, series, grid.reshape(-1, len(p)))).reshape(len(p), points)
    result = []
    for i, name in enumerate(density.sde.parameters):
        kept = np.isfinite(values[i])
        result.append(Slice(name, grid[i, kept, i], values[i, kept], float(p[i])))
    return result


def _parabolas(density: Density, series: Series | Sequence[Series], p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each slice peaks and how wide it is, from central differences at `p`."""
    steps = _RELATIVE_STEP * np.maximum(np.abs(p), 1e-2)
    moves = np.diag(steps)
    rows = np.concatenate([p[None], p + moves, p - moves])
    centre, up, down = np.split(np.asarray(log_likelihoods(density, series, rows)), [1, 1 + len(p)])
    with np.errstate(invalid="ignore"):  # -inf - -inf at the edge of a constraint
        curvature, slope = (2 * centre - up - down) / steps**2, (up - down) / (2 * steps)
    usable = np.isfinite(curvature) & (curvature > 0) & np.isfinite(slope)
    curvature, slope = np.where(usable, curvature, 1.0), np.where(usable, slope, 0.0)
    scales = np.where(usable, 1 / np.sqrt(curvature), np.maximum(np.abs(p), 1e-2) / _REACH)
    return p + np.clip(slope * scales**2, -2 * _REACH * scales, 2 * _REACH * scales), scales

"""Profile likelihood: along each parameter the log likelihood, maximised over all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.stats import chi2

from fokkerflow.inference.estimate import Estimate
from fokkerflow.inference.peak import Peak, climb
from fokkerflow.inference.target import LIKELIHOOD, Target, parameters, value_and_gradient

_REACH = 3.0
"""A profile reaches this many standard errors to either side."""
_WITHOUT_ERROR = 0.3
"""Where there is no standard error, this share of the value."""


@dataclass(frozen=True)
class Profile:
    """The profile likelihood along one parameter.

    **Attributes:**

    - `parameter`: its name.
    - `values`: of it, increasing.
    - `log_likelihood`: the largest there is with this value.
    - `others`: where it is reached: all parameters, of shape ``(points, n)``.
    - `best`: the maximum likelihood estimate of the parameter, and the log likelihood there.
    """

    parameter: str
    values: Float[np.ndarray, " k"]
    log_likelihood: Float[np.ndarray, " k"]
    others: Float[np.ndarray, "k n"]
    best: tuple[float, float]

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Values whose log likelihood is within half the chi-square quantile of the largest; infinite where it is not left.

        The log likelihood is interpolated as a signed root, which is linear for a parabola.
        """
        if not 0 < level < 1:
            raise ValueError(f"Got level = {level:g}, expected a number between 0 and 1.")
        reach = np.sqrt(chi2.ppf(level, df=1))
        drop = np.sqrt(np.maximum(2 * (self.best[1] - self.log_likelihood), 0.0))
        signed = np.where(self.values < self.best[0], -drop, drop)
        low = np.interp(-reach, signed, self.values, left=-np.inf) if signed[0] <= -reach else -np.inf
        high = np.interp(reach, signed, self.values, right=np.inf) if signed[-1] >= reach else np.inf
        return float(low), float(high)


def profiles(
    target: Target, best: Estimate, start: Peak, *, points: int, progress: Callable[[str, float], None] | None = None
) -> Iterator[Profile]:
    """A profile along each parameter, from the maximum outwards: each point starts from its neighbour.

    **Arguments:**

    - `best`, `start`: the maximum likelihood estimate, and the same in unconstrained coordinates.
    - `progress`: called with the name of the parameter and the share of all work that is done.
    """
    n = len(best.names)
    for i, name in enumerate(best.names):
        grid = _grid(target, best, i, points)
        middle = int(np.searchsorted(grid, best.point[i]))
        found: dict[int, tuple[float, np.ndarray]] = {}
        for side in (range(middle, len(grid)), range(middle - 1, -1, -1)):
            u = start.point
            for k in side:
                value, u, p = _maximised(target, i, grid[k], u)
                found[k] = (value, p)
                if progress is not None:
                    progress(name, (i + len(found) / len(grid)) / n)
        heights, others = zip(*(found[k] for k in range(len(grid))), strict=True)
        yield Profile(name, grid, np.array(heights), np.array(others), (float(best.point[i]), best.log_likelihood))


def _grid(target: Target, best: Estimate, i: int, points: int) -> Float[np.ndarray, " k"]:
    """Values within reach, kept inside what the other parameters can make room for: the ends that are plain numbers."""
    error = np.sqrt(best.covariance[i, i])
    value, given = best.point[i], target.prior.transform.ranges[i]
    reach = _REACH * (error if np.isfinite(error) else _WITHOUT_ERROR * max(abs(value), 1e-3))
    numbers = {name: np.nan for name in best.names}
    with np.errstate(all="ignore"):
        low, high = (float(end) for end in target.prior.transform.bounds(i, numbers, np))
    low, high = (given.lower if np.isnan(low) else low), (given.upper if np.isnan(high) else high)
    inset = 1e-3 * reach
    return np.linspace(max(value - reach, low + inset), min(value + reach, high - inset), points)


def _maximised(target: Target, i: int, value: float, u: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The largest log likelihood with parameter `i` held at a value, and where; -inf if no room is found for it."""
    fixed = np.full(len(u), np.nan)
    fixed[i] = value

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        height, gradient = value_and_gradient(target, LIKELIHOOD, u, fixed)
        return float(height), np.asarray(gradient)

    if not np.isfinite(objective(u)[0]):
        return -np.inf, u, _at(target, u, fixed)
    peak = climb(objective, u)
    return peak.value, peak.point, _at(target, peak.point, fixed)


def _at(target: Target, u: np.ndarray, fixed: np.ndarray) -> Any:
    return np.asarray(parameters(target, jnp.asarray(u), jnp.asarray(fixed))[0])

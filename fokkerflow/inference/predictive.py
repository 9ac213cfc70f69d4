"""Posterior predictive paths: data as the fitted model would make them, at the times of the data and beyond.

Every path has its own parameters, drawn from the posterior, so that bands hold what is not known about them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from fokkerflow.inference.draws import exactly, parameter_draws, pooled
from fokkerflow.inference.steps import Steps, steps
from fokkerflow.sde.model import SDE
from fokkerflow.sde.series import Series
from fokkerflow.sde.simulate import simulate_paths

LEVELS = (0.5, 0.9)
_MOST_GROUPS = 8
"""Transitions of equal gap are simulated in one call; with more different gaps than this, each has its own, of equal shape."""


@dataclass(frozen=True)
class Predictive:
    """Simulated paths.

    **Attributes:**

    - `times`: of shape ``(n,)``.
    - `paths`: of shape ``(paths, n, d)``.
    - `states`: the names of the coordinates.
    - `observed`: the data at these times, of shape ``(n, d)``; None for a forecast.
    """

    times: Float[np.ndarray, " n"]
    paths: Float[np.ndarray, "paths n d"]
    states: tuple[str, ...]
    observed: Float[np.ndarray, "n d"] | None = None

    @property
    def median(self) -> Float[np.ndarray, "n d"]:
        return np.median(self.paths, axis=0)

    def bands(self, levels: Sequence[float] = LEVELS) -> dict[float, tuple[np.ndarray, np.ndarray]]:
        """By level, the ends ``(n, d)`` of the central band that holds this share of the paths at each time."""
        return {level: self._band(level) for level in levels}

    def coverage(self, level: float) -> Float[np.ndarray, " d"]:
        """The share of the observations inside the band of this level, for each coordinate."""
        if self.observed is None:
            raise ValueError("A forecast has no observations to cover. Ask one_step or replicate.")
        low, high = self._band(level)
        return np.mean((self.observed >= low) & (self.observed <= high), axis=0)

    def _band(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        if not 0 < level < 1:
            raise ValueError(f"Got level = {level:g}, expected one between 0 and 1, such as 0.9.")
        low, high = np.quantile(self.paths, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return low, high


def replicate(sde: SDE, series: Series, draws: Any, *, paths: int = 200, substeps: int = 100, seed: int = 0) -> Predictive:
    """Paths from the first observation on, at the times of the data: what else could have happened?

    **Arguments:**

    - `sde`: the model.
    - `series`: the data.
    - `draws`: posterior draws; see `fokkerflow.inference.draws.parameter_draws`.
    - `paths`: how many; draws are taken evenly spaced, or more than once if there are fewer.
    - `substeps`, `seed`: as in `fokkerflow.simulate`.
    """
    _single(sde, series)
    found = _run(sde, series.states[0], draws, series.gaps, float(series.times[0]), paths, substeps, seed)
    return Predictive(series.times, found, tuple(sde.states), series.states)


def forecast(
    sde: SDE,
    series: Series,
    draws: Any,
    *,
    times: Any = None,
    steps: int | None = None,
    paths: int = 200,
    substeps: int = 100,
    seed: int = 0,
) -> Predictive:
    """Paths from the last observation on.

    **Arguments:** those of `replicate`, and one of

    - `times`: increasing times after the last observation, which need not be equally spaced.
    - `steps`: how many, the usual (median) gap of the data apart.

    **Returns:** paths that begin with the last observation.
    """
    _single(sde, series)
    last = float(series.times[-1])
    ahead = _ahead(series, times, steps)
    found = _run(sde, series.states[-1], draws, np.diff(ahead, prepend=last), last, paths, substeps, seed)
    return Predictive(np.concatenate([[last], ahead]), found, tuple(sde.states))


def one_step(
    sde: SDE, series: Series | Sequence[Series], draws: Any, *, paths: int = 200, substeps: int = 100, seed: int = 0
) -> Predictive:
    """For every transition the next state, simulated from the observed one before it.

    The observations are exchangeable with the paths of their time if the model is right: a band of level 0.9 covers nine in
    ten of them. The arguments are those of `replicate`; several series can be given.
    """
    data = steps(sde, series)
    p = exactly(pooled(parameter_draws(sde, draws)), paths)
    found = np.empty((paths, *data.x1.shape))
    for number, rows in enumerate(_groups(sde, data)):
        unique = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> 1)
        starts, parameters = np.repeat(data.x0[rows], paths, axis=0), np.tile(p, (len(rows), 1))
        dt, t0 = float(data.dt[rows[0]]), float(data.t0[rows[0]])
        ends = simulate_paths(sde, parameters, starts, dt=dt, n=2, substeps=substeps, t0=t0, seed=unique)[:, 1]
        found[:, rows] = ends.reshape(len(rows), paths, -1).swapaxes(0, 1)
    return Predictive(data.t0 + data.dt, found, tuple(sde.states), data.x1)


def _groups(sde: SDE, data: Steps) -> list[np.ndarray]:
    """Transitions that can be simulated together: the same gap, and for a model that depends on time the same start."""
    keys = np.stack([np.round(np.log(data.dt), 9), np.zeros(len(data.dt)) if sde.autonomous else data.t0], axis=1)
    _, group = np.unique(keys, axis=0, return_inverse=True)
    if group.max() >= _MOST_GROUPS:
        return [np.array([row]) for row in range(len(data.dt))]
    return [np.flatnonzero(group == g) for g in range(group.max() + 1)]


def _single(sde: SDE, series: Series) -> None:
    if not isinstance(series, Series):
        raise TypeError(f"Got {type(series).__name__}, expected one fokkerflow.Series: predict several one after the other.")
    steps(sde, series)


def _ahead(series: Series, times: Any, count: int | None) -> np.ndarray:
    if (times is None) == (count is None):
        raise ValueError("Say how far to forecast: either times=, after the last observation, or steps=, how many gaps.")
    if count is not None:
        if count < 1:
            raise ValueError(f"Got steps = {count}, expected at least 1.")
        return series.times[-1] + np.median(series.gaps) * np.arange(1, count + 1)
    ahead = np.atleast_1d(np.asarray(times, np.float64))
    if ahead.ndim != 1 or not ahead.size or not np.all(np.diff(ahead, prepend=series.times[-1]) > 0):
        raise ValueError(f"Got times = {times!r:.100}, expected increasing times after the last one, {series.times[-1]:.10g}.")
    return ahead


def _run(
    sde: SDE, x0: np.ndarray, draws: Any, gaps: np.ndarray, t0: float, paths: int, substeps: int, seed: int
) -> Float[np.ndarray, "paths n d"]:
    if paths < 1:
        raise ValueError(f"Got paths = {paths}, expected at least 1.")
    p = exactly(pooled(parameter_draws(sde, draws)), paths)
    return simulate_paths(sde, p, x0, dt=gaps, n=len(gaps) + 1, substeps=substeps, t0=t0, seed=seed)

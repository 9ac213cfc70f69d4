"""Several densities on the same data: log likelihood, time, and how far the posterior moves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fokkerflow.densities.density import Density
from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.inference.draws import parameter_draws, pooled
from fokkerflow.inference.likelihood import log_likelihood
from fokkerflow.inference.posterior import Posterior
from fokkerflow.inference.prior import Prior
from fokkerflow.sde.series import Series

_REPETITIONS = 7


@dataclass(frozen=True)
class Compared:
    """One density; the first of a comparison is what the others are compared with.

    **Attributes:**

    - `name`: what it is called.
    - `log_likelihood`: at the posterior mean of the first density, or at the parameters that were given.
    - `relative_error`: of it, against that of the first.
    - `seconds`: of one log likelihood, compiled, the median of seven.
    - `sampling_seconds`: of the posterior, with compilation; None if it was not sampled.
    - `shift`: of the posterior mean of each parameter, in posterior standard deviations of the first density.
    - `width`: the posterior standard deviation of each parameter, relative to that of the first.
    """

    name: str
    log_likelihood: float
    relative_error: float
    seconds: float
    sampling_seconds: float | None
    shift: Mapping[str, float]
    width: Mapping[str, float]

    @property
    def largest_shift(self) -> float:
        """In absolute value; 0 if nothing was sampled."""
        return max(map(abs, self.shift.values()), default=0.0)


def compare(
    densities: Mapping[str, Density],
    series: Sequence[Series],
    *,
    prior: Prior | None = None,
    at: Any = None,
    progress: Callable[[str, Any], None] | None = None,
    **options: Any,
) -> list[Compared]:
    """Compare densities of one model on the same data, under the same prior.

    **Arguments:**

    - `densities`: by name; the first is the reference.
    - `prior`: the prior of all; if a trained density is among them, all are restricted to the law of the first that is.
    - `at`: parameters to evaluate the log likelihood at. Given, no posterior is sampled.
    - `progress`: called with the name of the density and the progress of its sampling.
    - `options`: of `Posterior.sample`.
    """
    if len(densities) < 2:
        raise ValueError(f"Got the density {', '.join(densities)} to compare, expected at least two different ones.")
    first = next(iter(densities.values()))
    common = _common(prior or Prior(first.sde), densities.values())
    draws, clocks = {}, {}
    if at is None:
        for name, density in densities.items():
            started = time.monotonic()
            report = None if progress is None else (lambda step, name=name: progress(name, step))
            draws[name] = _sampled(density, series, common, report, options)
            clocks[name] = time.monotonic() - started
    point = next(iter(draws.values())).mean(0) if draws else at
    rows: list[Compared] = []
    for name, density in densities.items():
        value, seconds = _timed(density, series, point)
        error = abs(value - rows[0].log_likelihood) / abs(rows[0].log_likelihood) if rows else 0.0
        shift, width = _moved(density, draws.get(name), next(iter(draws.values()), None))
        rows.append(Compared(name, value, error, seconds, clocks.get(name), shift, width))
    return rows


def _common(prior: Prior, densities: Any) -> Prior:
    """Within the law of the first trained density, so that differences are those of the likelihoods."""
    law = next((d.trained.law for d in densities if isinstance(d, Surrogate)), None)
    return prior if law is None else prior.restricted(law)


def _sampled(density: Density, series: Sequence[Series], prior: Prior, progress: Any, options: Mapping[str, Any]) -> np.ndarray:
    idata = Posterior(density, series, prior).sample(progress=progress, pointwise=False, **options)
    return pooled(parameter_draws(density.sde, idata))


def _timed(density: Density, series: Sequence[Series], point: Any) -> tuple[float, float]:
    value, times = float(log_likelihood(density, series, point)), []
    for _ in range(_REPETITIONS):
        started = time.perf_counter()
        log_likelihood(density, series, point).block_until_ready()
        times.append(time.perf_counter() - started)
    return value, float(np.median(times))


def _moved(density: Density, draws: np.ndarray | None, first: np.ndarray | None) -> tuple[dict[str, float], dict[str, float]]:
    if draws is None or first is None:
        return {}, {}
    shift, width = (draws.mean(0) - first.mean(0)) / first.std(0), draws.std(0) / first.std(0)
    names = density.sde.parameters
    return dict(zip(names, shift.tolist(), strict=True)), dict(zip(names, width.tolist(), strict=True))

"""Accuracy against cost of every density of a model: errors against a reference, time, and failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from fokkerflow.densities.density import Density, check_gaps
from fokkerflow.report.accuracy_nodes import relative_l2
from fokkerflow.report.accuracy_timing import Evaluator
from fokkerflow.report.accuracy_trials import Trials

Make = Callable[[], Density]
"""Makes a density, or raises ValueError with the reason why there is none."""


@dataclass(frozen=True)
class Errors:
    """Relative errors in short.

    **Attributes:**

    - `median`, `largest`: a value that is not finite counts as an infinite error.
    - `mean`: of the finite ones.
    - `count`: how many there are. - `failed`: how many of them are infinite.
    """

    median: float
    largest: float
    mean: float
    count: int
    failed: int

    @classmethod
    def of(cls, values: Float[np.ndarray, " k"]) -> Errors | None:
        """Of some errors; NaN, where the reference has no answer, is left out. None if nothing remains."""
        known = values[~np.isnan(values)]
        finite = known[np.isfinite(known)]
        if not len(known):
            return None
        mean = float(np.mean(finite)) if len(finite) else np.inf
        return cls(float(np.median(known)), float(np.max(known)), mean, len(known), len(known) - len(finite))


@dataclass(frozen=True)
class Accuracy:
    """One density at one time gap.

    **Attributes:**

    - `reason`: why there are no numbers, or nothing.
    - `is_reference`: the others are compared with this one.
    - `at_star`: relative errors of the log likelihood at mu*, one for each trajectory.
    - `over_law`: of the log likelihood of those trajectories under parameters drawn from the test law.
    - `l2`: relative L2 errors of the density, for starts and parameters from that law.
    - `microseconds`: a transition, in batches, compiled and warm.
    - `setup_seconds`: from the name to the first log likelihood, less what that one takes when warm: making and compiling.
    - `draws`, `densities`: of the test law, on which log likelihoods and L2 errors were looked at.
    - `evaluations`: transitions in the likelihoods, where the true density is positive; `nan` and `not_positive` count
      those where the log density is NaN, or -inf: of a density that is zero or negative, or was not found.
    """

    name: str
    dt: float
    reason: str = ""
    is_reference: bool = False
    at_star: Errors | None = None
    over_law: Errors | None = None
    l2: Errors | None = None
    microseconds: float = np.nan
    setup_seconds: float = np.nan
    draws: int = 0
    densities: int = 0
    evaluations: int = 0
    nan: int = 0
    not_positive: int = 0


class Progress(NamedTuple):
    """Where a measurement is: in words, as a share, and the seconds that it took and will take (infinite if nobody knows)."""

    where: str
    share: float
    seconds: float
    seconds_left: float


class _Values(NamedTuple):
    """What one density says of the trials: log densities of all transitions at mu*, under the law, and at nodes."""

    star: Float[np.ndarray, "k n"]
    law: Float[np.ndarray, "k n"]
    l2: Float[np.ndarray, "k m"]


class _Cost(NamedTuple):
    microseconds: float
    setup_seconds: float


def measure(
    reference: tuple[str, Make],
    densities: Mapping[str, Make],
    every: Iterable[Trials],
    *,
    budget: float = 20.0,
    progress: Callable[[Progress], None] | None = None,
) -> list[Accuracy]:
    """Measure densities of one model against a reference.

    **Arguments:**

    - `reference`: its name, and what makes it.
    - `densities`: the others, by name; one that cannot be made gives a row with the reason.
    - `every`: what they are tried on, for one or several time gaps.
    - `budget`: seconds for the test law of one density at one gap. One that is slow is tried on the first 50, 20, 10, ... draws
      only, and no other on more than the reference; the numbers are in the result. All are tried on all trajectories at mu*.
    - `progress`: called before each density, and at the end.

    **Raises:** ValueError if the reference cannot be made, or has no finite log likelihood at mu*.
    """
    every, rows = list(every), list[Accuracy]()
    clock = _Clock(len(every) * (1 + len(densities)), progress)
    for trials in every:
        clock.next(f"{reference[0]}, dt = {trials.dt:g}")
        truth, cost = _tried(reference[1], trials, budget, (len(trials.law.p), len(trials.log_weight)))
        if not np.any(np.isfinite(truth.star.sum(1))):
            raise ValueError(f"The reference {reference[0]!r} has no finite log likelihood at mu* for dt = {trials.dt:g}.")
        rows.append(_row(reference[0], trials, truth, cost))
        for name, make in densities.items():
            clock.next(f"{name}, dt = {trials.dt:g}")
            rows.append(_compared(name, make, trials, budget, truth))
    clock.next("done")
    return rows


def _compared(name: str, make: Make, trials: Trials, budget: float, truth: _Values) -> Accuracy:
    """A row, or a row with the reason why there is none: a density that fails is no reason to lose the others."""
    try:
        found, cost = _tried(make, trials, budget, (len(truth.law), len(truth.l2)))
    except (ValueError, TypeError, NotImplementedError, ArithmeticError) as error:
        return Accuracy(name, trials.dt, reason=str(error) or type(error).__name__)
    return _row(name, trials, found, cost, truth)


def _tried(make: Make, trials: Trials, budget: float, most: tuple[int, int]) -> tuple[_Values, _Cost]:
    """Half of the budget is for the likelihoods, half for the nodes; `most` draws and densities are looked at."""
    started = time.perf_counter()
    density = make()
    check_gaps(density, np.array(trials.dt))
    evaluator = Evaluator(density, trials.dt, trials.size)
    evaluator(trials.star.part(0, 1))
    spent = time.perf_counter() - started
    at_star = evaluator(trials.star)
    microseconds = evaluator.time(trials.star)
    draws = _affordable(most[0], evaluator.seconds, budget / 2)
    count = _affordable(most[1], evaluator.seconds * trials.jobs_a_density, budget / 2)
    under_law = evaluator(trials.law.part(0, draws))
    at_nodes = evaluator(trials.nodes.part(0, count * trials.jobs_a_density))
    each = at_nodes.reshape(count, -1)[:, : trials.log_weight.shape[1]]
    return _Values(at_star, under_law, each), _Cost(microseconds, max(0.0, spent - evaluator.seconds))


def _affordable(most: int, seconds_each: float, seconds: float) -> int:
    """As many as there is time for, in round numbers, at least one: what is measured should not depend on a busy moment."""
    fitting = [n for n in _round_numbers(most) if n * seconds_each <= seconds]
    return max(fitting, default=min(1, most))


def _round_numbers(most: int) -> list[int]:
    round_ones = [d * 10**e for e in range(len(str(most))) for d in (1, 2, 5)]
    return [n for n in round_ones if n < most] + [most]


def _row(name: str, trials: Trials, found: _Values, cost: _Cost, truth: _Values | None = None) -> Accuracy:
    likelihoods = np.concatenate([found.star, found.law])
    row = Accuracy(
        name,
        trials.dt,
        microseconds=cost.microseconds,
        setup_seconds=cost.setup_seconds,
        draws=len(found.law),
        densities=len(found.l2),
        evaluations=likelihoods.size,
        nan=int(np.isnan(likelihoods).sum()),
        not_positive=int(np.isneginf(likelihoods).sum()),
    )
    if truth is None:
        return replace(row, is_reference=True)
    looked = len(found.l2)
    return replace(
        row,
        at_star=Errors.of(_relative(found.star, truth.star)),
        over_law=Errors.of(_relative(found.law, truth.law)),
        l2=Errors.of(relative_l2(found.l2, truth.l2[:looked], trials.log_weight[:looked])),
    )


def _relative(found: Float[np.ndarray, "j n"], truth: Float[np.ndarray, "k n"]) -> Float[np.ndarray, " j"]:
    """|l_q - l_p| / |l_p| of the log likelihoods; infinite where l_q is not finite, NaN where l_p is not."""
    q, p = found.sum(1), truth[: len(found)].sum(1)
    error = np.where(np.isfinite(q), np.abs(np.where(np.isfinite(q), q, 0.0) - p) / np.abs(p), np.inf)
    return np.where(np.isfinite(p), error, np.nan)


class _Clock:
    """Says which density is next, and how long the rest takes if the others take as long as those before."""

    def __init__(self, steps: int, progress: Callable[[Progress], None] | None) -> None:
        self._steps, self._done, self._progress, self._started = steps, -1, progress, time.monotonic()

    def next(self, where: str) -> None:
        self._done += 1
        if self._progress is None:
            return
        seconds = time.monotonic() - self._started
        left = seconds / self._done * (self._steps - self._done) if self._done else np.inf
        self._progress(Progress(where, self._done / self._steps, seconds, left))

"""The checks that stand in every report: guard, PIT, one-step predictions; and the comparison with a reference on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fokkerflow.densities.density import Density
from fokkerflow.inference.guard_share import GuardShare, guard_share
from fokkerflow.inference.pit import PIT, pit
from fokkerflow.inference.predictive import Predictive, one_step
from fokkerflow.report.verdict import Answer, Level
from fokkerflow.sde.series import Series

if TYPE_CHECKING:
    from fokkerflow.inference.importance import Importance

_PATHS, _SUBSTEPS = 200, 50
"""Of the bands: they are for the eye."""


@dataclass(frozen=True)
class Checks:
    """What was checked; None is what was not, or could not be."""

    guard: GuardShare | None = None
    pit: PIT | None = None
    ahead: Predictive | None = None
    reference: tuple[str, Importance] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the record of a run."""
        found = {"guard": self.guard, "pit": self.pit, "reference": self.reference and self.reference[1]}
        plain = {name: check.to_dict() for name, check in found.items() if check is not None}
        if self.reference is not None:
            plain["reference"]["against"] = self.reference[0]
        return plain


def run_checks(
    density: Density,
    series: Sequence[Series],
    idata: Any,
    *,
    seed: int = 0,
    reference: tuple[str, Density] | None = None,
) -> Checks:
    """Check a posterior in every way that the data and the density allow.

    **Arguments:**

    - `reference`: the name of a density, and that density, to compare the posterior with.
    """
    from fokkerflow.inference.importance import importance  # ArviZ takes seconds to import

    every = list(series)
    return Checks(
        guard=guard_share(density, every, idata),
        pit=pit(density, every, idata, seed=seed),
        ahead=one_step(density.sde, every, idata, paths=_PATHS, substeps=_SUBSTEPS, seed=seed),
        reference=reference and (reference[0], importance(density, reference[1], every, idata)),
    )


def guard_answer(guard: GuardShare) -> Answer:
    level = Level.GOOD if guard.ok else Level.CARE
    advice = tuple(line.removeprefix("- ") for line in guard.message().splitlines()[1:])
    return Answer("Was the density used where it is valid?", "training law", level, guard.verdict, advice)


def pit_answer(found: PIT | None) -> Answer:
    question, subject = "Does the model fit the data?", "model"
    if found is None:
        return Answer(question, subject, Level.OPEN, "This was not checked.")
    level = Level.BAD if not found.ok else Level.CARE if found.failed else Level.GOOD
    advice = (
        () if level is Level.GOOD else (f"Over all {len(found.tests)} tests together, p = {found.p_value:.2g}.", _OTHER_MODEL)
    )
    return Answer(question, subject, level, found.verdict, advice)


_OTHER_MODEL = "Another model may do better; the estimates describe the one that was fitted, whether or not it is right."


def reference_answer(reference: tuple[str, Importance] | None, *, exact: bool = False) -> Answer:
    question, subject = "Is the likelihood right?", "likelihood"
    if reference is None and exact:
        return Answer(question, subject, Level.GOOD, "The transition density is the exact one.")
    if reference is None:
        return Answer(question, subject, Level.OPEN, "No other density was asked. 'fokkerflow check' does it.")
    name, found = reference
    level = Level.GOOD if found.ok else Level.CARE if found.reliable else Level.BAD
    advice = tuple(line.removeprefix("- ") for line in found.message().splitlines()[1:])
    return Answer(f"Does the density {name!r} agree?", subject, level, found.verdict, advice)


def coverage(ahead: Predictive, levels: Sequence[float] = (0.5, 0.9)) -> Mapping[float, np.ndarray]:
    """By level, the share of observations of each state inside its band."""
    return {level: ahead.coverage(level) for level in levels}

"""The checks that stand in every report: guard, PIT, one-step predictions; and the comparison with a reference on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fokkerflow.densities.density import Density
from fokkerflow.inference.guard_share import GuardShare, guard_share
from fokkerflow.inference.pit import PIT, pit
from fokkerflow.inference.predictive import Predictive, one_step
from fokkerflow.report.cut_off import cut_off
from fokkerflow.report.verdict import Answer, Level
from fokkerflow.report.words import listed, percent
from fokkerflow.sde.series import Series

if TYPE_CHECKING:
    from fokkerflow.inference.importance import Importance
    from fokkerflow.training.certificate import Certificate

_PATHS, _SUBSTEPS = 200, 50
"""Of the bands: they are for the eye."""


@dataclass(frozen=True)
class Checks:
    """What was checked; None is what was not, or could not be. For `cut` see `cut_off`."""

    guard: GuardShare | None = None
    cut: Mapping[str, float] = field(default_factory=dict)
    pit: PIT | None = None
    ahead: Predictive | None = None
    reference: tuple[str, Importance] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the record of a run."""
        found = {"guard": self.guard, "pit": self.pit, "reference": self.reference and self.reference[1]}
        plain = {name: check.to_dict() for name, check in found.items() if check is not None}
        plain["cut_off_by_law"] = dict(self.cut)
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
        cut=cut_off(density, idata),
        pit=pit(density, every, idata, seed=seed),
        ahead=one_step(density.sde, every, idata, paths=_PATHS, substeps=_SUBSTEPS, seed=seed),
        reference=reference and (reference[0], importance(density, reference[1], every, idata)),
    )


def guard_answer(guard: GuardShare, cut: Mapping[str, float]) -> Answer:
    """Whether the density was asked inside its law; and whether the law is what ends the posterior."""
    question, subject = "Was the density used where it is valid?", "training law"
    advice = tuple(line.removeprefix("- ") for line in guard.message().splitlines()[1:])
    if guard.ok and cut:
        answer = f"The training law cuts off the posterior of {listed(list(cut))}, which leans on an end of it."
        return Answer(question, subject, Level.CARE, answer, (*advice, _WIDER))
    return Answer(question, subject, Level.GOOD if guard.ok else Level.CARE, guard.verdict, advice)


_WIDER = "Train a density for a wider law, unless you know that the parameter can not be beyond it."


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


def reference_answer(
    reference: tuple[str, Importance] | None, *, exact: bool = False, certificate: Certificate | None = None
) -> Answer:
    """What a reference says, or without one what is known of the density: that it is exact, or its certificate."""
    question, subject = "Is the likelihood right?", "likelihood"
    if reference is None and exact:
        return Answer(question, subject, Level.GOOD, "The transition density is the exact one.")
    if reference is None:
        known = "" if certificate is None else _certified(certificate)
        return Answer(question, subject, Level.OPEN, known + "No other density was asked: 'fokkerflow check' does it.")
    name, found = reference
    level = Level.GOOD if found.ok else Level.CARE if found.reliable else Level.BAD
    advice = tuple(line.removeprefix("- ") for line in found.message().splitlines()[1:])
    return Answer(f"Does the density {name!r} agree?", subject, level, found.verdict, advice)


def _certified(certificate: Certificate) -> str:
    """No probability is off by more than half of the L1 error."""
    error, gap = percent(certificate.quantiles[-1]["median"] / 2, 1), certificate.dt[-1]
    return f"By its certificate, for half of the training law no probability is off by more than {error} at a gap of {gap:g}. "


def coverage(ahead: Predictive, levels: Sequence[float] = (0.5, 0.9)) -> Mapping[float, np.ndarray]:
    """By level, the share of observations of each state inside its band."""
    return {level: ahead.coverage(level) for level in levels}

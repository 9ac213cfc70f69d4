"""Training from beginning to end: law, flow, steps, progress, checkpoints. A resumed run ends in the same weights."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fokkerflow._precision import in_float64
from fokkerflow.flow import Flow
from fokkerflow.flow import config as flow_config
from fokkerflow.sde.model import SDE
from fokkerflow.training import checkpoint as checkpoints
from fokkerflow.training import laws
from fokkerflow.training.checkpoint import Checkpoint
from fokkerflow.training.collocation import Gaps, Sequence, sequence_for
from fokkerflow.training.errors import TrainingError
from fokkerflow.training.law import Law
from fokkerflow.training.presets import Preset, preset_with
from fokkerflow.training.trained import Record, Trained
from fokkerflow.training.trainer import Report, Trainer, trainer_for

SHORTEST_SHARE = 1e-3
"""The shortest gap of the training, as a share of the longest, unless another one is asked for."""


class Progress(NamedTuple):
    """Where a training is.

    **Attributes:**

    - `where`: in words, such as ``"iteration 12 of 80"``.
    - `share`: of the work that is done, from 0 to 1.
    - `residual`: of the last step; see `fokkerflow.training.trainer.Report`.
    - `seconds`, `seconds_left`: spent in this run, and to be expected (infinite as long as nobody knows); the first step
      includes compilation.
    """

    where: str
    share: float
    residual: float
    seconds: float
    seconds_left: float


@in_float64
def fit(
    sde: SDE,
    law: Law | str,
    dt_max: float,
    *,
    method: str = "gauss-newton",
    preset: str = "default",
    seed: int = 0,
    shortest: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 20.0,
    progress: Callable[[Progress], None] | None = None,
    **overrides: Any,
) -> Trained:
    """Train a flow for all starts and parameters of a law and all gaps up to `dt_max`.

    **Arguments:**

    - `sde`: the model.
    - `law`: a `Law`, or the name of one that comes with the package, such as ``"paper"``.
    - `dt_max`: the longest gap.
    - `method`: the trainer: ``"gauss-newton"``, ``"neural-galerkin"``, the paper's, or ``"simulation"``, neural likelihood
      estimation.
    - `preset`: ``"fast"``, ``"default"`` or ``"accurate"``; of Neural Galerkin ``"anchored"``, which is its default,
      ``"reduced"`` or ``"paper"``.
    - `seed`: of the first weights and of the collocation points. Equal seeds give equal weights on one machine.
    - `shortest`: the shortest gap of the training; a thousandth of the longest if left out.
    - `checkpoint`: a file that is written every `checkpoint_every` seconds, and when the training ends or is interrupted. If
      it exists, the training goes on from there. Delete it when the result is safe.
    - `progress`: called after every step.
    - `overrides`: fields of the preset to change: `components`, `width`, `points`, `iterations`, ...

    **Returns:** a `Trained`.

    **Raises:** ValueError for settings that make no sense, FileError for a checkpoint of another training, TrainingError if
    the training cannot go on.
    """
    named, law = law, _law(sde, law)
    gaps = Gaps(dt_max * SHORTEST_SHARE if shortest is None else shortest, dt_max)
    chosen = preset_with(method, preset, overrides, sde)
    trainer = trainer_for(chosen.flow.build(law, gaps, seed), chosen.trainer, gaps, seed)
    settings = _settings(trainer.flow, chosen, law, gaps, method, seed)
    at, save = _begin(trainer, settings, sde, None if checkpoint is None else Path(checkpoint))
    sequence = sequence_for(trainer.flow, law, gaps, seed, at.drawn)
    at = _train(trainer, sequence, at, save, checkpoint_every, progress or (lambda report: None))
    flow, path = trainer.result(at.state)
    asked = {
        "law": named,
        "dt_max": dt_max,
        "method": method,
        "preset": preset,
        "seed": seed,
        "shortest": shortest,
        **overrides,
    }
    return Trained(
        flow, path, law, gaps, Record(method, preset, seed, settings["trainer"], _call(sde, asked), at.history, at.seconds)
    )


def _law(sde: SDE, law: Law | str) -> Law:
    if isinstance(law, str):
        return laws.shipped(law, sde)
    if not isinstance(law, Law):
        raise TypeError(f"Got {law!r} as the law, expected a fokkerflow.Law or the name of one.")
    if law.sde != sde:
        raise ValueError(f"The law is one of {law.sde.label}, the model is {sde.label}.")
    return law


def _begin(
    trainer: Trainer, settings: Mapping[str, Any], sde: SDE, file: Path | None
) -> tuple[Checkpoint, Callable[[Checkpoint], None]]:
    """Where the training begins, and how its checkpoints are saved."""
    at = Checkpoint(trainer.start(), 0, (), 0.0)
    if file is None:
        return at, lambda at: None
    if file.exists():
        at = checkpoints.load(file, at.state, settings, sde)
    return at, lambda at: checkpoints.save(file, at, settings, sde)


def _train(
    trainer: Trainer,
    sequence: Sequence,
    at: Checkpoint,
    save: Callable[[Checkpoint], None],
    every: float,
    progress: Callable[[Progress], None],
) -> Checkpoint:
    """Step until the trainer is done. Whatever ends the run early leaves a checkpoint of the last whole step."""
    save(at)  # a folder that cannot be written to is noticed now
    clock, saved = _Clock(at.seconds), time.monotonic()
    try:
        while not trainer.finished(at.state):
            state, report = trainer.advance(at.state, sequence.take(trainer.points))
            _check_finite(report)
            at = Checkpoint(state, sequence.drawn, (*at.history, report.residual), clock.total)
            progress(clock.progress(report))
            if time.monotonic() - saved >= every:
                save(at)
                saved = time.monotonic()
    finally:
        save(at)
    return at


class _Clock:
    """Seconds of this run, of all runs, and how many are left."""

    def __init__(self, before: float) -> None:
        self._before, self._started = before, time.monotonic()
        self._first: tuple[float, float] | None = None  # share and seconds after the first step, which compiles

    @property
    def total(self) -> float:
        return self._before + time.monotonic() - self._started

    def progress(self, report: Report) -> Progress:
        seconds = time.monotonic() - self._started
        if self._first is None:
            self._first = (report.share, seconds)
        share, since = report.share - self._first[0], seconds - self._first[1]
        if share <= 0:
            share, since = report.share, seconds
        left = since / share * (1 - report.share) if share > 0 else math.inf
        return Progress(report.where, report.share, report.residual, seconds, left)


def _check_finite(report: Report) -> None:
    if not math.isfinite(report.residual):
        raise TrainingError(
            f"The residual is {report.residual} at {report.where}. Start from other weights (another seed), narrow the "
            "training law where the model is extreme, or shorten dt_max."
        )


def _settings(flow: Flow, chosen: Preset, law: Law, gaps: Gaps, method: str, seed: int) -> dict[str, Any]:
    """All that the weights depend on besides the model, as plain data."""
    settings = {
        "method": method,
        "seed": seed,
        "trainer": dataclasses.asdict(chosen.trainer),
        "flow": flow.config.to_dict(),
        "flow version": flow_config.VERSION,
        "law": law.to_dict(),
        "gaps": dataclasses.asdict(gaps),
    }
    return json.loads(json.dumps(settings))


def _call(sde: SDE, asked: Mapping[str, Any]) -> str:
    """The call that makes the same density again. A law that has no name is in the artifact."""
    options = (
        f"{name}={'law' if isinstance(value, Law) else repr(value)}" for name, value in asked.items() if value is not None
    )
    return f"fokkerflow.train({sde.label}(), {', '.join(options)})"

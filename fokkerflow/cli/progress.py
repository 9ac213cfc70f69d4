"""How trainings and samplings show where they are: a bar on a terminal, one line a minute elsewhere."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import typer

if TYPE_CHECKING:
    from rich.console import Console

BETWEEN_LINES = 60.0
"""Seconds."""


class Progress(Protocol):
    """What a training and a sampling have in common."""

    @property
    def where(self) -> str: ...
    @property
    def share(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def seconds_left(self) -> float: ...


def residual(progress: Any) -> str:
    """What is said of a training."""
    return f"residual {progress.residual:.2e}"


def divergences(progress: Any) -> str:
    """What is said of a sampling."""
    return f"{progress.divergences} divergences"


@contextlib.contextmanager
def shown(
    console: Console, note: Callable[[Any], str] = residual, *, to_stderr: bool = False
) -> Iterator[Callable[[Progress], None]]:
    """A function to be called after every step; `note` is what else is said."""
    if not console.is_terminal:
        yield _Lines(note, to_stderr)
        return
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.fields[where]}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TextColumn("{task.fields[left]} left"),
    )
    with Bar(*columns, console=console, transient=to_stderr) as bar:
        task = bar.add_task("", total=1.0, where="compiling", note="", left="-")

        def update(progress: Progress) -> None:
            bar.update(
                task,
                completed=progress.share,
                where=progress.where,
                note=note(progress),
                left=duration(progress.seconds_left),
            )

        yield update


class _Lines:
    """The first and the last step, and one step a minute in between."""

    def __init__(self, note: Callable[[Any], str], to_stderr: bool) -> None:
        self._note, self._to_stderr, self._last = note, to_stderr, -BETWEEN_LINES

    def __call__(self, progress: Progress) -> None:
        if progress.share < 1 and time.monotonic() - self._last < BETWEEN_LINES:
            return
        self._last = time.monotonic()
        left, spent = duration(progress.seconds_left), duration(progress.seconds)
        typer.echo(f"{progress.where}: {self._note(progress)}, {spent} spent, {left} left", err=self._to_stderr)


def duration(seconds: float) -> str:
    """``"42 s"``, ``"3:07 min"``, ``"2:15 h"``; ``"?"`` if nobody knows."""
    if not math.isfinite(seconds):
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02d} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02d} h"

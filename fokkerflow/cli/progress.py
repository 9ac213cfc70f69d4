"""How a training shows where it is: a bar on a terminal, one line a minute elsewhere."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from fokkerflow.training import Progress

BETWEEN_LINES = 60.0
"""Seconds."""


@contextlib.contextmanager
def shown(console: Console) -> Iterator[Callable[[Progress], None]]:
    """A function to be called after every step."""
    if not console.is_terminal:
        yield _Lines()
        return
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.fields[where]}"),
        BarColumn(),
        TextColumn("residual {task.fields[residual]}"),
        TextColumn("{task.fields[left]} left"),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("", total=1.0, where="compiling", residual="-", left="-")

        def update(progress: Progress) -> None:
            bar.update(
                task,
                completed=progress.share,
                where=progress.where,
                residual=f"{progress.residual:.2e}",
                left=duration(progress.seconds_left),
            )

        yield update


class _Lines:
    """The first and the last step, and one step a minute in between."""

    def __init__(self) -> None:
        self._last = -BETWEEN_LINES

    def __call__(self, progress: Progress) -> None:
        if progress.share < 1 and time.monotonic() - self._last < BETWEEN_LINES:
            return
        self._last = time.monotonic()
        left, spent = duration(progress.seconds_left), duration(progress.seconds)
        typer.echo(f"{progress.where}: residual {progress.residual:.2e}, {spent} spent, {left} left")


def duration(seconds: float) -> str:
    """``"42 s"``, ``"3:07 min"``, ``"2:15 h"``; ``"?"`` if nobody knows."""
    if not math.isfinite(seconds):
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02d} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02d} h"

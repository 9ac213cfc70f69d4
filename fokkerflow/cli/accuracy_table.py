"""The table that `fokkerflow compare` prints without data: one line for each density, and remarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fokkerflow.report.accuracy import Accuracy


_LONGEST_NAME = 13
"""Longer ones take two lines, so that the table fits on a screen."""


_NARROWEST = 80
"""Columns of the screen that a table may be made for."""


class Settings(NamedTuple):
    """What is tried, and against what."""

    reference: str
    law: str
    n: int
    trajectories: int
    draws: int
    budget: float
    seed: int


def show(model: str, rows: Sequence[Accuracy], settings: Settings, law: str) -> None:
    """A table for each gap, and below it in words what it has no room for."""
    from rich.console import Console

    console = Console()
    console = Console(width=max(console.width, _NARROWEST))
    for dt in dict.fromkeys(row.dt for row in rows):
        here = [row for row in rows if row.dt == dt]
        reference = next(row.name for row in here if row.is_reference)
        console.print(f"[bold]{model}, dt = {dt:g}[/bold]: relative errors against '{reference}'", highlight=False)
        console.print(_table(here))
        for line in _remarks(here, settings):
            console.print(line, highlight=False, markup=False)
    console.print(_explanation(settings, law), highlight=False, markup=False)


def _table(rows: Sequence[Accuracy]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("\ndensity", overflow="fold")
    for head in ("at mu*\nmedian", "\nmax", "test law\nmedian", "\nmean", "L2\nmean", "\nµs", "\nset-up", "\nfails"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        name = row.name if len(row.name) <= _LONGEST_NAME else row.name.replace("-", "-\n", 1)
        table.add_row(name, *_cells(row))
    return table


def _cells(row: Accuracy) -> Iterator[str]:
    if row.reason:
        yield from ["-"] * 8
        return
    for errors, fields in ((row.at_star, ("median", "largest")), (row.over_law, ("median", "mean")), (row.l2, ("mean",))):
        for field in fields:
            yield "-" if errors is None else _short(getattr(errors, field))
    yield f"{row.microseconds:.2g}" if row.microseconds < 100 else f"{row.microseconds:.0f}"
    yield f"{row.setup_seconds:.1f} s"
    failed = row.nan + row.not_positive
    yield f"{100 * failed / row.evaluations:.2g} %" if failed else "-"


def _short(value: float) -> str:
    """Two digits: ``"1.2e-5"``, ``"0.30"``."""
    from fokkerflow.report.words import two_digits

    if value > 1e4:
        return f"{value:.0e}"
    return two_digits(value) if value >= 0.01 or value == 0 else f"{value:.1e}".replace("e-0", "e-")


def _remarks(rows: Sequence[Accuracy], settings: Settings) -> Iterator[str]:
    """What the table has no room for: why a method does not apply, how it fails, and on how much it was tried."""
    most = next(row for row in rows if row.is_reference)
    for row in rows:
        if row.reason:
            yield f"{row.name} does not apply: {row.reason}"
            continue
        if row.nan or row.not_positive:
            yield (
                f"{row.name} fails in {row.nan + row.not_positive} of {row.evaluations} transitions: {row.nan} NaN, "
                f"{row.not_positive} -inf (not positive, or not found); {_failed(row)}"
            )
        limits = (settings.draws if most.draws else 0, settings.draws) if row is most else (most.draws, most.densities)
        if row.draws < limits[0] or row.densities < limits[1]:
            others = ", hence the others too" if row is most else ""
            yield (
                f"{row.name}: L2 for {row.densities} and log likelihoods for {row.draws} draws only{others} "
                f"(--budget {settings.budget:g} s)."
            )


def _failed(row: Accuracy) -> str:
    errors = [e for e in (row.at_star, row.over_law) if e is not None]
    return f"{sum(e.failed for e in errors)} of {sum(e.count for e in errors)} log likelihoods are not finite."


def _explanation(settings: Settings, law: str) -> str:
    where = (
        f"Test law: {law}, {settings.draws} draws"
        if law
        else f"No test law (--law LAW); L2 from {settings.draws} states of the trajectories"
    )
    return (
        f"mu*: {settings.trajectories} trajectories of {settings.n} observations. {where}. Medians count a failure as "
        "infinite, means leave it out. µs a transition: in batches, warm. Set-up: making and compiling."
    )

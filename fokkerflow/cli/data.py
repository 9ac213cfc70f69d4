"""Data files on the command line: which columns are the time and the states, and what their errors say."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from fokkerflow.cli.app import stop

if TYPE_CHECKING:
    from fokkerflow.sde import SDE, Series

FILES = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA.csv", help="CSV files with a header line; several are independent series of one model, and pooled."
    ),
]
TIME = Annotated[
    str,
    typer.Option(
        "--time",
        help="The column of times: numbers, or ISO dates, which become years of 365.25 days (Actual/365.25). "
        "'none' if there is none.",
    ),
]
COLUMNS = Annotated[
    str,
    typer.Option(
        help="The columns of the states, such as 'v=variance,y=log_price'. Those with the names of the states if left out."
    ),
]
STEP = Annotated[float, typer.Option("--dt", help="The time between rows, for files without a column of times.")]


class Source(NamedTuple):
    """Where data come from: enough to read them again, and to see that they have changed."""

    path: Path
    sha256: str


def read(sde: SDE, files: Sequence[Path], time: str, columns: str, step: float) -> tuple[list[Series], list[Source]]:
    """The series in some files, checked against the model."""
    mapping = _mapping(sde, columns)
    try:
        return [_read_one(sde, file, time, mapping, step) for file in files], [source(file) for file in files]
    except (ValueError, TypeError) as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename}: cannot be read ({error.strerror})."
    stop(message)


def source(file: Path) -> Source:
    return Source(file, hashlib.sha256(file.read_bytes()).hexdigest())


def _read_one(sde: SDE, file: Path, time: str, mapping: dict[str, str], step: float) -> Series:
    from fokkerflow.sde import Series

    timeless = time.lower() == "none"
    raw = Series.from_csv(file, None if timeless else time, list(mapping.values()))
    times = raw.times * _positive(step) if timeless else raw.times
    try:
        series = Series(times, raw.states, tuple(mapping), origin=raw.origin).check(sde)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    if len(series) < 2:
        raise ValueError(f"{file}: a likelihood needs at least one transition: got {len(series)} row, expected 2 or more.")
    return series


def _mapping(sde: SDE, columns: str) -> dict[str, str]:
    """The column of each state, in model order."""
    mapping: dict[str, str] = {name: name for name in sde.states}
    for item in filter(None, (part.strip() for part in columns.split(","))):
        state, equals, column = (part.strip() for part in item.partition("="))
        if not equals or not column:
            stop(f"Got {item!r} in --columns, expected state=column.")
        if state not in sde.states:
            stop(f"Got the state {state!r} in --columns; those of {sde.label} are {', '.join(sde.states)}.")
        mapping[state] = column
    return mapping


def _positive(step: float) -> float:
    if not 0 < step < float("inf"):
        raise ValueError(f"Got --dt {step:g}, expected a positive number: the time between rows.")
    return step


def described(sources: Sequence[Source], series: Sequence[Series]) -> list[dict[str, Any]]:
    """Plain data about the files, for the record of a run."""
    return [
        {"path": str(file.path), "sha256": file.sha256, "rows": len(one), "origin": one.origin}
        for file, one in zip(sources, series, strict=True)
    ]

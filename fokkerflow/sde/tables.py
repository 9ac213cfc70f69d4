"""Tables in and out of a `Series`: CSV files with errors that name line and column, and data frames of any library."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float

from fokkerflow._files import replacing

_SECONDS_PER_DAY = 86400.0


@dataclass(frozen=True)
class Table:
    """Columns of a table as arrays, and how to name one of its rows in a message."""

    times: Float[np.ndarray, " n"]
    states: Float[np.ndarray, "n d"]
    names: tuple[str, ...]
    origin: str | None
    where: Callable[[int], str]


def check_names(names: Sequence[str], d: int) -> tuple[str, ...]:
    """The names as a tuple; raise ValueError unless they are `d` different ones, none of them the time's."""
    if isinstance(names, str):
        raise TypeError(f"Series: got names = {names!r}, expected a sequence of names such as ({names!r},).")
    names = tuple(names)
    if len(names) != d:
        raise ValueError(f"Series: got {len(names)} names ({', '.join(map(str, names))}), expected {d}.")
    if any(not isinstance(name, str) or not name for name in names) or len(set(names)) != d or "t" in names:
        raise ValueError(f"Series: got names {names}, expected different, non-empty words other than 't'.")
    return names


def read_csv(path: Path, time: str | None, states: Sequence[str] | None, year_days: float) -> Table:
    """Read a comma-separated file with a header."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        lines, rows = [], []
        for row in reader:
            if any(cell.strip() for cell in row):
                lines.append(reader.line_num)
                rows.append([cell.strip() for cell in row])
    if not header:
        raise ValueError(f"{path}: the file is empty, expected a header line such as 't,{','.join(states or ['x'])}'.")
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(header):
            raise ValueError(f"{path}, line {line}: got {len(row)} cells, expected {len(header)} as in the header.")
    names = _select(header, time, states, str(path))

    def column(name: str) -> list[str]:
        return [row[header.index(name)] for row in rows]

    def place(row: int, name: str) -> str:
        return f"{path}, line {lines[row]}, column {name!r}"

    times, origin = _csv_times(column(time), lambda row: place(row, time), year_days) if time else (np.arange(len(rows)), None)
    data = [[_number(cell, place(row, name)) for row, cell in enumerate(column(name))] for name in names]
    return Table(
        np.asarray(times, float), _stack(data, len(rows)), names, origin, lambda row: f"row {row} (line {lines[row]} of {path})"
    )


def read_dataframe(df: Any, time: str | None, states: Sequence[str] | None, year_days: float) -> Table:
    """Take columns of a data frame."""
    try:
        frame = nw.from_native(df, eager_only=True)
    except TypeError:
        raise TypeError(
            f"Got {type(df).__name__}, expected a data frame (pandas, polars or another that narwhals knows)."
        ) from None
    names = _select(frame.columns, time, states, "The data frame")
    origin = None
    times = np.arange(len(frame), dtype=float)
    if time is not None:
        times, origin = _frame_times(frame[time], time, year_days)
    data = [_frame_numbers(frame[name], name) for name in names]
    return Table(times, _stack(data, len(frame)), names, origin, lambda row: f"row {row}")


def write_csv(path: Path, header: Sequence[str], rows: Float[np.ndarray, "n columns"]) -> None:
    """Write a table so that `path` holds all of it or what it held before; `repr` makes floats come back exactly."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([repr(float(value)) for value in row] for row in rows)


def _select(columns: Sequence[str], time: str | None, states: Sequence[str] | None, what: str) -> tuple[str, ...]:
    """The names of the state columns, all of which exist, as does the time column."""
    if isinstance(states, str):
        states = (states,)
    names = tuple(name for name in columns if name != time) if states is None else tuple(states)
    for name in (*((time,) if time is not None else ()), *names):
        if name not in columns:
            raise ValueError(f"{what} has no column {name!r}; its columns are {', '.join(map(repr, columns))}.")
        if list(columns).count(name) > 1:
            raise ValueError(f"{what} has more than one column {name!r}.")
    if not names:
        raise ValueError(f"{what} has no columns besides the time {time!r}, expected at least one coordinate.")
    return names


def _stack(columns: Sequence[Any], n: int) -> Float[np.ndarray, "n d"]:
    return np.array(columns, dtype=float).reshape(len(columns), n).T


def _number(cell: str, place: str) -> float:
    try:
        if "_" in cell:  # Python would read 1_000 as a number
            raise ValueError
        return float(cell)
    except ValueError:
        raise ValueError(f"{place}: got {cell!r}, expected a number.") from None


def _csv_times(cells: list[str], place: Callable[[int], str], year_days: float) -> tuple[Float[np.ndarray, " n"], str | None]:
    """Times from cells that are all numbers or all ISO dates; the first one decides which."""
    if not cells or _date(cells[0]) is None:
        return np.array([_number(cell, place(row)) for row, cell in enumerate(cells)]), None
    dates: list[datetime] = []
    for row, cell in enumerate(cells):
        date = _date(cell)
        if date is None or (date.tzinfo is None) != (dates[0].tzinfo is None if dates else date.tzinfo is None):
            raise ValueError(f"{place(row)}: got {cell!r}, expected an ISO date like the first one, {cells[0]!r}.")
        dates.append(date)
    seconds = np.array([(date - dates[0]).total_seconds() for date in dates])
    return seconds / (_SECONDS_PER_DAY * year_days), cells[0]


def _date(cell: str) -> datetime | None:
    """The date in a cell with dashes or colons; a bare number such as 20240101 is a number."""
    try:
        return datetime.fromisoformat(cell) if "-" in cell[1:] and "e" not in cell.lower() else None
    except ValueError:
        return None


def _frame_times(column: Any, name: str, year_days: float) -> tuple[Float[np.ndarray, " n"], str | None]:
    if not column.dtype.is_temporal() or column.dtype in (nw.Duration, nw.Time):
        return _frame_numbers(column, name), None
    _refuse_nulls(column, name)
    if not len(column):
        return np.zeros(0), None
    elapsed = (column.cast(nw.Datetime("us")) - column.cast(nw.Datetime("us"))[0]).dt.total_microseconds().to_numpy()
    return elapsed / (1e6 * _SECONDS_PER_DAY * year_days), str(column[0])


def _frame_numbers(column: Any, name: str) -> Float[np.ndarray, " n"]:
    if not column.dtype.is_numeric():
        raise TypeError(f"The data frame's column {name!r} has type {column.dtype}, expected numbers.")
    _refuse_nulls(column, name)
    return np.asarray(column.to_numpy(), dtype=float)


def _refuse_nulls(column: Any, name: str) -> None:
    missing = np.flatnonzero(np.asarray(column.is_null().to_numpy(), bool))
    if missing.size:
        raise ValueError(f"The data frame's column {name!r} has no value in row {missing[0]}, expected one in every row.")

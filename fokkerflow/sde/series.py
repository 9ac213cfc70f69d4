"""Observations of a diffusion at discrete times: what is simulated, read from files, and given to a likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from fokkerflow.sde.model import SDE
from fokkerflow.sde.tables import check_names, read_csv, read_dataframe, write_csv

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

YEAR_DAYS = 365.25
"""Days in a year when dates become times: the convention Actual/365.25."""


class TransitionArrays(NamedTuple):
    """The n - 1 steps of a series: from `x0` at time `t0` to `x1`, `dt` later."""

    x0: Float[np.ndarray, "steps d"]
    x1: Float[np.ndarray, "steps d"]
    dt: Float[np.ndarray, " steps"]
    t0: Float[np.ndarray, " steps"]


@dataclass(frozen=True, eq=False, repr=False)
class Series:
    """States of a diffusion observed at increasing times.

    **Arguments:**

    - `times`: of shape ``(n,)``, strictly increasing; they need not be equally spaced.
    - `states`: of shape ``(n, d)``; ``(n,)`` will do in one dimension.
    - `names`: one name for each coordinate; ``x1, x2, ...`` if left out, which fits any model.
    - `origin`: what time 0 is, in words; the first date when times were made from dates.

    **Raises:** ValueError for NaN or infinite values, times that do not increase, lengths that do not match and an empty
    series; the message names the row, counted from 0.

    ```python
    series = Series(times=[0.0, 0.5, 1.5], states=[[0.10, 0.00], [0.12, 0.03], [0.09, 0.10]], names=("v", "y"))
    ```
    """

    times: Float[np.ndarray, " n"]
    states: Float[np.ndarray, "n d"]
    names: tuple[str, ...] = ()
    origin: str | None = None

    def __init__(self, times: Any, states: Any, names: Sequence[str] | None = None, *, origin: str | None = None) -> None:
        times, states = _array(times, "times", ndim=(1,)), _array(states, "states", ndim=(1, 2))
        states = states[:, None] if states.ndim == 1 else states
        if len(times) != len(states):
            raise ValueError(f"Series: got {len(times)} times and {len(states)} states, expected as many of each.")
        if states.shape[1] == 0:
            raise ValueError("Series: got states of shape (n, 0), expected at least one coordinate.")
        names = _default_names(states.shape[1]) if names is None else check_names(names, states.shape[1])
        check_rows(times, states, names, "row {}".format)
        for key, value in (("times", times), ("states", states), ("names", names), ("origin", origin)):
            object.__setattr__(self, key, value)

    @property
    def dimension(self) -> int:
        return self.states.shape[1]

    @property
    def gaps(self) -> Float[np.ndarray, " steps"]:
        """The times between observations, of shape ``(n - 1,)``."""
        return np.diff(self.times)

    def transitions(self) -> TransitionArrays:
        """Pairs of consecutive observations, as arrays over the n - 1 steps; none for a single observation."""
        return TransitionArrays(self.states[:-1], self.states[1:], self.gaps, self.times[:-1])

    def check(self, sde: SDE) -> Series:
        """This series, if it can be one of `sde`: as many coordinates, the same names, every state inside the domain.

        **Raises:** ValueError naming the coordinate and the row.
        """
        model, expected = sde.label, tuple(sde.states)
        if self.dimension != sde.dimension:
            raise ValueError(
                f"{model}: the series has {self.dimension} coordinates ({', '.join(self.names)}), "
                f"expected {sde.dimension}: {', '.join(expected)}."
            )
        if self.names not in (expected, _default_names(self.dimension)):
            hint = " in this order" if sorted(self.names) == sorted(expected) else ""
            raise ValueError(
                f"{model}: the series has coordinates {', '.join(self.names)}, expected {', '.join(expected)}{hint}. "
                f"Select or rename them, for example with Series.from_csv(..., states=[...]) or Series(times, states, names)."
            )
        for i, (name, domain) in enumerate(sde.states.items()):
            outside = np.flatnonzero(~domain.contains(self.states[:, i]))
            if outside.size:
                row = int(outside[0])
                more = f" ({outside.size} rows are outside)" if outside.size > 1 else ""
                raise ValueError(
                    f"{model}: {name} = {self.states[row, i]:.7g} in row {row} (time {self.times[row]:.7g}), "
                    f"expected a value in {domain}{more}."
                )
        return self

    @classmethod
    def from_csv(
        cls, path: str | Path, time: str | None = "t", states: Sequence[str] | None = None, *, year_days: float = YEAR_DAYS
    ) -> Series:
        """Read a comma-separated file with a header line.

        **Arguments:**

        - `path`: the file.
        - `time`: the name of the column of times: numbers, or ISO dates and date-times, which become years since the first
          of them. None if there is no such column: observations are then one unit of time apart.
        - `states`: names of the columns to take, in order; all but the time if left out.
        - `year_days`: days in a year, for dates.

        **Raises:** ValueError naming the line and column of a cell that is not a number, the line of a bad row, or the columns
        that there are if one is missing.
        """
        table = read_csv(Path(path), time, states, year_days)
        check_rows(table.times, table.states, table.names, table.where)
        return cls(table.times, table.states, table.names, origin=table.origin)

    @classmethod
    def from_dataframe(
        cls, df: Any, time: str | None = "t", states: Sequence[str] | None = None, *, year_days: float = YEAR_DAYS
    ) -> Series:
        """Take columns of a pandas or polars data frame (any that narwhals knows); the arguments are those of `from_csv`.

        Dates must be in a column: use ``df.reset_index()`` if they are the index of a pandas frame.
        """
        table = read_dataframe(df, time, states, year_days)
        check_rows(table.times, table.states, table.names, table.where)
        return cls(table.times, table.states, table.names, origin=table.origin)

    def to_csv(self, path: str | Path) -> None:
        """Write columns ``t`` and the coordinates; numbers are written so that they are read back exactly.

        The file appears complete or not at all: it is written under another name first.
        """
        write_csv(Path(path), ("t", *self.names), self.to_numpy())

    def to_numpy(self) -> Float[np.ndarray, "n columns"]:
        """One array of shape ``(n, 1 + d)``: the times, then the coordinates."""
        return np.column_stack([self.times, self.states])

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame with columns ``t`` and the coordinates."""
        import pandas as pd  # noqa: PLC0415  an optional dependency

        return pd.DataFrame(self._columns())

    def to_polars(self) -> pl.DataFrame:
        """A polars data frame with columns ``t`` and the coordinates."""
        import polars as pl  # noqa: PLC0415  an optional dependency

        return pl.DataFrame(self._columns())

    def _columns(self) -> dict[str, np.ndarray]:
        return {"t": self.times, **dict(zip(self.names, self.states.T, strict=True))}

    def __len__(self) -> int:
        return len(self.times)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Series):
            return NotImplemented
        same = self.names == other.names and self.origin == other.origin
        return same and np.array_equal(self.times, other.times) and np.array_equal(self.states, other.states)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        span = f"times {self.times[0]:.7g} to {self.times[-1]:.7g}" if len(self) > 1 else f"time {self.times[0]:.7g}"
        gaps = ""
        if len(self) > 1:
            low, high = self.gaps.min(), self.gaps.max()
            gaps = f", gaps {low:.4g}" + (f" to {high:.4g}" if high - low > 1e-9 * high else "")
        origin = f", time 0 is {self.origin}" if self.origin else ""
        return f"Series({len(self)} observations of {', '.join(self.names)}; {span}{gaps}{origin})"


def check_rows(
    times: Float[np.ndarray, " n"], states: Float[np.ndarray, "n d"], names: tuple[str, ...], where: Callable[[int], str]
) -> None:
    """Raise ValueError for the first row that cannot be part of a series; `where` says in words which row it is."""
    if len(times) == 0:
        raise ValueError("Series: got no rows, expected at least one observation.")
    for name, column in (("time", times), *zip(names, states.T, strict=True)):
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            more = f" ({bad.size} rows are like that)" if bad.size > 1 else ""
            raise ValueError(f"Series: {name} is {column[bad[0]]} in {where(int(bad[0]))}, expected a finite number{more}.")
    backwards = np.flatnonzero(np.diff(times) <= 0)
    if backwards.size:
        row = int(backwards[0]) + 1
        problem = "repeats" if times[row] == times[row - 1] else "is earlier than"
        raise ValueError(
            f"Series: time {times[row]:.10g} in {where(row)} {problem} the time before it ({times[row - 1]:.10g}); "
            "expected strictly increasing times."
        )


def _default_names(d: int) -> tuple[str, ...]:
    return tuple(f"x{i + 1}" for i in range(d))


def _array(value: Any, what: str, ndim: tuple[int, ...]) -> np.ndarray:
    """A read-only float64 copy."""
    try:
        array = np.array(value)
        if array.dtype.kind not in "fiuO":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"Series: {what} must be numbers in a rectangular array, got {value!r:.200}.") from None
    if array.ndim not in ndim:
        expected = " or ".join("(n,)" if k == 1 else "(n, d)" for k in ndim)
        raise ValueError(f"Series: {what} has shape {array.shape}, expected {expected}.")
    array.setflags(write=False)
    return array

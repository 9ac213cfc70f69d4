"""Series: what they refuse and how, and the way to files and data frames and back."""

import datetime as dt
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fokkerflow.sde.models import CIR, Heston
from fokkerflow.sde.series import Series

TIMES = [0.0, 0.5, 2.0]
STATES = [[0.1, 0.0], [0.2, -0.3], [0.15, 0.4]]


@pytest.fixture
def series() -> Series:
    return Series(TIMES, STATES, ("v", "y"))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_transitions(series: Series) -> None:
    x0, x1, gaps, t0 = series.transitions()
    np.testing.assert_array_equal(x0, STATES[:2])
    np.testing.assert_array_equal(x1, STATES[1:])
    np.testing.assert_array_equal(gaps, [0.5, 1.5])
    np.testing.assert_array_equal(t0, [0.0, 0.5])
    assert len(series) == 3
    assert [a.shape for a in Series([1.0], [3.0]).transitions()] == [(0, 1), (0, 1), (0,), (0,)]


def test_a_series_cannot_be_changed(series: Series) -> None:
    given = np.array(TIMES)
    held = Series(given, STATES)
    given[0] = -9.0
    assert held.times[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        held.states[0, 0] = 1.0
    with pytest.raises(AttributeError):
        series.times = np.zeros(3)  # type: ignore[misc]


def test_representation(series: Series) -> None:
    assert repr(series) == "Series(3 observations of v, y; times 0 to 2, gaps 0.5 to 1.5)"
    assert repr(Series([0, 1, 2], [1, 2, 3], origin="2024-01-31")) == (
        "Series(3 observations of x1; times 0 to 2, gaps 1, time 0 is 2024-01-31)"
    )
    assert repr(Series([4], [1])) == "Series(1 observations of x1; time 4)"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], []), ValueError, "no rows"),
        (([0, 1], [1, 2, 3]), ValueError, "2 times and 3 states"),
        (([0, 1, 1], [1, 2, 3]), ValueError, r"time 1 in row 2 repeats"),
        (([0, 2, 1], [1, 2, 3]), ValueError, r"time 1 in row 2 is earlier than the time before it \(2\)"),
        (([0, np.nan], [1, 2]), ValueError, "time is nan in row 1"),
        (([0, 1], [[1, 2], [3, np.inf]], ("v", "y")), ValueError, "y is inf in row 1"),
        (([0, 1, 2], [1, np.nan, np.nan]), ValueError, r"x1 is nan in row 1, expected a finite number \(2 rows"),
        (([0, 1], ["a", "b"]), TypeError, "states must be numbers"),
        (([0, 1], [1, None]), ValueError, "x1 is nan in row 1"),
        (([0, 1], [[1, 2], [3]]), TypeError, "rectangular"),
        (([[0, 1]], [1, 2]), ValueError, r"times has shape \(1, 2\), expected \(n,\)"),
        (([0], [[[1]]]), ValueError, r"states has shape \(1, 1, 1\), expected \(n,\) or \(n, d\)"),
        (([0], np.zeros((1, 0))), ValueError, r"states of shape \(n, 0\)"),
        (([0], [1j]), TypeError, "states must be numbers"),
        (([0], [[1, 2]], ("v",)), ValueError, r"1 names \(v\), expected 2"),
        (([0], [[1, 2]], ("v", "v")), ValueError, "different"),
        (([0], [1], ("t",)), ValueError, "other than 't'"),
        (([0], [1], "v"), TypeError, "sequence of names"),
    ],
)
def test_refusals(arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Series(*arguments)


def test_check_against_a_model(series: Series) -> None:
    assert series.check(Heston()) is series
    Series(TIMES, STATES).check(Heston())  # without names
    with pytest.raises(ValueError, match=r"CIR: the series has 2 coordinates \(v, y\), expected 1: v"):
        series.check(CIR())
    with pytest.raises(ValueError, match="coordinates y, v, expected v, y in this order"):
        Series(TIMES, STATES, ("y", "v")).check(Heston())
    with pytest.raises(ValueError, match=r"Heston: v = 0 in row 1 \(time 0.5\), expected a value in \(0, inf\) \(2 rows"):
        Series(TIMES, [[1, 0], [0, 0], [-1, 0]]).check(Heston())


@settings(max_examples=40, deadline=None)
@given(
    states=hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=st.floats(-1e300, 1e300)),
    start=st.floats(-1e6, 1e6),
    data=st.data(),
)
def test_round_trips_are_exact(tmp_path_factory: pytest.TempPathFactory, states: np.ndarray, start: float, data) -> None:
    gaps = data.draw(hnp.arrays(np.float64, len(states) - 1, elements=st.floats(1e-3, 1e3)))
    series = Series(start + np.concatenate([[0.0], np.cumsum(gaps)]), states)
    path = tmp_path_factory.mktemp("series") / "series.csv"
    series.to_csv(path)
    assert Series.from_csv(path) == series
    assert Series.from_dataframe(series.to_pandas()) == series
    assert Series.from_dataframe(series.to_polars()) == series
    table = series.to_numpy()
    assert Series(table[:, 0], table[:, 1:]) == series


@contextmanager
def suppress_if_named(*starts: str) -> Iterator[None]:
    """Errors whose message starts with what it is about are fine."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not str(error).startswith(starts):
            raise


@settings(max_examples=60, deadline=None)
@given(
    times=st.lists(st.one_of(st.floats(), st.none(), st.text(max_size=3)), max_size=4),
    states=st.lists(st.one_of(st.floats(), st.none(), st.booleans(), st.text(max_size=3)), max_size=4),
)
def test_anything_else_is_refused_with_a_message(times: list, states: list) -> None:
    with suppress_if_named("Series: "):
        assert np.all(np.isfinite(Series(times, states).to_numpy()))


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, series: Series, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "series.csv"
    series.to_csv(path)
    before = path.read_text()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        Series([0, 1], [5, 6]).to_csv(path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["series.csv"]


def test_the_written_file_has_ordinary_permissions(tmp_path: Path, series: Series) -> None:
    series.to_csv(tmp_path / "series.csv")
    (tmp_path / "other").touch()
    assert (tmp_path / "series.csv").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_csv_selects_columns_and_skips_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "\ufeffy, time ,v,note\n1,0,0.1,a\n\n2,1,0.2,b\n")
    series = Series.from_csv(path, time="time", states=["v", "y"])
    assert series == Series([0, 1], [[0.1, 1], [0.2, 2]], ("v", "y"))
    assert Series.from_csv(path, time=None, states=["v"]) == Series([0, 1], [0.1, 0.2], ("v",))


def test_csv_dates_become_years(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "t,r\n2024-01-31,1\n2025-01-31,2\n2025-02-01T12:00,3\n")
    series = Series.from_csv(path)
    np.testing.assert_allclose(series.times, np.array([0, 366, 367.5]) / 365.25, rtol=1e-15)
    assert series.origin == "2024-01-31"
    np.testing.assert_allclose(Series.from_csv(path, year_days=252.0).times, np.array([0, 366, 367.5]) / 252, rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty, expected a header"),
        ("t,v\n", "no rows"),
        ("t,v\n0,1\n1,abc\n", r"line 3, column 'v': got 'abc', expected a number"),
        ("t,v\n0,1\n\n1,\n", r"line 4, column 'v': got '', expected a number"),
        ("t,v\n0,1_000\n", "got '1_000', expected a number"),
        ("t,v\n0,1\n1\n", "line 3: got 1 cells, expected 2"),
        ("t,v\n0,1\n1,nan\n", r"v is nan in row 1 \(line 3 of .*a.csv\)"),
        ("t,v\n0,1\n\n0,2\n", r"time 0 in row 1 \(line 4 of .*a.csv\) repeats"),
        ("time,v\n0,1\n", "no column 't'; its columns are 'time', 'v'"),
        ("t,v,v\n0,1,1\n", "more than one column 'v'"),
        ("t\n0\n", "no columns besides the time 't'"),
        ("t;v\n0;1\n", "no column 't'; its columns are 't;v'"),
        (
            "t,v\n2024-01-01,1\nsoon,2\n",
            r"line 3, column 't': got 'soon', expected an ISO date like the first one, '2024-01-01'",
        ),
        ("t,v\n2024-01-01,1\n2024-01-02T00:00+01:00,2\n", "expected an ISO date like"),
        ("t,v\n1,1\n2024-01-02,2\n", r"line 3, column 't': got '2024-01-02', expected a number"),
    ],
)
def test_csv_refusals(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Series.from_csv(write(tmp_path / "a.csv", text))


@pytest.mark.parametrize("library", [pd, pl])
def test_data_frames_with_dates(library) -> None:
    days = [dt.datetime(2024, 1, 31), dt.datetime(2024, 2, 1, 12), dt.datetime(2025, 1, 31)]
    df = library.DataFrame({"day": days, "v": [1, 2, 3], "y": [0.5, 0.6, 0.7]})
    series = Series.from_dataframe(df, time="day", states=["y", "v"])
    np.testing.assert_allclose(series.times, np.array([0, 1.5, 366]) / 365.25, rtol=1e-15)
    np.testing.assert_array_equal(series.states, [[0.5, 1], [0.6, 2], [0.7, 3]])
    assert series.names == ("y", "v")
    assert series.origin == "2024-01-31 00:00:00"


def test_a_column_of_dates_without_times_of_day() -> None:
    series = Series.from_dataframe(pl.DataFrame({"t": [dt.date(2024, 1, 1), dt.date(2024, 1, 3)], "v": [1.0, 2.0]}))
    np.testing.assert_allclose(series.times, [0, 2 / 365.25], rtol=1e-15)
    assert series.origin == "2024-01-01"


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"time": [0], "v": [1]}, ValueError, "no column 't'; its columns are 'time', 'v'"),
        ({"t": [0, 1], "v": ["a", "b"]}, TypeError, "column 'v' has type String, expected numbers"),
        ({"t": ["0", "1"], "v": [1, 2]}, TypeError, "column 't' has type String, expected numbers"),
        ({"t": [0, 1], "v": [1.0, float("nan")]}, ValueError, "row 1"),
        ({"t": [dt.datetime(2024, 1, 1), None], "v": [1, 2]}, ValueError, "column 't' has no value in row 1"),
        ({"t": [1, 0], "v": [1, 2]}, ValueError, "time 0 in row 1 is earlier"),
    ],
)
def test_data_frame_refusals(library, columns: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Series.from_dataframe(library.DataFrame(columns))


def test_what_is_not_a_data_frame_is_refused() -> None:
    with pytest.raises(TypeError, match="Got dict, expected a data frame"):
        Series.from_dataframe({"t": [0], "v": [1]})

"""The section about the data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np

from fokkerflow.report.contents import Contents
from fokkerflow.report.data_figures import state_figure
from fokkerflow.report.embed import Picture, picture
from fokkerflow.report.page import Block, Section, Table
from fokkerflow.report.words import counted, interval_text, listed
from fokkerflow.sde.series import YEAR_DAYS, Series


def data_section(contents: Contents) -> Section:
    """The observations: pictures, ranges, and how time is counted."""
    return Section(
        "data",
        "The data",
        (
            Block("text", sentence(contents.series) + _calendar(contents.series)),
            Block("wide figures", [_figure(contents, i) for i in range(contents.sde.dimension)]),
            Block("table", _ranges(contents)),
        ),
    )


def sentence(series: Sequence[Series]) -> str:
    """How much data of what, in one sentence."""
    rows, gaps = sum(len(one) for one in series), np.concatenate([one.gaps for one in series])
    what = f"{counted(rows, 'observation')} of {listed(series[0].names)}"
    pooled = "" if len(series) == 1 else f" in {counted(len(series), 'series')}, taken as independent"
    return f"{what}{pooled}, {_spacing(gaps)} apart."


def _spacing(gaps: np.ndarray) -> str:
    low, high = gaps.min(), gaps.max()
    if high - low <= 1e-6 * high:
        return f"{low:.4g}"
    return f"between {low:.4g} and {high:.4g} (median {np.median(gaps):.4g})"


def _calendar(series: Sequence[Series]) -> str:
    origins = {one.origin for one in series if one.origin}
    if not origins:
        return ""
    return f" Dates are turned into years of {YEAR_DAYS:g} days (Actual/365.25); time 0 is {listed(sorted(origins))}."


def _figure(contents: Contents, i: int) -> Picture:
    series, name = contents.series, list(contents.sde.states)[i]
    origin = series[0].origin if len({one.origin for one in series}) == 1 else None
    figure = state_figure([one.times for one in series], [one.states[:, i] for one in series], origin=origin)
    return picture(figure, name, f"The observations of {name} against time.")


def _ranges(contents: Contents) -> Table:
    rows = []
    for i, (name, domain) in enumerate(contents.sde.states.items()):
        values = np.concatenate([one.states[:, i] for one in contents.series])
        numbers = (values.min(), values.mean(), values.max(), values.std())
        rows.append([name, interval_text(domain), *(f"{number:.4g}" for number in numbers)])
    first, last = (_moment(contents.series[0], k) for k in (0, -1))
    span = f", from {first} to {last}" if len(contents.series) == 1 else ""
    return Table(f"The states{span}", ["", "domain", "smallest", "mean", "largest", "sd"], rows)


def _moment(series: Series, index: int) -> str:
    time = float(series.times[index])
    try:
        return str((datetime.fromisoformat(series.origin or "") + timedelta(days=YEAR_DAYS * time)).date())
    except ValueError:
        return f"time {time:.6g}"

"""Figures of data: the observations, the bands in which a model expects them, and where in its predictions they fell."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import binom

from fokkerflow.report.style import BLUE, INK, MUTED, style
from fokkerflow.sde.series import YEAR_DAYS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE = (5.6, 2.3)
_MANY = 3000
"""Lines through more points than this are drawn as pixels."""

_BINS = 20


class Bands(NamedTuple):
    """Central bands of predictions, from the widest to the narrowest, and their middle.

    **Arguments:** the probability of each band; lower and upper ends of shape ``(bands, n)``; the median of shape ``(n,)``.
    """

    levels: tuple[float, ...]
    lower: Float[np.ndarray, "b n"]
    upper: Float[np.ndarray, "b n"]
    median: Float[np.ndarray, " n"]


def state_figure(
    times: Sequence[Float[np.ndarray, " n"]],
    values: Sequence[Float[np.ndarray, " n"]],
    bands: Bands | None = None,
    origin: str | None = None,
) -> Figure:
    """One state of one or several series against time; of a single series, with the bands in which it was predicted."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.subplots()
        if bands is not None:
            at = _calendar(times[0], origin)
            for level, low, high in zip(bands.levels, bands.lower, bands.upper, strict=True):
                axes.fill_between(at, low, high, color=BLUE, alpha=0.16, linewidth=0, label=f"{level:.0%}")
            axes.plot(at, bands.median, color=BLUE, linewidth=0.9)
        for clock, column in zip(times, values, strict=True):
            alpha = 1.0 if len(values) == 1 else 0.6
            axes.plot(_calendar(clock, origin), column, color=INK, linewidth=0.8, alpha=alpha, rasterized=len(column) > _MANY)
        axes.margins(x=0.01)
        if origin is None:
            axes.set_xlabel("time")
    return figure


def pit_figure(values: Float[np.ndarray, " n"]) -> Figure:
    """How often the data fell into each twentieth of what the model predicted; equally often, if the model is right."""
    from matplotlib.figure import Figure

    n = len(values)
    low, high = (binom.ppf(q, n, 1 / _BINS) * _BINS / n for q in (0.005, 0.995))
    with style():
        figure = Figure(figsize=(3.6, 2.0), layout="constrained")
        axes = figure.subplots()
        axes.axhspan(low, high, color=MUTED, alpha=0.15, linewidth=0, zorder=3)
        counts, edges = np.histogram(values, _BINS, (0, 1))
        axes.stairs(counts * _BINS / n, edges, color=BLUE, fill=True, alpha=0.25)
        axes.stairs(counts * _BINS / n, edges, color=BLUE, linewidth=1.1)
        axes.axhline(1, color=MUTED, linewidth=0.8)
        axes.set(xlim=(0, 1), ylim=(0, None), xticks=[0, 0.25, 0.5, 0.75, 1], xlabel="share of the prediction below the datum")
    return figure


def residual_figure(times: Float[np.ndarray, " n"], residuals: Float[np.ndarray, " n"], origin: str | None = None) -> Figure:
    """Residuals in standard deviations against time; 99 % of those of a right model lie in the band."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(3.6, 2.0), layout="constrained")
        axes = figure.subplots()
        axes.axhspan(-2.576, 2.576, color=MUTED, alpha=0.12, linewidth=0)
        axes.axhline(0, color=MUTED, linewidth=0.8)
        axes.plot(_calendar(times, origin), residuals, ".", color=BLUE, markersize=3, alpha=0.8, rasterized=len(times) > _MANY)
        reach = max(3.5, 1.1 * float(np.abs(residuals).max(initial=0)))
        axes.set(ylim=(-reach, reach), **({"xlabel": "time"} if origin is None else {}))
        axes.margins(x=0.01)
    return figure


def _calendar(times: Float[np.ndarray, " n"], origin: str | None) -> Any:
    """Times as they are, or as dates if time 0 is one."""
    try:
        start = datetime.fromisoformat(origin or "")
    except ValueError:
        return times
    return [start + timedelta(days=YEAR_DAYS * float(t)) for t in times]

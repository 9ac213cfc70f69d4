"""Figures. Each function draws and returns a matplotlib figure; none shows or saves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fokkerflow.inference.slices import Slice
from fokkerflow.report.style import BLUE, INK, MUTED, ORANGE, style
from fokkerflow.sde.series import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def likelihood_figure(series: Series, curves: Sequence[Slice], truth: Mapping[str, float], title: str) -> Figure:
    """The data above, and below it the log likelihood along each parameter, with the true values marked."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(11, 5.6), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
        halves: Any = figure.subfigures(2, 1, height_ratios=[1, 1.1])
        top, bottom = halves
        for axes, name, column in zip(
            np.atleast_1d(top.subplots(1, series.dimension)), series.names, series.states.T, strict=True
        ):
            axes.plot(series.times, column, color=INK, linewidth=0.9)
            axes.set(title=name, xlabel="time")
        for axes, curve in zip(np.atleast_1d(bottom.subplots(1, len(curves), sharey=True)), curves, strict=True):
            _draw_slice(axes, curve, truth[curve.parameter])
        bottom.axes[0].set_ylabel("log likelihood, less its maximum")
    return figure


def _draw_slice(axes: Axes, curve: Slice, truth: float) -> None:
    drop = curve.log_likelihood - curve.log_likelihood.max()
    axes.axvspan(*curve.interval, color=BLUE, alpha=0.10, linewidth=0, label="95 % of the slice")
    axes.plot(curve.values, drop, color=BLUE)
    axes.axvline(truth, color=ORANGE, linestyle="--", linewidth=1.2, label="true value")
    axes.set(title=curve.parameter, ylim=(-7, 0.4))
    axes.annotate(f"{truth:g}", (truth, -6.7), color=ORANGE, fontsize=8, ha="left", xytext=(3, 0), textcoords="offset points")
    axes.locator_params(axis="x", nbins=4)
    axes.tick_params(labelcolor=MUTED)

"""Figures of a posterior: one parameter with its prior, and every pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from fokkerflow.report.smooth import smooth_density
from fokkerflow.report.style import BLUE, INK, MUTED, ORANGE, style
from fokkerflow.report.words import with_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVEL = 0.9
"""Of the intervals that are shown: between the 5 % and the 95 % quantile."""

_MOST_POINTS = 2000
_MARGIN = 0.25
"""Of the range of the draws, to either side: there the prior is seen to go on, or to end."""


def interval(draws: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """The central interval that has the posterior probability `LEVEL`."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def marginal_figure(
    draws: Float[np.ndarray, " n"], prior: Float[np.ndarray, " m"] | None = None, truth: float | None = None
) -> Figure:
    """The density of one parameter, its central interval, the prior, and the true value where it is known."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(3.6, 2.3), layout="constrained")
        axes = figure.subplots()
        at = _around(draws)
        density = smooth_density(draws, at)
        inside = (at >= interval(draws)[0]) & (at <= interval(draws)[1])
        axes.fill_between(at[inside], density[inside], color=BLUE, alpha=0.18, linewidth=0)
        axes.plot(at, density, color=BLUE)
        if prior is not None:
            axes.plot(at, smooth_density(prior, at), color=MUTED, linestyle=(0, (4, 2)), linewidth=1.3)
        if truth is not None:
            axes.axvline(truth, color=ORANGE, linewidth=1.3)
        axes.set(ylim=(0, 1.08 * density.max()), xlim=(at[0], at[-1]), yticks=[])
        axes.spines["left"].set_visible(False)
        axes.locator_params(axis="x", nbins=5)
    return figure


def pair_figure(draws: Mapping[str, Float[np.ndarray, " n"]], truth: Mapping[str, float] | None = None) -> Figure:
    """Every pair of parameters as a cloud of draws, with the marginals on the diagonal and the correlations above it."""
    from matplotlib.figure import Figure

    n = len(draws)
    with style():
        figure = Figure(figsize=(1.6 + 1.35 * n, 1.2 + 1.25 * n), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02, wspace=0.02, hspace=0.02)  # type: ignore[call-arg, union-attr]
        grid: Any = figure.subplots(n, n, squeeze=False)
        for i, (below, vertical) in enumerate(draws.items()):
            for j, (left, horizontal) in enumerate(draws.items()):
                axes = grid[i, j]
                if i == j:
                    _draw_marginal(axes, horizontal)
                elif i > j:
                    _draw_cloud(axes, horizontal, vertical, (truth[left], truth[below]) if truth else None)
                else:
                    _write_correlation(axes, float(np.corrcoef(horizontal, vertical)[0, 1]))
                _label_outside(axes, left if i == n - 1 else "", below if j == 0 and i > 0 else "")
    return figure


def _around(draws: Float[np.ndarray, " n"]) -> Float[np.ndarray, " k"]:
    low, high = np.quantile(draws, [0.001, 0.999])
    margin = _MARGIN * (high - low)
    return np.linspace(low - margin, high + margin, 241)


def _draw_marginal(axes: Axes, draws: Float[np.ndarray, " n"]) -> None:
    low, high = np.quantile(draws, [0.0005, 0.9995])
    at = np.linspace(low, high, 121)
    density = smooth_density(draws, at)
    axes.fill_between(at, density, color=BLUE, alpha=0.18, linewidth=0)
    axes.plot(at, density, color=BLUE, linewidth=1.2)
    axes.set(yticks=[], ylim=(0, None))
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=3)


def _draw_cloud(axes: Axes, x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], truth: tuple[float, float] | None) -> None:
    some = slice(None, None, max(1, -(-len(x) // _MOST_POINTS)))
    axes.scatter(x[some], y[some], s=3, color=BLUE, alpha=0.25, linewidths=0, rasterized=True)
    if truth is not None:
        axes.scatter(*truth, s=60, marker="+", color=ORANGE, linewidths=1.6, zorder=3)
    axes.locator_params(nbins=3)


def _write_correlation(axes: Axes, correlation: float) -> None:
    axes.axis("off")
    strength = 0.35 + 0.65 * abs(correlation)
    axes.text(
        0.5,
        0.5,
        with_minus(f"{correlation:+.2f}"),
        transform=axes.transAxes,
        ha="center",
        va="center",
        fontsize=11,
        color=INK,
        alpha=strength,
    )


def _label_outside(axes: Axes, bottom: str, left: str) -> None:
    """Numbers and names at the outer edges only."""
    if axes.axison:
        axes.set(xlabel=bottom, ylabel=left)
        axes.tick_params(labelbottom=bool(bottom), labelleft=bool(left), labelsize=7)

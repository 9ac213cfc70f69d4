"""The figure of a comparison of densities: accuracy against cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fokkerflow.report.accuracy import Accuracy, Errors
from fokkerflow.report.style import CHAINS, INK, MUTED, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _Panel(NamedTuple):
    """A kind of errors: the field that holds it, what it is called, and where the line of a point ends."""

    field: str
    title: str
    end: str


_PANELS = (
    _Panel("at_star", "log likelihood at μ*", "largest"),
    _Panel("over_law", "log likelihood over the test law", "mean"),
    _Panel("l2", "density, L2", "mean"),
)
_CAPTION = (
    "Point: median. Line: to the largest (at μ*) or to the mean (the others). Triangle: the median is above, or not finite.\n"
    "Dashed: cost of the reference."
)
_LEAST, _MOST = 1e-16, 100.0
"""Smaller errors are rounding; larger ones say nothing but that they are too large."""

_APART, _NEAR = 0.052, 0.4
"""Labels that are nearer to each other than this, in shares of the axes' height and width, move apart."""


def accuracy_figure(rows: Sequence[Accuracy], title: str) -> Figure:
    """Relative errors against microseconds a transition: one row of panels for each time gap.

    A point is the median error, its line ends at the largest one (at mu*) or at the mean; the caption says so.
    """
    from matplotlib.figure import Figure

    gaps = list(dict.fromkeys(row.dt for row in rows))
    panels = [panel for panel in _PANELS if any(getattr(row, panel.field) for row in rows)] or _PANELS[:1]
    colours = {name: CHAINS[i % len(CHAINS)] for i, name in enumerate(dict.fromkeys(row.name for row in rows))}
    with style():
        figure = Figure(figsize=(4.4 * len(panels), 3.9 * len(gaps) + 0.4), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        grid: Any = figure.subplots(len(gaps), len(panels), squeeze=False)
        for line, dt in zip(grid, gaps, strict=True):
            here = [row for row in rows if row.dt == dt and not row.reason]
            for axes, panel in zip(line, panels, strict=True):
                _draw(axes, here, panel, colours)
                axes.set_title(panel.title if len(gaps) == 1 else f"{panel.title}, dt = {dt:g}", pad=10)
            line[0].set_ylabel("relative error")
        for axes in grid[-1]:
            axes.set_xlabel("µs a transition")
        figure.supxlabel(_CAPTION, x=0.01, ha="left", fontsize=8, color=MUTED)
    return figure


def _draw(axes: Axes, rows: Sequence[Accuracy], panel: _Panel, colours: dict[str, str]) -> None:
    found = [(row, errors) for row in rows if (errors := getattr(row, panel.field)) is not None]
    low, high = _limits(found, panel)
    costs = [row.microseconds for row in rows] or [1.0]
    axes.set(xscale="log", yscale="log", xlim=(min(costs) / 2.5, max(costs) * 2.5), ylim=(low, high))
    for row in (row for row in rows if row.is_reference):
        axes.axvline(row.microseconds, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        axes.text(row.microseconds, 0.01, f" {row.name}", color=MUTED, fontsize=8, transform=axes.get_xaxis_transform())
    points = [(row.name, row.microseconds, float(np.clip(errors.median, low, high))) for row, errors in found]
    for (name, x, y), (_, errors) in zip(points, found, strict=True):
        inside = errors.median < high
        if inside:
            end = float(np.clip(getattr(errors, panel.end), low, high))
            axes.plot([x, x], [y, end], color=colours[name], linewidth=1, alpha=0.6)
        axes.plot([x], [y], marker="o" if inside else "^", markersize=6, color=colours[name], clip_on=False)
    _label(axes, points)


def _limits(found: Sequence[tuple[Accuracy, Errors]], panel: _Panel) -> tuple[float, float]:
    """Powers of ten around all that is worth showing."""
    values = [v for _, errors in found for v in (errors.median, getattr(errors, panel.end)) if math.isfinite(v)]
    clipped = np.clip(values or [1e-3, 1.0], _LEAST, _MOST)
    return 10 ** (math.floor(math.log10(clipped.min())) - 0.3), 10 ** (math.ceil(math.log10(clipped.max())) + 0.3)


def _label(axes: Axes, points: Sequence[tuple[str, float, float]]) -> None:
    """Names beside the points; those that would overlap move up, and keep a line to their point."""
    to_share = axes.transScale + axes.transLimits
    taken: list[tuple[float, float]] = []
    for name, x, y in sorted(points, key=lambda point: point[2]):
        u, v = to_share.transform((x, y))
        at = v
        while any(abs(u - other_u) < _NEAR and abs(at - other) < _APART for other_u, other in taken):
            at += _APART / 4
        taken.append((u, at))
        left = u > 0.6
        axes.annotate(
            name,
            (x, y),
            (u + (-0.03 if left else 0.03), at),
            textcoords="axes fraction",
            ha="right" if left else "left",
            va="center",
            fontsize=8,
            color=INK,
            arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.5, "shrinkB": 3} if at - v > _APART / 2 else None,
        )

"""The figure of a simulation-based calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fokkerflow.inference.ranks import Calibration
from fokkerflow.report.style import BLUE, MUTED, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 3


def calibration_figure(found: Calibration) -> Figure:
    """Histograms of the ranks of the truth, with the band that holds 95 % of the bars of uniform ones."""
    from matplotlib.figure import Figure

    counts, (low, high) = found.histogram()
    rows = -(-len(counts) // _COLUMNS)
    with style():
        figure = Figure(figsize=(3.4 * _COLUMNS, 2.1 * rows + 0.5), layout="constrained")
        figure.suptitle(found.verdict, x=0.01, ha="left", fontsize=10, fontweight="bold", wrap=True)
        grid: Any = figure.subplots(rows, _COLUMNS, squeeze=False, sharey=True)
        for axes in grid.ravel()[len(counts) :]:
            axes.axis("off")
        for axes, name, bars in zip(grid.ravel(), found.quantities, counts, strict=False):
            axes.axhspan(low, high, color=MUTED, alpha=0.15, linewidth=0)
            axes.stairs(bars, np.linspace(0, 1, len(bars) + 1), color=BLUE, fill=True, alpha=0.5)
            axes.set(title=name, xlim=(0, 1), xticks=[0, 0.5, 1], xlabel="rank of the truth")
    return figure

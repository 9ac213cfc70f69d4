"""The figure of profile likelihoods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fokkerflow.inference.profile import Profile
from fokkerflow.report.style import BLUE, MUTED, ORANGE, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 3
_LOWEST = -6.0
_REACH_95 = -1.9207
"""Half the 95 % quantile of the chi-squared law with one degree of freedom."""


def profile_figure(profiles: Sequence[Profile], truth: Mapping[str, float] | None = None) -> Figure:
    """The profile along each parameter, with the interval that holds 95 %."""
    from matplotlib.figure import Figure

    rows = -(-len(profiles) // _COLUMNS)
    with style():
        figure = Figure(figsize=(3.4 * _COLUMNS, 2.3 * rows), layout="constrained")
        grid: Any = figure.subplots(rows, _COLUMNS, squeeze=False, sharey=True)
        for axes in grid.ravel()[len(profiles) :]:
            axes.axis("off")
        for axes, profile in zip(grid.ravel(), profiles, strict=False):
            low, high = np.clip(profile.interval(), profile.values[0], profile.values[-1])
            axes.axvspan(low, high, color=BLUE, alpha=0.1, linewidth=0)
            axes.axhline(_REACH_95, color=MUTED, linewidth=0.8, linestyle=(0, (4, 2)))
            axes.plot(profile.values, profile.log_likelihood - profile.best[1], color=BLUE, marker=".", markersize=4)
            if truth:
                axes.axvline(truth[profile.parameter], color=ORANGE, linewidth=1.2)
            axes.set(title=profile.parameter, ylim=(_LOWEST, 0.3))
            axes.locator_params(axis="x", nbins=5)
        figure.supylabel("profile log likelihood, less its maximum", fontsize=8, color=MUTED)
    return figure

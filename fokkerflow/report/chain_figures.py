"""Figures of the chains: traces, and histograms of ranks (Vehtari, Gelman, Simpson, Carpenter and Bürkner, 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata

from fokkerflow.report.style import CHAINS, INK, MUTED, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = 20
_MOST_DRAWS = 3000
"""Of one chain in a trace; of longer ones every so many are drawn."""


def trace_figure(chains: Float[np.ndarray, "c n"], diverging: Bool[np.ndarray, "c n"] | None = None) -> Figure:
    """The draws of each chain in the order in which they were made; marks below the axis show divergent ones."""
    from matplotlib.figure import Figure

    step = max(1, -(-chains.shape[1] // _MOST_DRAWS))
    at = np.arange(0, chains.shape[1], step)
    with style():
        figure = Figure(figsize=(3.6, 2.0), layout="constrained")
        axes = figure.subplots()
        for i, chain in enumerate(chains):
            axes.plot(at, chain[::step], color=CHAINS[i % len(CHAINS)], linewidth=0.5, alpha=0.7, rasterized=True)
        if diverging is not None and diverging.any():
            draws = np.nonzero(diverging)[1]
            axes.plot(draws, np.full(len(draws), 0.02), "|", color=INK, markersize=7, transform=axes.get_xaxis_transform())
        axes.set(xlabel="draw", xlim=(0, chains.shape[1]))
        axes.locator_params(nbins=5)
    return figure


def rank_figure(chains: Float[np.ndarray, "c n"], ess: float) -> Figure:
    """For each chain a histogram of the ranks of its draws among all of them: flat, if all chains say the same.

    The band is where 99 % of the bars of flat histograms lie, for as many independent draws as `ess` says there are.
    """
    from matplotlib.figure import Figure

    count, n = chains.shape
    ranks = rankdata(chains).reshape(chains.shape)
    edges = np.linspace(0.5, chains.size + 0.5, _BINS + 1)
    effective = max(1.0, min(n, ess / count))
    spread = 2.576 * np.sqrt((_BINS - 1) / effective) * (1 - 1 / count) ** 0.5
    with style():
        figure = Figure(figsize=(3.6, 1.7), layout="constrained")
        axes = figure.subplots()
        axes.axhspan(max(0.0, 1 - spread), 1 + spread, color=MUTED, alpha=0.12, linewidth=0)
        for i, row in enumerate(ranks):
            share = np.histogram(row, edges)[0] * _BINS / n
            axes.stairs(share, np.linspace(0, 1, _BINS + 1), baseline=None, color=CHAINS[i % len(CHAINS)], linewidth=1.1)
        axes.set(xlabel="rank among all draws", ylim=(0, max(2.0, 1.1 * (1 + spread))), yticks=[0, 1, 2], xticks=[0, 0.5, 1])
    return figure

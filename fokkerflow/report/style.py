"""One look for all figures: quiet axes, colours that survive greyscale and colour blindness."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INK = "#1f2937"
MUTED = "#6b7280"
BLUE = "#2563eb"
ORANGE = "#ea580c"
GREEN = "#059669"
CHAINS = (BLUE, ORANGE, GREEN, "#7c3aed", "#db2777", "#0891b2", "#ca8a04", "#475569")
"""Colours of chains, used again from the start if there are more."""

_STYLE: dict[str, Any] = {
    "figure.dpi": 130,
    "figure.facecolor": "white",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": MUTED,
    "axes.edgecolor": "#d1d5db",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#eef0f3",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "text.color": INK,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "fokkerflow",  # equal figures are equal files
}


@contextmanager
def style() -> Iterator[None]:
    """Draw inside this context; the user's own matplotlib settings are left alone."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        yield

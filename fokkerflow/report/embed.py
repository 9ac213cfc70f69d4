"""Figures as data URIs, so that a page needs no other file and asks nothing of the network."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, NamedTuple

from fokkerflow.report.style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 160
"""Of what is drawn as pixels inside a figure: clouds of points and long traces."""


class Picture(NamedTuple):
    """An image for a page: what it is called, its address, its proportions, what it shows in words, and a remark."""

    title: str
    uri: str
    width: int
    height: int
    description: str
    note: str = ""


def picture(figure: Figure, title: str, description: str, note: str = "") -> Picture:
    """A figure as an SVG image inside its own address."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="svg", dpi=_DPI, metadata={"Date": None, "Creator": None})
    width, height = (round(100 * size) for size in figure.get_size_inches())
    encoded = base64.b64encode(buffer.getvalue()).decode("ascii")
    return Picture(title, f"data:image/svg+xml;base64,{encoded}", width, height, description, note)

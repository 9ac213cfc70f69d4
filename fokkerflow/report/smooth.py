"""A smooth density of draws, for pictures: a Gaussian kernel, reflected where the draws end suddenly."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

_MOST_DRAWS = 4000
_FACTOR = 1.06
"""Of Silverman's rule (1986, equation 3.28)."""

_SUDDEN = 0.01
"""Draws that have more than this share of them within one kernel width of an end stop there; those of a tail do not."""


def smooth_density(draws: Float[np.ndarray, " n"], at: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """The density of `draws` at some values.

    A kernel leaks over the end of a law that stops suddenly, such as a uniform prior; draws are reflected there, and the
    density beyond is 0. At most four thousand draws are used, evenly spaced among those given.
    """
    some = draws[:: max(1, -(-len(draws) // _MOST_DRAWS))]
    width = _width(some)
    if width == 0:
        return np.zeros_like(at)
    ends = [(end, sign) for end, sign in ((some.min(), 1.0), (some.max(), -1.0)) if _stops(some, end, width)]
    mirrored = np.concatenate([some, *(2 * end - some for end, _ in ends)])
    density = np.exp(-0.5 * ((at[:, None] - mirrored) / width) ** 2).sum(1) / (len(some) * width * np.sqrt(2 * np.pi))
    inside = np.all([sign * (at - end) >= 0 for end, sign in ends], axis=0) if ends else np.ones(len(at), bool)
    return np.where(inside, density, 0.0)


def _stops(draws: Float[np.ndarray, " n"], end: float, width: float) -> bool:
    return float(np.mean(np.abs(draws - end) < width)) > _SUDDEN


def _width(draws: Float[np.ndarray, " n"]) -> float:
    """Silverman's rule, with the smaller of standard deviation and interquartile range, in units of a normal law's."""
    quartiles = np.subtract(*np.quantile(draws, [0.75, 0.25])) / 1.349
    spread = min(float(np.std(draws)), float(quartiles)) or float(np.std(draws))
    return _FACTOR * spread * len(draws) ** -0.2

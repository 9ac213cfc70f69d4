"""The observed transitions of one or several series, unpadded, with the series that each belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fokkerflow.inference.likelihood import transitions
from fokkerflow.sde.model import SDE
from fokkerflow.sde.series import Series


class Steps(NamedTuple):
    """Transitions from `x0` at time `t0` to `x1`, `dt` later; `series` counts the series, `row` is that of `x1` in its own."""

    x0: Float[np.ndarray, "n d"]
    x1: Float[np.ndarray, "n d"]
    dt: Float[np.ndarray, " n"]
    t0: Float[np.ndarray, " n"]
    series: Int[np.ndarray, " n"]
    row: Int[np.ndarray, " n"]


def steps(sde: SDE, series: Series | Sequence[Series]) -> Steps:
    """All transitions, in order; refused like the likelihood refuses them."""
    transitions(sde, series)
    every = [series] if isinstance(series, Series) else list(series)
    x0, x1, dt, t0 = (np.concatenate(parts) for parts in zip(*(s.transitions() for s in every), strict=True))
    which = np.repeat(np.arange(len(every)), [len(s) - 1 for s in every])
    row = np.concatenate([np.arange(1, len(s)) for s in every])
    return Steps(x0, x1, dt, t0, which, row)

"""Options of the expansions, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow.sde.model import SDE


def check_whole(value: Any, what: str, low: int, high: int) -> int:
    """A whole number between `low` and `high`, or an error that says so."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{what}: got {value!r}, expected a whole number from {low} to {high}.")
    return value


def check_word(value: Any, what: str, words: Sequence[str]) -> str:
    """One of the words, or an error that lists them."""
    if value not in words:
        raise ValueError(f"{what}: got {value!r}, expected one of {', '.join(map(repr, words))}.")
    return str(value)


def check_noise(sde: SDE) -> SDE:
    """The model, if every direction of its state has noise; an expansion around a Gaussian needs its inverse covariance."""
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        start, p = jnp.array(sde.start), jnp.array([sde.typical[name] for name in sde.parameters])
        lowest = np.linalg.eigvalsh(np.asarray(sde.covariance(jnp.zeros(()), start, p)))[0]
    if not lowest > 0:
        raise ValueError(
            f"{sde.label}: the covariance at its start has the eigenvalue {lowest:g}, expected noise in every direction."
            " Expansions in the time gap do not exist for this model; take 'local-linearisation' or 'moment-closure'."
        )
    return sde

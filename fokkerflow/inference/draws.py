"""Posterior draws, in whatever form they come, as one array in model order: what every check of a posterior starts from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from fokkerflow.sde.model import SDE
from fokkerflow.sde.validation import check_parameters, parameter_vector


def parameter_draws(sde: SDE, draws: Any) -> Float[np.ndarray, "chains draws n"]:
    """Draws of all parameters, in model order.

    **Arguments:**

    - `draws`: an `arviz.InferenceData` with a posterior, its posterior group, a mapping from parameter names to arrays, or an
      array whose last axis is the parameters in model order. In front of them stand chain and draw, or draw alone.

    **Raises:** ValueError if a parameter is missing, there is no draw, or one breaks a constraint of the model.
    """
    posterior = getattr(draws, "posterior", draws)
    if hasattr(posterior, "data_vars"):
        posterior = {name: posterior[name].values for name in sde.parameters if name in posterior.data_vars}
    elif isinstance(posterior, Mapping):
        posterior = {name: posterior[name] for name in posterior if name in sde.parameters}
    values = np.asarray(parameter_vector(sde, posterior), np.float64)
    if values.ndim not in (2, 3) or values.size == 0:
        raise ValueError(
            f"{sde.label}: got draws of shape {values.shape}, expected (chains, draws, {len(sde.parameters)}) "
            f"or (draws, {len(sde.parameters)}), and at least one draw."
        )
    check_parameters(sde, values)
    return values if values.ndim == 3 else values[None]


def thinned(draws: Float[np.ndarray, "chains draws n"], at_most: int) -> Float[np.ndarray, "chains fewer n"]:
    """About `at_most` draws (at least one of each chain), evenly spaced, all chains alike."""
    if at_most < 1:
        raise ValueError(f"Got {at_most} draws to use, expected at least 1.")
    each = max(1, at_most // draws.shape[0])
    if each >= draws.shape[1]:
        return draws
    return draws[:, np.linspace(0, draws.shape[1] - 1, each).round().astype(int)]


def pooled(draws: Float[np.ndarray, "chains draws n"]) -> Float[np.ndarray, "k n"]:
    """All chains one after the other."""
    return draws.reshape(-1, draws.shape[-1])


def exactly(p: Float[np.ndarray, "k n"], count: int) -> Float[np.ndarray, "count n"]:
    """`count` rows: evenly spaced ones if there are more, all of them again and again if there are fewer."""
    if count <= len(p):
        return p[np.linspace(0, len(p) - 1, count).round().astype(int)]
    return p[np.arange(count) % len(p)]

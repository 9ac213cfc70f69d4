"""Where in the training law a figure is large: thirds of every input that matters, and of the shares of coupled constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from fokkerflow.sde.constraint import Inequality
from fokkerflow.training.trained import Trained

_THIRDS = (1 / 3, 2 / 3)


def regions(trained: Trained, x0: Float[np.ndarray, "c d"], p: Float[np.ndarray, "c n_p"]) -> dict[str, dict[str, np.ndarray]]:
    """Rows of each third of each input, by the input's name and the range of the third: ``{"v0": {"below 0.08": ...}}``."""
    return {name: _thirds(values) for name, values in _inputs(trained, x0, p).items()}


def _inputs(trained: Trained, x0: np.ndarray, p: np.ndarray) -> dict[str, np.ndarray]:
    """Starts and parameters that matter, and for a constraint such as Feller's the share of its limit that is used up."""
    sde = trained.sde
    states = {f"{name}0": x0[:, i] for i, name in enumerate(sde.states) if name in trained.relevant}
    parameters = {name: p[:, k] for k, name in enumerate(sde.parameters) if name in trained.relevant}
    values = dict(zip(sde.parameters, p.T, strict=True))
    coupled = [i for constraint in sde.constraints for i in constraint.inequalities if _is_limit(i, sde.parameters)]
    return states | parameters | {f"{i.left_text} / {i.right_text}": values[i.left_text] / i.right(values, np) for i in coupled}


def _is_limit(inequality: Inequality, names: tuple[str, ...]) -> bool:
    """One parameter below an expression of others, such as ``sigma < sqrt(2*alpha*beta)``."""
    return inequality.left_text in names and len(inequality.names) > 1


def _thirds(values: Float[np.ndarray, " c"]) -> dict[str, Any]:
    low, high = np.quantile(values, _THIRDS)
    return {
        f"below {low:.3g}": values < low,
        f"{low:.3g} to {high:.3g}": (values >= low) & (values <= high),
        f"above {high:.3g}": values > high,
    }


def summarise(figure: Float[np.ndarray, " c"], rows: Mapping[str, np.ndarray], levels: Mapping[str, float]) -> dict[str, Any]:
    """Quantiles of a figure over the rows of each region."""
    return {label: {name: float(np.quantile(figure[row], q)) for name, q in levels.items()} for label, row in rows.items()}

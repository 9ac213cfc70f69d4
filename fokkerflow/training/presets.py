"""The settings of `fit` by method and name, with some of their fields changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fokkerflow.sde.model import SDE
from fokkerflow.training import galerkin_presets
from fokkerflow.training.flow_options import AnchoredFlow
from fokkerflow.training.gauss_newton import GaussNewton
from fokkerflow.training.maximum_likelihood import MaximumLikelihood
from fokkerflow.training.preset import Preset

__all__ = ["PRESETS", "AnchoredFlow", "Preset", "preset_with"]

PRESETS: Mapping[str, Mapping[str, Preset | Callable[[SDE], Preset]]] = {
    "gauss-newton": {
        "fast": Preset(AnchoredFlow(components=8, width=10), GaussNewton(points=3000, iterations=40)),
        "default": Preset(AnchoredFlow(), GaussNewton()),
        "accurate": Preset(AnchoredFlow(width=24), GaussNewton(points=9000, iterations=150)),
    },
    "neural-galerkin": {
        "anchored": galerkin_presets.ANCHORED,
        "default": galerkin_presets.ANCHORED,
        "reduced": galerkin_presets.reduced,
        "paper": galerkin_presets.paper,
    },
    "simulation": {
        "fast": Preset(AnchoredFlow(components=8, width=10), MaximumLikelihood(steps=3000)),
        "default": Preset(AnchoredFlow(), MaximumLikelihood()),
        "accurate": Preset(AnchoredFlow(width=24), MaximumLikelihood(points=4096, steps=50_000)),
    },
}
"""By method, then by name; as a function of the model where they depend on it."""


def preset_with(method: str, name: str, overrides: Mapping[str, Any], sde: SDE | None = None) -> Preset:
    """A preset with some fields of its flow or of its trainer changed; ValueError for a name that does not exist.

    **Arguments:**

    - `sde`: the model, for presets that depend on it.
    """
    if method not in PRESETS:
        raise ValueError(f"Got method {method!r}, expected one of {', '.join(map(repr, PRESETS))}.")
    if name not in PRESETS[method]:
        raise ValueError(f"Got preset {name!r} of method {method!r}, expected one of {', '.join(map(repr, PRESETS[method]))}.")
    base = PRESETS[method][name]
    if isinstance(base, Preset):
        return base.changed(overrides)
    if sde is None:
        raise ValueError(f"The preset {name!r} of method {method!r} depends on the model: give it with sde=...")
    return base(sde).changed(overrides)

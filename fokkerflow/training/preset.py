"""A preset: options of the flow and settings of the trainer, changed field by field with overrides."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fokkerflow.training.flow_options import FlowOptions
from fokkerflow.training.galerkin_settings import NeuralGalerkin
from fokkerflow.training.gauss_newton import GaussNewton
from fokkerflow.training.maximum_likelihood import MaximumLikelihood


@dataclass(frozen=True)
class Preset:
    """A flow and how to train it."""

    flow: FlowOptions
    trainer: GaussNewton | NeuralGalerkin | MaximumLikelihood

    def changed(self, overrides: Mapping[str, Any]) -> Preset:
        """The preset with some fields of its flow or of its trainer changed; ValueError for a name that does not exist."""
        parts = {"flow": _names(self.flow), "trainer": _names(self.trainer)}
        unknown = [key for key in overrides if not any(key in names for names in parts.values())]
        if unknown:
            listed = "; ".join(f"of the {part}: {', '.join(names)}" for part, names in parts.items())
            raise ValueError(f"Got the option {unknown[0]!r}, expected one {listed}.")
        return Preset(_changed(self.flow, overrides), _changed(self.trainer, overrides))


def _changed(settings: Any, overrides: Mapping[str, Any]) -> Any:
    """The settings with those overrides that are theirs."""
    own = {name: value for name, value in overrides.items() if name in _names(settings)}
    for field in dataclasses.fields(settings):
        if field.name in own and not _may_replace(own[field.name], getattr(settings, field.name), str(field.type)):
            raise TypeError(f"Got {field.name}={own[field.name]!r}, expected something like {getattr(settings, field.name)!r}.")
    return dataclasses.replace(settings, **own)


def _may_replace(value: Any, default: Any, kind: str) -> bool:
    """A word may replace a word, a number a number; a list (one value per state) may replace a number; None where it may be."""
    if value is None:
        return "None" in kind
    if isinstance(default, str) or isinstance(value, str):
        return isinstance(default, str) and isinstance(value, str)
    if isinstance(default, (int, float)) and not isinstance(value, (list, tuple)):
        return isinstance(value, int if isinstance(default, int) else (int, float))
    return True


def _names(settings: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(settings))

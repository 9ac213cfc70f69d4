"""The settings of `fit` by name: options of the flow and settings of the trainer, changed field by field with overrides."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow.flow import Chart, Flow, Network, anchored
from fokkerflow.flow.reference import Reference
from fokkerflow.training.collocation import Gaps
from fokkerflow.training.gauss_newton import GaussNewton
from fokkerflow.training.law import Law

_STANDARDISED_BY = 2000
"""Draws of the training law from which the scale of the flow's features is taken."""


@dataclass(frozen=True)
class AnchoredFlow:
    """Options of `fokkerflow.flow.anchored`; `network`, `width` and `depth` describe the conditioners."""

    layers: int | Sequence[int] = 2
    components: int | Sequence[int] = 6
    network: str = "mlp"
    width: int = 16
    depth: int = 2
    charts: Sequence[Chart | None] | None = None
    references: Sequence[Reference | None] | None = None
    parents: Sequence[Sequence[int]] | None = None
    spread: float = 0.6

    def build(self, law: Law, gaps: Gaps, seed: int) -> Flow:
        """The flow with its first weights."""
        rng = np.random.default_rng(seed)
        x0, p = law.sample(rng, _STANDARDISED_BY)
        tau = gaps.quantile(rng.uniform(size=_STANDARDISED_BY))
        t0 = None if law.t0 is None else jnp.asarray(law.t0.quantile(rng.uniform(size=_STANDARDISED_BY)))
        return anchored(
            jax.random.key(seed),
            law.sde,
            gaps.longest,
            jnp.asarray(x0),
            jnp.asarray(p),
            jnp.asarray(tau),
            t0,
            layers=self.layers,
            components=self.components,
            network=Network(self.network, self.width, self.depth),
            charts=self.charts,
            references=self.references,
            parents=self.parents,
            spread=self.spread,
        )


@dataclass(frozen=True)
class Preset:
    """A flow and how to train it."""

    flow: AnchoredFlow
    trainer: GaussNewton


PRESETS: Mapping[str, Mapping[str, Preset]] = {
    "gauss-newton": {
        "fast": Preset(AnchoredFlow(components=4, width=10), GaussNewton(points=2500, iterations=40)),
        "default": Preset(AnchoredFlow(), GaussNewton()),
        "accurate": Preset(AnchoredFlow(components=8, width=20), GaussNewton(points=10_000, iterations=120)),
    },
}
"""By method, then by name."""


def preset_with(method: str, name: str, overrides: Mapping[str, Any]) -> Preset:
    """A preset with some fields of its flow or of its trainer changed; ValueError for a name that does not exist."""
    if method not in PRESETS:
        raise ValueError(f"Got method {method!r}, expected one of {', '.join(map(repr, PRESETS))}.")
    if name not in PRESETS[method]:
        raise ValueError(f"Got preset {name!r} of method {method!r}, expected one of {', '.join(map(repr, PRESETS[method]))}.")
    base = PRESETS[method][name]
    parts = {"flow": _names(base.flow), "trainer": _names(base.trainer)}
    unknown = [key for key in overrides if not any(key in names for names in parts.values())]
    if unknown:
        listed = "; ".join(f"of the {part}: {', '.join(names)}" for part, names in parts.items())
        raise ValueError(f"Got the option {unknown[0]!r}, expected one {listed}.")
    return Preset(_changed(base.flow, overrides), _changed(base.trainer, overrides))


def _changed(settings: Any, overrides: Mapping[str, Any]) -> Any:
    """The settings with those overrides that are theirs."""
    own = {name: value for name, value in overrides.items() if name in _names(settings)}
    for name, value in own.items():
        default = getattr(settings, name)
        if not _may_replace(value, default):
            raise TypeError(f"Got {name}={value!r}, expected something like {default!r}.")
    return dataclasses.replace(settings, **own)


def _may_replace(value: Any, default: Any) -> bool:
    """A word may replace a word, a number a number; a list (one value per state) may replace a number."""
    if isinstance(default, str) or isinstance(value, str):
        return isinstance(default, str) and isinstance(value, str)
    if isinstance(default, (int, float)) and not isinstance(value, (list, tuple)):
        return isinstance(value, int if isinstance(default, int) else (int, float))
    return True


def _names(settings: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(settings))

"""Options of the two kinds of flow, as plain data that a training can build its flow from."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow.flow import Chart, Flow, Network, anchored, paper
from fokkerflow.flow.reference import Reference
from fokkerflow.training.collocation import Gaps
from fokkerflow.training.law import Law

_STANDARDISED_BY = 2000
"""Draws of the training law from which the scale of the flow's features is taken."""


class FlowOptions(abc.ABC):
    """A kind of flow with its options, before the model is known."""

    @abc.abstractmethod
    def build(self, law: Law, gaps: Gaps, seed: int) -> Flow:
        """The flow with its first weights."""


@dataclass(frozen=True)
class AnchoredFlow(FlowOptions):
    """Options of `fokkerflow.flow.anchored`; `network`, `width` and `depth` describe the conditioners."""

    layers: int | Sequence[int] = 2
    components: int | Sequence[int] = 14
    network: str = "mlp"
    width: int = 14
    depth: int = 2
    charts: Sequence[Chart | None] | None = None
    references: Sequence[Reference | None] | None = None
    parents: Sequence[Sequence[int]] | None = None
    spread: float = 0.75

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
class PaperFlow(FlowOptions):
    """Options of `fokkerflow.flow.paper`: GRU conditioners in a box, which has to be given for models not in the paper."""

    box: Sequence[Sequence[float]] | None = None
    layers: int | Sequence[int] = 5
    components: int | Sequence[int] = 7
    width: int | Sequence[int] = 8
    depth: int = 2
    start_width: float = 1e-2
    parents: Sequence[Sequence[int]] | None = None
    trainable_reference: bool = False

    def build(self, law: Law, gaps: Gaps, seed: int) -> Flow:
        """The flow with its first weights."""
        sde = law.sde
        if self.box is None:
            raise ValueError(
                f"{sde.label}: the paper's flow lives on a box, and there is none for this model. Give one with "
                f"box=((lower, upper), ...), a pair for each of {', '.join(sde.states)}, wide enough that hardly any "
                "probability reaches an end that is not a boundary of the model."
            )
        return paper(
            jax.random.key(seed),
            sde,
            [(float(lower), float(upper)) for lower, upper in self.box],
            layers=self.layers,
            components=self.components,
            width=self.width,
            depth=self.depth,
            start_width=self.start_width,
            parents=self.parents,
            trainable_reference=self.trainable_reference,
        )

"""The paper's start (appendix B): every Gaussian of the first mixture layer at x0, with a vanishing width.

Time is no input: theta itself moves, from weights that make the density a narrow Gaussian around x0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.flow.regression import Origin
from fokkerflow.flow.special import log_softplus
from fokkerflow.flow.start import Condition, Standardisation, Start
from fokkerflow.flow.truncated_mixture import Mixture
from fokkerflow.sde.domain import Domain
from fokkerflow.sde.model import SDE, Parameters, State

if TYPE_CHECKING:
    from fokkerflow.flow.config import Coordinate

Scalar = Float[Array, ""]


@dataclass(frozen=True)
class DiracStart(Start):
    """Means x0 + NN, widths softplus(NN + softplus^-1(width)), weights softmax(NN), and zero output of NN to begin with.

    - `width`: the paper's epsilon-hat, in the units of the chart (the box is [-1, 1]).
    """

    width: float = 1e-2

    kind: ClassVar[str] = "dirac"
    has_moments: ClassVar[bool] = False
    zero_first_head: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.width < math.inf:
            raise ValueError(f"A Dirac start needs width > 0, got {self.width:g}.")

    def feature_count(self, sde: SDE, coordinates: tuple[Coordinate, ...]) -> int:
        return sde.dimension + len(sde.parameters) + (not sde.autonomous)

    def condition(
        self,
        sde: SDE,
        coordinates: tuple[Coordinate, ...],
        standardisation: Standardisation,
        t0: Scalar,
        tau: Scalar,
        x0: State,
        p: Parameters,
    ) -> Condition:
        """Features are x0 in the charts, the raw parameters, and t0 where it matters."""
        placements = tuple(c.chart.unplaced() for c in coordinates)
        location = jnp.stack(
            [c.chart.forward(x0[i], place)[0].value for i, (c, place) in enumerate(zip(coordinates, placements, strict=True))]
        )
        return Condition(
            Origin(t0, tau, x0, p),
            placements,
            means=jnp.zeros_like(x0),
            sds=jnp.ones_like(x0),
            regressions=(None,) * len(coordinates),
            location=location,
            features=jnp.concatenate([location, p] + [jnp.reshape(t0, (1,))] * (not sde.autonomous)),
            gate=jnp.ones_like(location[0]),
        )

    def first(self, raw: Float[Array, " raw"], location: Scalar, gate: Scalar) -> Mixture:
        logits, means, widths = jnp.split(raw, 3)
        offset = math.log(math.expm1(self.width)) if self.width < 30 else self.width  # softplus^-1
        return Mixture(jax.nn.log_softmax(logits), location + means, log_softplus(widths + offset))

    def deeper(self, raw: Float[Array, " raw"], gate: Scalar) -> Mixture:
        logits, means, widths = jnp.split(raw, 3)
        return Mixture(jax.nn.log_softmax(logits), means, log_softplus(widths))

    def earlier_count(self, domain: Domain) -> int:
        return 1

    def earlier(self, domain: Domain, x: Scalar, mean: Scalar, value: Scalar) -> Float[Array, " e"]:
        return value[None]

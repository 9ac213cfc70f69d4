"""The start of a flow: what its first layer is centred and scaled by, and how network outputs become mixtures.

Two settings of one flow: `DiracStart`, the paper's (appendix B), and `AnchoredStart`, at the moments of the process.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from jaxtyping import Array, Float

from fokkerflow.flow.chart import Placement
from fokkerflow.flow.regression import Origin, Regression
from fokkerflow.flow.truncated_mixture import Mixture
from fokkerflow.sde.domain import Domain
from fokkerflow.sde.model import SDE, Parameters, State

if TYPE_CHECKING:
    from fokkerflow.flow.config import Coordinate

Scalar = Float[Array, ""]


class Condition(NamedTuple):
    """All that a density knows about (t0, tau, x0, p), free of the weights: compute it once, use it for every theta and x.

    - `origin`: these arguments.
    - `placements`: the placed chart of every coordinate.
    - `means`, `sds`: what states are standardised by before they enter a linear regression.
    - `regressions`: per coordinate, or None where there is nothing to regress.
    - `location`: centre of the first mixture layer in the placed charts.
    - `features`: inputs of every conditioner.
    - `gate`: 0 at the start, 1 when the corrections act in full.
    """

    origin: Origin
    placements: tuple[Placement, ...]
    means: State
    sds: State
    regressions: tuple[Regression | None, ...]
    location: State
    features: Float[Array, " f"]
    gate: Scalar


class Standardisation(NamedTuple):
    """Centre and scale of the features over the conditions that the flow was built for."""

    centre: Float[Array, " f"]
    scale: Float[Array, " f"]


class Start(abc.ABC):
    """How a flow begins."""

    kind: ClassVar[str]
    has_moments: ClassVar[bool]
    zero_first_head: ClassVar[bool]  # whether the networks of the first mixture layer begin at zero output

    @abc.abstractmethod
    def feature_count(self, sde: SDE, coordinates: tuple[Coordinate, ...]) -> int:
        """Length of `Condition.features`."""

    @abc.abstractmethod
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
        """The condition of a flow that starts at `x0` at time `t0`, after `tau`."""

    @abc.abstractmethod
    def first(self, raw: Float[Array, " raw"], location: Scalar, gate: Scalar) -> Mixture:
        """The mixture of the first layer from the output of its network."""

    @abc.abstractmethod
    def deeper(self, raw: Float[Array, " raw"], gate: Scalar) -> Mixture:
        """The mixture of a further layer, on [-1, 1]."""

    @abc.abstractmethod
    def earlier_count(self, domain: Domain) -> int:
        """Length of what `earlier` returns."""

    @abc.abstractmethod
    def earlier(self, domain: Domain, x: Scalar, mean: Scalar, value: Scalar) -> Float[Array, " e"]:
        """Inputs of later conditioners from an earlier coordinate `x`, with its mean and its value in the first layer."""

"""What a flow is made of, coordinate by coordinate: data that artifacts store as JSON, checked once against the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fokkerflow.flow.anchored_start import AnchoredStart
from fokkerflow.flow.chart import Affine, Chart, Identity, Log, Logit, Power
from fokkerflow.flow.conditioner import CONDITIONERS
from fokkerflow.flow.dirac_start import DiracStart
from fokkerflow.flow.lamperti import Lamperti, LampertiInterval
from fokkerflow.flow.reference import REFERENCES, Reference
from fokkerflow.flow.start import Start
from fokkerflow.sde.domain import Domain
from fokkerflow.sde.model import SDE

VERSION = 3
"""Raised whenever equal weights come to mean another density, so that files of older weights are refused."""

CHARTS: dict[str, type[Chart]] = {
    chart.kind: chart for chart in (Identity, Affine, Log, Power, Logit, Lamperti, LampertiInterval)
}
STARTS: dict[str, type[Start]] = {start.kind: start for start in (DiracStart, AnchoredStart)}


@dataclass(frozen=True)
class Network:
    """One conditioner per layer: its kind (``"mlp"`` or ``"gru"``), units per hidden layer, number of hidden layers."""

    kind: str = "mlp"
    width: int = 16
    depth: int = 2

    def __post_init__(self) -> None:
        if self.kind not in CONDITIONERS:
            raise ValueError(f"Got conditioner {self.kind!r}; expected one of {', '.join(CONDITIONERS)}.")
        if self.width < 1 or self.depth < 1:
            raise ValueError(f"A network needs width >= 1 and depth >= 1, got width={self.width}, depth={self.depth}.")


@dataclass(frozen=True)
class Coordinate:
    """One column of the flow.

    **Arguments:**

    - `chart`: the first layer (`Affine` to [-1, 1] in the paper).
    - `components`: Gaussians in the mixture of each further layer; its length is the paper's L - 1.
    - `parents`: the earlier coordinates that condition this one, increasing.
    - `reference`: the law on [0, 1] that the last layer maps to.
    - `network`: the conditioners of the mixture layers.
    """

    chart: Chart
    components: tuple[int, ...]
    parents: tuple[int, ...]
    reference: Reference
    network: Network

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", tuple(int(k) for k in self.components))
        object.__setattr__(self, "parents", tuple(int(j) for j in self.parents))
        if not self.components or min(self.components) < 1:
            raise ValueError(f"Got components={self.components}; expected at least one layer, and one Gaussian in each.")


@dataclass(frozen=True)
class FlowConfig:
    """All columns and the start. `to_dict` and `from_dict` are exact inverses, by way of JSON too."""

    coordinates: tuple[Coordinate, ...]
    start: Start

    def to_dict(self) -> dict[str, Any]:
        return {"coordinates": [_coordinate_to_dict(c) for c in self.coordinates], "start": _tagged(self.start)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> FlowConfig:
        """The configuration that `to_dict` wrote; ValueError for a kind that does not exist or a field that is missing."""
        try:
            return FlowConfig(
                tuple(_coordinate_from_dict(c) for c in data["coordinates"]), _untagged(STARTS, data["start"], "start")
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"Not the configuration of a flow: {error}.") from None


def check_config(config: FlowConfig, sde: SDE) -> None:
    """Raise ValueError, naming the coordinate, if the configuration does not fit the model or its boundaries."""
    if len(config.coordinates) != sde.dimension:
        raise ValueError(
            f"{sde.label} has {sde.dimension} states ({', '.join(sde.states)}), "
            f"got a configuration of {len(config.coordinates)} coordinates."
        )
    for i, (name, domain) in enumerate(sde.states.items()):
        coordinate = config.coordinates[i]
        where = f"{sde.label}, state {name!r}"
        if list(coordinate.parents) != sorted({j for j in coordinate.parents if 0 <= j < i}):
            raise ValueError(f"{where}: got parents {coordinate.parents}, expected increasing numbers from 0 to {i - 1}.")
        if coordinate.chart.needs_moments and not config.start.has_moments:
            coordinate.chart.unplaced()
        _check_support(where, coordinate.chart, domain)
        _check_boundary(where, coordinate, domain)


def _check_support(where: str, chart: Chart, domain: Domain) -> None:
    """A box may cut off infinity, where the density is negligible, but never a piece next to a boundary."""
    support = chart.support
    boxed = isinstance(chart, Affine)
    lower = support.lower == domain.lower or (boxed and domain.is_line)
    upper = support.upper == domain.upper or (boxed and not domain.is_interval)
    if not (lower and upper):
        raise ValueError(
            f"{where}: a {chart.kind} chart of {support} does not fit the domain {domain}. Its ends must be those of the "
            "domain; only an affine chart may put a finite end where the domain has none."
        )


def _check_boundary(where: str, coordinate: Coordinate, domain: Domain) -> None:
    """q is of order distance^(chart power * reference power - 1) at an inaccessible boundary, which must vanish."""
    chart_powers = coordinate.chart.end_power(domain)
    reference_powers = (coordinate.reference.lower_power, coordinate.reference.upper_power)
    trained = coordinate.reference.initial_weight() is not None
    for end, chart_power, reference_power in zip((domain.lower, domain.upper), chart_powers, reference_powers, strict=True):
        power = chart_power * reference_power
        if not (power > 1 or (trained and chart_power >= 1)):
            raise ValueError(
                f"{where}: with a {coordinate.chart.kind} chart and a {coordinate.reference.kind} reference the density does "
                f"not vanish at the boundary {end:g} (it is of order distance^{power - 1:g}). Take a reference that vanishes "
                "there (gamma for a half line, beta for an interval), or a chart that moves the boundary to infinity "
                "(lamperti, log, logit)."
            )


def _tagged(item: Any) -> dict[str, Any]:
    return {"kind": item.kind, **dataclasses.asdict(item)}


def _untagged(kinds: Mapping[str, Any], data: Mapping[str, Any], what: str) -> Any:
    fields = dict(data)
    kind = fields.pop("kind")
    if kind not in kinds:
        raise ValueError(f"Got {what} {kind!r}; expected one of {', '.join(kinds)}.")
    return kinds[kind](**{name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()})  # JSON has no tuples


def _coordinate_to_dict(coordinate: Coordinate) -> dict[str, Any]:
    return {
        "chart": _tagged(coordinate.chart),
        "components": list(coordinate.components),
        "parents": list(coordinate.parents),
        "reference": _tagged(coordinate.reference),
        "network": dataclasses.asdict(coordinate.network),
    }


def _coordinate_from_dict(data: Mapping[str, Any]) -> Coordinate:
    return Coordinate(
        chart=_untagged(CHARTS, data["chart"], "chart"),
        components=tuple(data["components"]),
        parents=tuple(data["parents"]),
        reference=_untagged(REFERENCES, data["reference"], "reference"),
        network=Network(**data["network"]),
    )

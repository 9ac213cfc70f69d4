"""One-dimensional laws, of which a training law is made: data that artifacts store as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

Values = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Uniform:
    """Uniform on (low, high)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise ValueError(f"Uniform needs finite low < high, got low={self.low:g}, high={self.high:g}.")

    def quantile(self, u: Values) -> Values:
        return self.low + (self.high - self.low) * u

    def excess(self, x: Values) -> Values:
        """How far outside, in half widths; 0 inside."""
        half = (self.high - self.low) / 2
        return np.maximum(np.maximum(self.low - x, x - self.high), 0.0) / half


@dataclass(frozen=True)
class LogUniform:
    """The logarithm uniform on (log low, log high), for scales that may vary by orders of magnitude."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < math.inf:
            raise ValueError(f"LogUniform needs finite 0 < low < high, got low={self.low:g}, high={self.high:g}.")

    def quantile(self, u: Values) -> Values:
        return self.low * (self.high / self.low) ** u

    def excess(self, x: Values) -> Values:
        """How far the logarithm is outside, in half widths; 0 inside, infinite for numbers that are not positive."""
        positive = x > 0
        inside = Uniform(math.log(self.low), math.log(self.high)).excess(np.log(np.where(positive, x, self.low)))
        return np.where(positive, inside, np.inf)


@dataclass(frozen=True)
class TruncatedNormal:
    """Normal with this mean and standard deviation, restricted to (low, high)."""

    mean: float
    sd: float
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not (self.sd > 0 and self.low < self.high and math.isfinite(self.mean) and math.isfinite(self.sd)):
            raise ValueError(f"TruncatedNormal needs sd > 0, low < high and finite mean and sd, got {self}.")

    def quantile(self, u: Values) -> Values:
        below, above = ndtr((self.low - self.mean) / self.sd), ndtr((self.high - self.mean) / self.sd)
        return np.clip(self.mean + self.sd * ndtri(below + (above - below) * u), self.low, self.high)

    def excess(self, x: Values) -> Values:
        """How far beyond three standard deviations, in standard deviations; infinite outside (low, high)."""
        beyond = np.maximum(np.abs(x - self.mean) / self.sd - 3.0, 0.0)
        return np.where((x < self.low) | (x > self.high), np.inf, beyond)


@dataclass(frozen=True)
class ShareOfRange(Uniform):
    """Of a parameter that the model's constraints bound: uniform on a share of its range, given the other parameters.

    ``"sigma": ShareOfRange(0.05, 1.0)`` under the Feller condition is sigma between 0.05 and 1 times sqrt(2 alpha beta):
    no draw is rejected, and small limits are as well covered as large ones.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.low < self.high <= 1:
            raise ValueError(f"ShareOfRange needs 0 <= low < high <= 1, got low={self.low:g}, high={self.high:g}.")


Marginal = Uniform | LogUniform | TruncatedNormal | ShareOfRange
_KINDS: dict[str, type[Marginal]] = {
    "uniform": Uniform,
    "log-uniform": LogUniform,
    "truncated-normal": TruncatedNormal,
    "share-of-range": ShareOfRange,
}


def to_dict(marginal: Marginal) -> dict[str, Any]:
    kind = next(k for k, cls in _KINDS.items() if type(marginal) is cls)
    return {"kind": kind, **{k: v for k, v in asdict(marginal).items() if math.isfinite(v)}}


def from_dict(data: Mapping[str, Any]) -> Marginal:
    values = dict(data)
    kind = values.pop("kind")
    if kind not in _KINDS:
        raise ValueError(f"Got a marginal of kind {kind!r}, expected one of {', '.join(_KINDS)}.")
    return _KINDS[kind](**values)

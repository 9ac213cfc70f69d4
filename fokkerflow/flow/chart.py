"""Charts: the coordinate in which the first mixture layer sees a state; paper section 4.2 has the affine one.

A chart is static data. `place` turns the mean and standard deviation of a state into the numbers that centre and scale
the chart (a `Placement`), so that in the placed chart the state is close to a standard Gaussian. Without moments
(the paper's start) the chart is used as it is.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.flow.interval import Ends, Point, rescale_ends
from fokkerflow.sde.domain import Domain

Scalar = Float[Array, ""]
_LARGEST_SPREAD = 0.95


class Moments(NamedTuple):
    """What a chart is placed by: mean, standard deviation, and half the slope of log Sigma_ii in the log distance to the
    lower boundary, at the mean (None unless the chart asks for it)."""

    mean: Scalar
    sd: Scalar
    noise_exponent: Any = None


class Placement(NamedTuple):
    """The numbers of a placed chart: ``(w - location) / scale`` for most; the automatic charts say what they use them for."""

    location: Scalar
    scale: Scalar
    exponent: Any = None


class Chart(abc.ABC):
    """A smooth increasing map from the states of one coordinate to an interval of the line."""

    kind: ClassVar[str]
    linear: ClassVar[bool] = False  # affine in the state: Gaussian regression on other states stays exact
    needs_moments: ClassVar[bool] = False
    needs_noise_exponent: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def support(self) -> Domain:
        """The states on which the chart is defined; the density is zero outside."""

    @property
    @abc.abstractmethod
    def interior(self) -> float:
        """Some state well inside the support."""

    @abc.abstractmethod
    def unplaced(self) -> Placement:
        """The placement that leaves the chart as it is."""

    @abc.abstractmethod
    def place(self, moments: Moments) -> Placement:
        """The placement in which a state with these moments is close to N(0, 1)."""

    @abc.abstractmethod
    def ends(self, placement: Placement) -> Ends:
        """The image of the support."""

    @abc.abstractmethod
    def forward(self, x: Scalar, placement: Placement) -> tuple[Point, Scalar]:
        """The image of `x` and log of the derivative there."""

    @abc.abstractmethod
    def inverse(self, point: Point, placement: Placement) -> Scalar:
        """The state whose image is `point`."""

    def end_power(self, domain: Domain) -> tuple[float, float]:
        """Power of the distance to each inaccessible boundary in the image; infinity if the image has no end there."""
        return (math.inf, math.inf)


class FixedChart(Chart):
    """A chart given by one formula w(x), placed by a shift and a scale."""

    raw_ends: ClassVar[Ends] = Ends(None, None)

    @abc.abstractmethod
    def raw(self, x: Scalar) -> tuple[Point, Scalar]:
        """w(x) and log w'(x)."""

    @abc.abstractmethod
    def raw_inverse(self, w: Point) -> Scalar:
        """The x with w(x) = w."""

    def unplaced(self) -> Placement:
        return Placement(jnp.zeros(()), jnp.ones(()))

    def ends(self, placement: Placement) -> Ends:
        return rescale_ends(self.raw_ends, placement.location, jnp.log(placement.scale))

    def forward(self, x: Scalar, placement: Placement) -> tuple[Point, Scalar]:
        log_scale = jnp.log(placement.scale)
        point, log_slope = self.raw(x)
        return point.rescaled(placement.location, log_scale), log_slope - log_scale

    def inverse(self, point: Point, placement: Placement) -> Scalar:
        log_scale = jnp.log(placement.scale)
        return self.raw_inverse(point.rescaled(-placement.location / placement.scale, -log_scale))


@dataclass(frozen=True)
class Identity(FixedChart):
    """The state itself, for the real line."""

    kind: ClassVar[str] = "identity"
    linear: ClassVar[bool] = True

    @property
    def support(self) -> Domain:
        return Domain()

    @property
    def interior(self) -> float:
        return 0.0

    def raw(self, x: Scalar) -> tuple[Point, Scalar]:
        return Point(x, None, None), jnp.zeros_like(x)

    def raw_inverse(self, w: Point) -> Scalar:
        return w.value

    def place(self, moments: Moments) -> Placement:
        return Placement(moments.mean, moments.sd)


@dataclass(frozen=True)
class Affine(FixedChart):
    """The box [lower, upper] scaled to [-1, 1]: the first layer of the paper. The density is zero outside the box."""

    lower: float
    upper: float

    kind: ClassVar[str] = "affine"
    linear: ClassVar[bool] = True
    raw_ends: ClassVar[Ends] = Ends(-1.0, 1.0)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lower) and math.isfinite(self.upper) and self.lower < self.upper):
            raise ValueError(f"An affine chart needs a finite box lower < upper, got ({self.lower:g}, {self.upper:g}).")

    @property
    def support(self) -> Domain:
        return Domain(self.lower, self.upper)

    @property
    def interior(self) -> float:
        return 0.5 * (self.lower + self.upper)

    @property
    def _log_slope(self) -> float:
        return math.log(2.0 / (self.upper - self.lower))

    def raw(self, x: Scalar) -> tuple[Point, Scalar]:
        slope = self._log_slope
        value = (2.0 * x - (self.lower + self.upper)) / (self.upper - self.lower)
        return Point(value, jnp.log(x - self.lower) + slope, jnp.log(self.upper - x) + slope), jnp.full_like(x, slope)

    def raw_inverse(self, w: Point) -> Scalar:
        slope = self._log_slope
        return jnp.where(
            w.log_below < w.log_above, self.lower + jnp.exp(w.log_below - slope), self.upper - jnp.exp(w.log_above - slope)
        )

    def place(self, moments: Moments) -> Placement:
        scale = 2.0 / (self.upper - self.lower)
        return Placement(scale * (moments.mean - self.interior), scale * moments.sd)

    def end_power(self, domain: Domain) -> tuple[float, float]:
        return (1.0 if self.lower == domain.lower else math.inf, 1.0 if self.upper == domain.upper else math.inf)


@dataclass(frozen=True)
class Log(FixedChart):
    """log(x - lower) for a half line; moments are matched by a lognormal law."""

    lower: float = 0.0

    kind: ClassVar[str] = "log"

    @property
    def support(self) -> Domain:
        return Domain(self.lower)

    @property
    def interior(self) -> float:
        return self.lower + 1.0

    def raw(self, x: Scalar) -> tuple[Point, Scalar]:
        w = jnp.log(x - self.lower)
        return Point(w, None, None), -w

    def raw_inverse(self, w: Point) -> Scalar:
        return self.lower + jnp.exp(w.value)

    def place(self, moments: Moments) -> Placement:
        distance = moments.mean - self.lower
        variance = jnp.log1p((moments.sd / distance) ** 2)
        return Placement(jnp.log(distance) - 0.5 * variance, jnp.sqrt(variance))


@dataclass(frozen=True)
class Power(FixedChart):
    """(x - lower)^exponent for a half line, for instance the square root. Its image ends at the boundary.

    Moments to second order, with cv^2 = (sd / (mean - lower))^2: E = (mean - lower)^e (1 + cv^2)^(e(e-1)/2), exact for a
    lognormal law, and sd = e cv (mean - lower)^e.
    """

    lower: float = 0.0
    exponent: float = 0.5

    kind: ClassVar[str] = "power"
    raw_ends: ClassVar[Ends] = Ends(0.0, None)

    def __post_init__(self) -> None:
        if not self.exponent > 0:
            raise ValueError(f"A power chart needs exponent > 0, got {self.exponent:g}. Exponent 0 is the log chart.")

    @property
    def support(self) -> Domain:
        return Domain(self.lower)

    @property
    def interior(self) -> float:
        return self.lower + 1.0

    def raw(self, x: Scalar) -> tuple[Point, Scalar]:
        log_distance = jnp.log(x - self.lower)
        log_w = self.exponent * log_distance
        return Point(jnp.exp(log_w), log_w, None), math.log(self.exponent) + log_w - log_distance

    def raw_inverse(self, w: Point) -> Scalar:
        return self.lower + jnp.exp(w.log_below / self.exponent)

    def place(self, moments: Moments) -> Placement:
        e, distance = self.exponent, moments.mean - self.lower
        cv = moments.sd / distance
        w = distance**e
        return Placement(w * jnp.exp(0.5 * e * (e - 1.0) * jnp.log1p(cv**2)), e * cv * w)

    def end_power(self, domain: Domain) -> tuple[float, float]:
        return (self.exponent if self.lower == domain.lower else math.inf, math.inf)


@dataclass(frozen=True)
class Logit(FixedChart):
    """log((x - lower) / (upper - x)) for an interval.

    Location by lognormal laws of the distances to either end. Variance 1/a + 1/b, to leading order that of the logit of a
    beta law with parameters a and b: r / ((1 - r) m (1 - m)) with r = sd^2 / (m (1 - m)), on the unit interval.
    """

    lower: float = 0.0
    upper: float = 1.0

    kind: ClassVar[str] = "logit"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lower) and math.isfinite(self.upper) and self.lower < self.upper):
            raise ValueError(f"A logit chart needs a finite interval lower < upper, got ({self.lower:g}, {self.upper:g}).")

    @property
    def support(self) -> Domain:
        return Domain(self.lower, self.upper)

    @property
    def interior(self) -> float:
        return 0.5 * (self.lower + self.upper)

    def raw(self, x: Scalar) -> tuple[Point, Scalar]:
        below, above = jnp.log(x - self.lower), jnp.log(self.upper - x)
        return Point(below - above, None, None), math.log(self.upper - self.lower) - below - above

    def raw_inverse(self, w: Point) -> Scalar:
        return interval_state(w.value, self.lower, self.upper)

    def place(self, moments: Moments) -> Placement:
        below, above = moments.mean - self.lower, self.upper - moments.mean
        spread = moments.sd**2 / (below * above)
        shift = 0.5 * (jnp.log1p((moments.sd / above) ** 2) - jnp.log1p((moments.sd / below) ** 2))
        # No law on an interval has spread >= 1, but moments from a closure may.
        spread = jnp.minimum(spread, _LARGEST_SPREAD)
        length = self.upper - self.lower
        return Placement(jnp.log(below / above) + shift, length * jnp.sqrt(spread / ((1.0 - spread) * below * above)))


def interval_state(logit: Scalar, lower: float, upper: float) -> Scalar:
    """The state of (lower, upper) with a given log ratio of the distances to the ends, from the nearer end."""
    length = upper - lower
    near = length / (1.0 + jnp.exp(jnp.abs(logit)))
    return jnp.where(logit < 0, lower + near, upper - near)

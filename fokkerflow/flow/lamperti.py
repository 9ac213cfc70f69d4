"""The automatic charts: distance to an inaccessible boundary in units of the noise, from drift and covariance alone.

Where Sigma ~ (x - a)^(2 gamma), Lamperti's transform (x - a)^(1 - gamma) has constant noise, so that the density has Gaussian
tails far from the boundary. Next to the boundary r -> log(exp(r) - 1), the inverse of softplus, turns the distance r
into a coordinate on the whole line: the state stays inside, and the density falls like a power times a log-normal factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.flow.chart import Chart, Identity, Moments, Placement
from fokkerflow.flow.interval import Ends, Point
from fokkerflow.flow.special import inverse_softplus, log_softplus, relative_expm1
from fokkerflow.sde.domain import Domain

Scalar = Float[Array, ""]
_SMALLEST_EXPONENT = 0.05
_KINK_WIDTH = 0.02


@dataclass(frozen=True)
class Lamperti(Chart):
    """The chart of a half line. With mean m, cv = sd/(m - a) and the exponent e = 1 - gamma,

        r = ((x - a)/(m - a))^e / (e cv),   z = softplus^-1(r) - softplus^-1(E r),   E r = (1 + cv^2)^(e(e-1)/2) / (e cv).

    gamma is half the slope of log Sigma in log(x - a) at the mean. e is kept above 0.05 (by a smooth maximum), where
    the chart is the logarithm for all purposes. The placement holds (m - a, cv, e).
    """

    lower: float = 0.0

    kind: ClassVar[str] = "lamperti"
    needs_moments: ClassVar[bool] = True
    needs_noise_exponent: ClassVar[bool] = True

    @property
    def support(self) -> Domain:
        return Domain(self.lower)

    @property
    def interior(self) -> float:
        return self.lower + 1.0

    def unplaced(self) -> Placement:
        raise ValueError(f"The {self.kind} chart is scaled by moments; use it with the anchored start, or take a log chart.")

    def place(self, moments: Moments) -> Placement:
        distance = moments.mean - self.lower
        above = 1.0 - moments.noise_exponent - _SMALLEST_EXPONENT
        exponent = _SMALLEST_EXPONENT + 0.5 * (above + jnp.sqrt(above**2 + _KINK_WIDTH**2))
        return Placement(distance, moments.sd / distance, exponent)

    def ends(self, placement: Placement) -> Ends:
        return Ends(None, None)

    def forward(self, x: Scalar, placement: Placement) -> tuple[Point, Scalar]:
        distance, cv, e = placement
        log_distance = jnp.log(x - self.lower)
        log_r = e * (log_distance - jnp.log(distance)) - jnp.log(e * cv)
        r = jnp.exp(log_r)
        inward = jnp.log(relative_expm1(r))  # log of (1 - exp(-r)) / r, so that nothing is lost where r underflows
        z = r + log_r + inward - self._centre(placement)
        return Point(z, None, None), -inward + jnp.log(e) - log_distance

    def inverse(self, point: Point, placement: Placement) -> Scalar:
        distance, cv, e = placement
        log_r = log_softplus(point.value + self._centre(placement))
        return self.lower + distance * jnp.exp((log_r + jnp.log(e * cv)) / e)

    @staticmethod
    def _centre(placement: Placement) -> Scalar:
        _, cv, e = placement
        return inverse_softplus(jnp.exp(0.5 * e * (e - 1.0) * jnp.log1p(cv**2)) / (e * cv))


@dataclass(frozen=True)
class LampertiInterval(Chart):
    """The chart of an interval, for noise that vanishes like a square root at both ends, as in the Jacobi process.

    With the angle t = 2 arcsin sqrt((x - a)/(b - a)), its standard deviation k = sd / sqrt((m - a)(b - m)), and the distances
    r = t/(2k) and r' = (pi - t)/(2k) to either end in units of noise,

        z = softplus^-1(r) - softplus^-1(r') - (the same at the mean),

    which is t/k + const away from the ends and +-log of the distance next to them. With T = r + r' the inverse is closed:
    r = (T + z)/2 - arsinh(exp(-T/2) sinh(z/2)). Where the noise vanishes linearly, the `logit` chart is the better one.
    The placement holds the centre and T.
    """

    lower: float = 0.0
    upper: float = 1.0

    kind: ClassVar[str] = "lamperti-interval"
    needs_moments: ClassVar[bool] = True

    @property
    def support(self) -> Domain:
        return Domain(self.lower, self.upper)

    @property
    def interior(self) -> float:
        return 0.5 * (self.lower + self.upper)

    def unplaced(self) -> Placement:
        raise ValueError(f"The {self.kind} chart is scaled by moments; use it with the anchored start, or take a logit chart.")

    def place(self, moments: Moments) -> Placement:
        below, above = moments.mean - self.lower, self.upper - moments.mean
        total = 0.5 * jnp.pi * jnp.sqrt(below * above) / moments.sd
        # The mean of the angle to second order, as a shift of the log odds that cannot leave the interval.
        shift = 0.25 * (jnp.log1p((moments.sd / above) ** 2) - jnp.log1p((moments.sd / below) ** 2))
        half_angle = jnp.arctan(jnp.sqrt(below / above) * jnp.exp(0.5 * shift))
        r = half_angle * (2.0 * total / jnp.pi)
        return Placement(inverse_softplus(r) - inverse_softplus(total - r), total)

    def ends(self, placement: Placement) -> Ends:
        return Ends(None, None)

    def forward(self, x: Scalar, placement: Placement) -> tuple[Point, Scalar]:
        centre, total, _ = placement
        below, above = x - self.lower, self.upper - x
        unit = 2.0 * total / jnp.pi
        r = unit * jnp.arctan2(jnp.sqrt(below), jnp.sqrt(above))
        s = unit * jnp.arctan2(jnp.sqrt(above), jnp.sqrt(below))
        slope = jnp.logaddexp(-jnp.log(-jnp.expm1(-r)), -jnp.log(-jnp.expm1(-s)))
        log_slope = slope + jnp.log(0.5 * unit) - 0.5 * (jnp.log(below) + jnp.log(above))
        return Point(inverse_softplus(r) - inverse_softplus(s) - centre, None, None), log_slope

    def inverse(self, point: Point, placement: Placement) -> Scalar:
        centre, total, _ = placement
        z = point.value + centre
        magnitude = jnp.abs(z)
        # The farther distance from the closed form, the nearer one from z: both relatively accurate.
        bend = jnp.arcsinh(0.5 * (jnp.exp(0.5 * (magnitude - total)) - jnp.exp(-0.5 * (magnitude + total))))
        farther = 0.5 * (total + magnitude) - bend
        nearer = jax.nn.softplus(inverse_softplus(farther) - magnitude)
        distance = (self.upper - self.lower) * jnp.sin(nearer * (0.5 * jnp.pi / total)) ** 2
        return jnp.where(z < 0, self.lower + distance, self.upper - distance)


def automatic_chart(domain: Domain) -> Chart:
    """The default chart of the anchored start: identity, `Lamperti` or `LampertiInterval`."""
    if domain.is_line:
        return Identity()
    return Lamperti(domain.lower) if domain.is_half_line else LampertiInterval(domain.lower, domain.upper)

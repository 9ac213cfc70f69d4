"""One column of the flow: the layers that one coordinate passes, given everything that conditions it (paper appendix A)."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.flow.interval import SYMMETRIC, Ends, Point, UnitPoint, unit_to_symmetric
from fokkerflow.flow.reference import Reference
from fokkerflow.flow.truncated_mixture import Mixture, log_peak, mixture_cdf, mixture_layer, mixture_log_density

Scalar = Float[Array, ""]
_LOG_2 = math.log(2.0)


class Column(NamedTuple):
    """The first mixture layer with the interval it acts on, the further ones on [-1, 1], and the law at the end."""

    first: Mixture
    ends: Ends
    deeper: tuple[Mixture, ...]
    reference: Reference
    reference_weight: Scalar | None

    def log_density(self, point: Point) -> Scalar:
        """log density at a point of the first interval: one column of the determinant of section 4.2, and p_Z."""
        if not self.deeper and self.reference.is_uniform:
            return mixture_log_density(self.first, point, self.ends)
        log_density, u = mixture_layer(self.first, point, self.ends)
        return log_density + self.log_verify(u)

    def log_verify(self, u: UnitPoint) -> Scalar:
        """log of the factor by which the layers after the first change its density, at the image u of the first."""
        total = jnp.zeros_like(u.log_below)
        for layer, mixture in enumerate(self.deeper, start=1):
            point = unit_to_symmetric(u)
            if layer == len(self.deeper) and self.reference.is_uniform:
                return total + mixture_log_density(mixture, point, SYMMETRIC) + _LOG_2
            log_density, u = mixture_layer(mixture, point, SYMMETRIC)
            total = total + log_density + _LOG_2
        return total + self.reference.log_density(u, self.reference_weight)

    def log_verify_bound(self) -> Scalar:
        """An upper bound of `log_verify`: the sum of the logarithms of the highest values of its factors."""
        total = self.reference.log_peak(self.reference_weight)
        for mixture in self.deeper:
            total = total + log_peak(mixture, SYMMETRIC) + _LOG_2
        return total

    def cdf(self, point: Point) -> UnitPoint:
        """The distribution function, through the reference law: uniform on (0, 1) if the point is a draw."""
        u = mixture_cdf(self.first, point, self.ends)
        for mixture in self.deeper:
            u = mixture_cdf(mixture, unit_to_symmetric(u), SYMMETRIC)
        return self.reference.cdf(u, self.reference_weight)

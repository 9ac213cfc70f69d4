"""Where a coordinate of a diffusion lives: the real line, a half line, or an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Bool


@dataclass(frozen=True)
class Domain:
    """The open set ``lower < x < upper``.

    ``Domain()`` is the real line, ``Domain(0)`` the half line of a variance, ``Domain(0, 1)`` an interval.
    A finite end is an *inaccessible* boundary: the process never reaches it and the density is zero there.
    """

    lower: float = -math.inf
    upper: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", float(self.lower))
        object.__setattr__(self, "upper", float(self.upper))
        if not self.lower < self.upper:
            raise ValueError(f"A domain needs lower < upper, got lower={self.lower:g}, upper={self.upper:g}.")
        if math.isinf(self.lower) and math.isfinite(self.upper):
            raise ValueError(
                f"A half line must be bounded below, got {self}. "
                f"Model -x instead of x, on the half line ({-self.upper:g}, inf)."
            )

    @property
    def is_line(self) -> bool:
        return math.isinf(self.lower)

    @property
    def is_half_line(self) -> bool:
        return math.isfinite(self.lower) and math.isinf(self.upper)

    @property
    def is_interval(self) -> bool:
        return math.isfinite(self.upper)

    def contains(self, x: Any) -> Bool[Array, ...]:
        """Elementwise membership; NaN is outside. Works on NumPy and JAX arrays alike."""
        return (x > self.lower) & (x < self.upper)

    def __str__(self) -> str:
        return f"({self.lower:g}, {self.upper:g})"


REAL = Domain()
POSITIVE = Domain(0.0)
UNIT_INTERVAL = Domain(0.0, 1.0)


def as_domain(value: Any) -> Domain:
    """A `Domain` from a Domain, a pair ``(lower, upper)``, or one of the words ``"real"`` and ``"positive"``."""
    if isinstance(value, Domain):
        return value
    words = {"real": REAL, "positive": POSITIVE}
    if isinstance(value, str) and value in words:
        return words[value]
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return Domain(*value)
    raise ValueError(f"Got {value!r} as a domain; expected 'real', 'positive', a pair (lower, upper) or a fokkerflow.Domain.")

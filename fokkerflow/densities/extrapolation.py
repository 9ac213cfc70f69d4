"""Ordinary differential equations by extrapolation of the midpoint rule (Gragg 1965): any even order from one formula."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from fokkerflow.sde.model import Scalar

GRADE = 1.5
"""Step ends at (k / steps)^1.5 of the time: shorter steps first, where a solution leaves a far start."""


def integrate(field: Callable[[Any], Any], start: Any, time: Scalar, *, steps: int, levels: int) -> Any:
    """The solution of ``y' = field(y)`` after `time`; y is a tuple of jets.

    In each of `steps` steps the rule with 2, 4, ..., 2 `levels` substeps is extrapolated to order 2 `levels`, as its error has
    even powers only. Explicit: for decays whose rate times `time` is at most about twice `steps`. Differentiable.

    **Reference:** Gragg (1965), On extrapolation algorithms for ordinary initial value problems; Hairer, Norsett and Wanner
    (1993), Solving ordinary differential equations I, section II.9.
    """
    counts = [2 * (j + 1) for j in range(levels)]
    weights = [float(prod(Fraction(n * n, n * n - m * m) for m in counts if m != n)) for n in counts]

    def step(y: Any, share: Scalar) -> tuple[Any, None]:
        slope = field(y)
        ends = [_midpoint(field, y, slope, time * share, n) for n in counts]
        return jax.tree.map(lambda *values: sum(w * v for w, v in zip(weights, values, strict=True)), *ends), None

    return jax.lax.scan(step, start, jnp.asarray(shares(steps)))[0]


def shares(steps: int) -> Float[np.ndarray, " steps"]:
    """The steps as shares of the time."""
    return np.diff((np.arange(steps + 1) / steps) ** GRADE)


def _midpoint(field: Callable[[Any], Any], y: Any, slope: Any, length: Scalar, n: int) -> Any:
    """n substeps, the first of them Euler's."""
    h = length / n

    def leap(pair: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
        before, now = pair
        return (now, _plus(before, 2 * h, field(now))), None

    return jax.lax.scan(leap, (y, _plus(y, h, slope)), None, length=n - 1)[0][1]


def _plus(y: Any, h: Scalar, slope: Any) -> Any:
    """y + h slope; parts that have no slope stay."""
    pairs = zip(y, slope, strict=True)
    return tuple({key: value + h * s[key] if key in s else value for key, value in jet.items()} for jet, s in pairs)

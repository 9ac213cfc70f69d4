"""Between parameters and unconstrained coordinates, so that no draw can leave the constraint of the model.

Parameters are taken one after another, each in the range that the constraints leave it given those before: sigma of Heston's
model as a share of its Feller limit ``sqrt(2 alpha beta)``. The map is triangular, and its Jacobian a product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.sde.constraint import Inequality
from fokkerflow.sde.model import SDE
from fokkerflow.sde.validation import valid_parameters


@dataclass(frozen=True)
class Range:
    """Where a parameter may be, besides what the constraints say.

    **Attributes:**

    - `lower`, `upper`: numbers.
    - `share`: between which shares of the range that the constraints leave; (0, 1) is all of it.
    """

    lower: float = -math.inf
    upper: float = math.inf
    share: tuple[float, float] = (0.0, 1.0)

    def __and__(self, other: Range) -> Range:
        share = (max(self.share[0], other.share[0]), min(self.share[1], other.share[1]))
        return Range(max(self.lower, other.lower), min(self.upper, other.upper), share)


@dataclass(frozen=True)
class Transform:
    """A bijection between R^n and the parameters that satisfy constraints and ranges.

    Of a range with two ends, ``p = lower + (upper - lower) / (1 + exp(-u))``; with one, ``p = lower + exp(u)``.
    An inequality that bounds no single parameter, and one that leaves nothing (``lower >= upper``), are left to `inside`.
    """

    sde: SDE
    ranges: tuple[Range, ...]
    order: tuple[int, ...]
    bounding: tuple[tuple[Inequality, ...], ...]
    finite: tuple[tuple[bool, bool], ...]

    @classmethod
    def of(cls, sde: SDE, ranges: Mapping[str, Range] | None = None) -> Transform:
        """The transform of a model, with ranges for some of its parameters."""
        given = tuple((ranges or {}).get(name, Range()) for name in sde.parameters)
        bounding = _assigned(sde)
        order = tuple(sde.parameters.index(name) for name in _order(sde.parameters, _needs(bounding)))
        by_index = tuple(bounding[name] for name in sde.parameters)
        draft = cls(sde, given, order, by_index, ((False, False),) * len(order))
        typical = {name: np.float64(sde.typical[name]) for name in sde.parameters}
        ends = [draft.bounds(i, typical, np) for i in range(len(order))]
        finite = tuple((bool(np.isfinite(low)), bool(np.isfinite(high))) for low, high in ends)
        return cls(sde, given, order, by_index, finite)

    def bounds(self, i: int, values: Mapping[str, Any], xp: Any = jnp) -> tuple[Any, Any]:
        """Lower and upper end of parameter `i`, given the values of those before it."""
        name, given = self.sde.parameters[i], self.ranges[i]
        low, high = -math.inf, math.inf
        for inequality in self.bounding[i]:
            if inequality.right_text == name:
                low = xp.maximum(low, inequality.left(values, xp))
            else:
                high = xp.minimum(high, inequality.right(values, xp))
        if given.share != (0.0, 1.0):
            low, high = (low + (high - low) * share for share in given.share)
        return xp.maximum(low, given.lower), xp.minimum(high, given.upper)

    def parameters(self, u: Float[Array, " n"], fixed: Any = None) -> tuple[Float[Array, " n"], Float[Array, ""]]:
        """Parameters of a point in R^n, and the log of the determinant of dp/du; -inf where the range is empty.

        `fixed` holds values of parameters that do not depend on u, and NaN for the others; it may be traced.
        """
        values: dict[str, Any] = {}
        log_jacobian = jnp.zeros(())
        for i in self.order:
            low, high = self.bounds(i, values)
            value, log_slope = _forward(u[i], low, high, *self.finite[i])
            if fixed is not None:
                free = jnp.isnan(fixed[i])
                value, log_slope = jnp.where(free, value, fixed[i]), jnp.where(free, log_slope, 0.0)
            values[self.sde.parameters[i]], log_jacobian = value, log_jacobian + log_slope
        return jnp.stack([values[name] for name in self.sde.parameters]), log_jacobian

    def unconstrained(self, p: Float[Array, " n"]) -> Float[Array, " n"]:
        """The point in R^n of parameters strictly inside their ranges."""
        values = dict(zip(self.sde.parameters, p, strict=True))
        ends = [self.bounds(i, values) for i in range(len(self.order))]
        pairs = zip(p, ends, self.finite, strict=True)
        return jnp.stack([_backward(value, low, high, *finite) for value, (low, high), finite in pairs])

    def inside(self, p: Float[Array, " n"]) -> Any:
        """Whether parameters satisfy every constraint and range, traceable."""
        values = dict(zip(self.sde.parameters, p, strict=True))
        ok = valid_parameters(self.sde, p)
        for i, value in enumerate(p):
            low, high = self.bounds(i, values)
            ok = ok & (value > low) & (value < high)
        return ok


def _forward(u: Any, low: Any, high: Any, has_low: bool, has_high: bool) -> tuple[Any, Any]:
    """The value of a coordinate, and the log of its derivative."""
    if has_low and has_high:
        width = high - low
        safe = jnp.where(width > 0, width, 1.0)  # the other branch of a `where` must stay differentiable
        log_slope = jnp.log(safe) + jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u)
        return low + safe * jax.nn.sigmoid(u), jnp.where(width > 0, log_slope, -jnp.inf)
    if has_low:
        return low + jnp.exp(u), u
    return (high - jnp.exp(u), u) if has_high else (u, jnp.zeros(()))


def _backward(value: Any, low: Any, high: Any, has_low: bool, has_high: bool) -> Any:
    if has_low and has_high:
        return jnp.log(value - low) - jnp.log(high - value)
    if has_low:
        return jnp.log(value - low)
    return jnp.log(high - value) if has_high else value


def _assigned(sde: SDE) -> dict[str, tuple[Inequality, ...]]:
    """To each parameter the inequalities that bound it given parameters that come before it."""
    bounding: dict[str, tuple[Inequality, ...]] = {name: () for name in sde.parameters}
    for inequality in (i for constraint in sde.constraints for i in constraint.inequalities):
        for name in reversed(sde.parameters):
            trial = {**bounding, name: (*bounding[name], inequality)}
            if _isolates(inequality, name) and _order(sde.parameters, _needs(trial)):
                bounding = trial
                break
    return bounding


def _isolates(inequality: Inequality, name: str) -> bool:
    """Whether the parameter stands alone on one side and does not occur on the other."""
    left, right = inequality.left_text == name, inequality.right_text == name
    return (left and name not in inequality.right_names) or (right and name not in inequality.left_names)


def _needs(bounding: Mapping[str, Sequence[Inequality]]) -> Callable[[str], set[str]]:
    return lambda name: {other for inequality in bounding[name] for other in inequality.names} - {name}


def _order(names: Sequence[str], needs: Callable[[str], set[str]]) -> tuple[str, ...]:
    """Names such that each comes after those that it needs; empty if they need each other."""
    ordered: tuple[str, ...] = ()
    while len(ordered) < len(names):
        ready = [name for name in names if name not in ordered and needs(name) <= set(ordered)]
        if not ready:
            return ()
        ordered = (*ordered, ready[0])
    return ordered

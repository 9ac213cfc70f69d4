"""The likelihood of discretely observed data, paper equation (16): the product of transition densities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow._precision import differentiable_in_float64, in_float64
from fokkerflow.densities.density import Density, check_gaps
from fokkerflow.sde.model import SDE
from fokkerflow.sde.series import Series
from fokkerflow.sde.validation import check_parameters, is_traced, parameter_vector

_EQUAL_GAPS = 1e-9
"""Gaps that differ by less than this relative amount are one gap, written in floating point."""


class Transitions(eqx.Module):
    """The transitions of one or several series as arrays, padded so that data of similar length share one compilation.

    **Attributes:**

    - `x1`, `x0`: of shape ``(n, d)``.
    - `dt`: of shape ``(n,)``, or a scalar if all gaps are equal; then whatever depends on gap and parameters alone is
      computed once for all transitions.
    - `t0`: start times, of shape ``(n,)``; a scalar for autonomous models.
    - `count`: how many of the ``n`` rows are data. The rest repeats the last transition, and is not counted.
    """

    x1: Float[Array, "n d"]
    x0: Float[Array, "n d"]
    dt: Float[Array, " n"] | Float[Array, ""]
    t0: Float[Array, " n"] | Float[Array, ""]
    count: Any


@in_float64
def transitions(sde: SDE, series: Series | Sequence[Series]) -> Transitions:
    """Collect the transitions of a series, or of several independent series of the same model."""
    every = [series] if isinstance(series, Series) else list(series)
    if not every:
        raise ValueError("Got no series, expected at least one.")
    for one in every:
        if not isinstance(one, Series):
            raise TypeError(f"Got {type(one).__name__}, expected a fokkerflow.Series: Series(times, states).")
        one.check(sde)
        if len(one) < 2:
            raise ValueError(f"A likelihood needs at least one transition: got a series of {len(one)} row, expected 2 or more.")
    x0, x1, dt, t0 = (np.concatenate(parts) for parts in zip(*(one.transitions() for one in every), strict=True))
    n = len(dt)
    rows = np.minimum(np.arange(_padded(n)), n - 1)
    equal = np.ptp(dt) <= _EQUAL_GAPS * dt[0]
    return Transitions(
        x1=jnp.asarray(x1[rows]),
        x0=jnp.asarray(x0[rows]),
        dt=jnp.asarray(dt[0] if equal else dt[rows]),
        t0=jnp.asarray(0.0 if sde.autonomous else t0[rows]),
        count=jnp.asarray(n),
    )


def log_likelihood(density: Density, series: Series | Sequence[Series], params: Any) -> Float[Array, ""]:
    """The log likelihood of a series, or of several independent ones, under a transition density.

    **Arguments:**

    - `density`: any density of `fokkerflow.density`, or a trained one.
    - `series`: the data.
    - `params`: an array in model order, or a mapping by name. May be traced by JAX: then parameters that break a constraint
      give -inf, otherwise they are refused.
    """
    p = parameter_vector(density.sde, params)
    if p.ndim != 1:
        raise ValueError(f"Got parameters of shape {p.shape}, expected one vector; log_likelihoods takes many.")
    if not is_traced(p):
        check_parameters(density.sde, p)
    return _total(density, within_reach(density, series), p)


def log_likelihoods(density: Density, series: Series | Sequence[Series], params: Any) -> Float[Array, " k"]:
    """`log_likelihood` at each row of `params`, of shape ``(k, n)``: a profile, or a set of posterior draws.

    Rows that break a constraint of the model give -inf.
    """
    p = parameter_vector(density.sde, params)
    if p.ndim != 2:
        raise ValueError(f"Got parameters of shape {p.shape}, expected (k, {len(density.sde.parameters)}).")
    return _totals(density, within_reach(density, series), p)


def within_reach(density: Density, series: Series | Sequence[Series]) -> Transitions:
    """The transitions, unless a gap is longer than the density is for: in a compiled sum it would give -inf without a word."""
    data = transitions(density.sde, series)
    for one in [series] if isinstance(series, Series) else series:
        check_gaps(density, one.gaps)
    return data


def _padded(n: int) -> int:
    """The next of 8, 9, ..., 16, 18, ..., 32, 36, ...: at most an eighth is padding, and few lengths are compiled."""
    eighth = max(1, (1 << (n - 1).bit_length()) // 16)
    return max(8, -(-n // eighth) * eighth)


def pointwise(density: Density, data: Transitions, p: Float[Array, " n"]) -> Float[Array, " rows"]:
    """The log density of each transition under traced parameters; 0 for padding. For use inside compiled functions."""
    each = density.log_prob_batch(data.x1, data.x0, data.dt, p, data.t0)
    return jnp.where(jnp.arange(each.shape[0]) < data.count, each, 0.0)


def total(density: Density, data: Transitions, p: Float[Array, " n"]) -> Float[Array, ""]:
    """The log likelihood under traced parameters, for use inside compiled functions."""
    return jnp.sum(pointwise(density, data, p))


@differentiable_in_float64
def _total(density: Density, data: Transitions, p: Any) -> Float[Array, ""]:
    return total(density, data, p) if is_traced(p) else _total_compiled(density, data, p)


@in_float64
def _totals(density: Density, data: Transitions, p: Any) -> Float[Array, " k"]:
    return _totals_compiled(density, data, p)


_total_compiled = eqx.filter_jit(total)


@eqx.filter_jit
def _totals_compiled(density: Density, data: Transitions, p: Float[Array, "k n"]) -> Float[Array, " k"]:
    return jax.lax.map(lambda row: total(density, data, row), p)

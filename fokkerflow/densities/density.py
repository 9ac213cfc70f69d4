"""The one interface of a transition density p(x1 | x0, dt, params): trained, exact or approximate.

A concrete density implements one unbatched JAX function, `log_density`, for arguments that are known to be valid.
Everything around it (names, shapes, domains, constraints, precision, batching) is written once, here.
"""

from __future__ import annotations

import abc
import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fokkerflow._precision import declare_derivatives, differentiable_in_float64, in_float64, is_32_bit
from fokkerflow.sde.model import SDE, Parameters, Scalar, State
from fokkerflow.sde.validation import (
    check_parameters,
    check_state,
    inside_domain,
    is_traced,
    parameter_vector,
    state_vector,
    valid_parameters,
)

_CORE_DIMENSIONS = (1, 1, 0, 1, 0)
"""Dimensions of one transition's x1, x0, dt, params and t0; what comes before them is a batch."""

_SAME_GAP = 1e-6
"""A gap may exceed the longest one by this relative amount: 182.5 / 365 and one half are one gap in any calendar."""


class Density(eqx.Module):
    """A transition density of an SDE.

    Subclasses implement `log_density`; users call `log_prob` or `log_prob_batch`.

    **Attributes:**

    - `sde`: the model whose density this is.
    """

    sde: eqx.AbstractVar[SDE]

    @property
    def longest_dt(self) -> float:
        """The longest time gap that the density is for; a density that has one says so."""
        return math.inf

    @abc.abstractmethod
    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        """log p(X_{t0+dt} = x1 | X_{t0} = x0) for float64 arguments inside domain and constraint."""

    def log_prob(self, x1: Any, x0: Any, dt: Any, params: Any, t0: Any = 0.0) -> Scalar:
        """The log transition density of one transition; safe under `jax.jit`, `jax.vmap` and `jax.grad`.

        **Arguments:**

        - `x1`: the new state, of shape ``(d,)``. A state outside the domain has log density -inf.
        - `x0`: the state that it starts from, inside the domain.
        - `dt`: the time between them, positive.
        - `params`: an array in model order, or a mapping from parameter names to values.
        - `t0`: the time of `x0`; it matters for non-autonomous models only.

        **Returns:** a float64 scalar.

        **Raises:** ValueError, naming the culprit, for wrong shapes, unknown names, ``dt <= 0`` or a gap longer than
        `longest_dt`, `x0` outside the domain, or parameters that break a constraint. Values that are being traced by JAX
        cannot raise: they give -inf.
        """
        arguments = self._checked(x1, x0, dt, params, t0)
        for value, ndim, what in zip(arguments, _CORE_DIMENSIONS, ("x1", "x0", "dt", "params", "t0"), strict=True):
            if jnp.ndim(value) != ndim:
                raise ValueError(
                    f"{what} has shape {jnp.shape(value)}: log_prob takes one transition. "
                    "Use log_prob_batch for arrays of transitions, or jax.vmap."
                )
        return _one(self, *arguments)

    def log_prob_batch(self, x1: Any, x0: Any, dt: Any, params: Any, t0: Any = 0.0) -> Float[Array, "*batch"]:
        """`log_prob` over any leading axes, which broadcast against each other; compiled once per shape."""
        arguments = self._checked(x1, x0, dt, params, t0)
        return _many(self, *arguments)

    def _checked(self, x1: Any, x0: Any, dt: Any, params: Any, t0: Any) -> tuple[Any, Any, Any, Any, Any]:
        sde = self.sde
        x1, x0 = state_vector(sde, x1, "x1"), state_vector(sde, x0, "x0")
        p = parameter_vector(sde, params)
        dt, t0 = (v if is_traced(v) else np.asarray(v, np.float64) for v in (dt, t0))
        if not is_traced(x0):
            check_state(sde, x0, "x0")
        if not is_traced(p):
            check_parameters(sde, p)
        if not is_traced(dt):
            check_gaps(self, dt)
        return x1, x0, dt, p, t0


def check_gaps(density: Density, dt: Float[np.ndarray, "*batch"]) -> None:
    """Raise ValueError if a concrete time gap is not positive and finite, or longer than the density is for."""
    good = (dt > 0) & np.isfinite(dt)
    if not np.all(good):
        raise ValueError(f"{density.sde.label}: got dt = {dt[~good].flat[0]:g}, expected a positive, finite time.")
    if np.any(dt > _rounded_up(density.longest_dt)):
        raise ValueError(
            f"{density.sde.label}: got dt = {np.max(dt):g}, this density is for gaps up to {density.longest_dt:g}. "
            "Take another one, or train one for longer gaps."
        )


def _rounded_up(longest: float) -> float:
    """Calendars write the same gap in several ways, which differ by rounding."""
    return longest * (1 + _SAME_GAP)


@differentiable_in_float64
def _one(density: Density, x1: Any, x0: Any, dt: Any, p: Any, t0: Any) -> Scalar:
    if is_traced(x1, x0, dt, p, t0):
        return _guarded(density, x1, x0, dt, p, t0)
    return _compiled(density, x1, x0, dt, p, t0)


def _many(density: Density, x1: Any, x0: Any, dt: Any, p: Any, t0: Any) -> Float[Array, "*batch"]:
    return _in_batches(density, x1, x0, dt, p, t0, narrow=is_32_bit())


@in_float64
def _in_batches(density: Density, x1: Any, x0: Any, dt: Any, p: Any, t0: Any, *, narrow: bool) -> Float[Array, "*batch"]:
    return _compiled_batch(density, x1, x0, dt, p, t0, narrow)


def _guarded(density: Density, x1: Any, x0: Any, dt: Any, p: Any, t0: Any) -> Scalar:
    """-inf outside domain and constraint; the density is evaluated at a harmless point there, so gradients stay finite.

    Each argument is made harmless on its own: what depends on gap and parameters alone stays unbatched if they are.
    """
    sde, longest = density.sde, density.longest_dt
    start, typical = jnp.array(sde.start), jnp.array([sde.typical[name] for name in sde.parameters])
    good: dict[str, Bool[Array, ""]] = {
        "x1": inside_domain(sde, x1),
        "x0": inside_domain(sde, x0),
        "dt": (dt > 0) & jnp.isfinite(dt) & (dt <= _rounded_up(longest)),
        "p": valid_parameters(sde, p),
    }
    value = density.log_density(
        jnp.where(good["x1"], x1, start),
        jnp.where(good["x0"], x0, start),
        jnp.where(good["dt"], dt, min(1.0, longest)),
        jnp.where(good["p"], p, typical),
        t0,
    )
    return jnp.where(functools.reduce(jnp.logical_and, good.values()), value, -jnp.inf)


@eqx.filter_jit
def _compiled(density: Density, x1: Any, x0: Any, dt: Any, p: Any, t0: Any) -> Scalar:
    return _guarded(density, x1, x0, dt, p, t0)


@eqx.filter_jit
def _compiled_batch(density: Density, x1: Any, x0: Any, dt: Any, p: Any, t0: Any, narrow: bool) -> Float[Array, "*batch"]:
    """One vmap per leading axis; an axis that an argument lacks is not batched, so shared work is done once.

    `narrow` says that the caller is in 32-bit mode: derivatives are then declared inside the vmaps, for each transition.
    """
    arguments = [jnp.asarray(a) for a in (x1, x0, dt, p, t0)]
    leading = [a.shape[: a.ndim - core] for a, core in zip(arguments, _CORE_DIMENSIONS, strict=True)]
    batch = jnp.broadcast_shapes(*leading)
    padded = [(1,) * (len(batch) - len(shape)) + shape for shape in leading]
    function: Any = functools.partial(declare_derivatives(_guarded) if narrow else _guarded, density)
    for level in reversed(range(len(batch))):
        axes = tuple(None if shape[level] == 1 else 0 for shape in padded)
        function = jax.vmap(function, in_axes=axes) if any(a is not None for a in axes) else function
    squeezed = [
        a.reshape(tuple(size for size in shape if size != 1) + a.shape[a.ndim - core :])
        for a, shape, core in zip(arguments, padded, _CORE_DIMENSIONS, strict=True)
    ]
    return jnp.reshape(function(*squeezed), batch)

"""What a user passes in, checked once at the edge; the message names the culprit and says what was expected.

Values that JAX is tracing cannot be looked at: their shapes are checked here, and the densities turn values that
would be refused into a log density of -inf instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.sde.constraint import ConstraintError, parameter_values
from fokkerflow.sde.model import SDE


def is_traced(*values: Any) -> bool:
    return any(isinstance(v, jax.core.Tracer) for v in jax.tree.leaves(values))


def parameter_vector(sde: SDE, params: Any) -> Any:
    """Parameters in model order, as an array of shape ``(..., n)``, from an array or a mapping by name."""
    n, name = len(sde.parameters), sde.label
    if isinstance(params, Mapping):
        unknown = [k for k in params if k not in sde.parameters]
        missing = [k for k in sde.parameters if k not in params]
        if unknown or missing:
            raise ValueError(
                f"{name}: "
                + "; ".join(
                    [f"unknown parameter {', '.join(map(repr, unknown))}"] * bool(unknown)
                    + [f"missing parameter {', '.join(map(repr, missing))}"] * bool(missing)
                )
                + f". Expected {', '.join(sde.parameters)}."
            )
        values: Any = [_numbers(params[k], f"{name}: parameter {k!r}") for k in sde.parameters]
        values = jnp.broadcast_arrays(*values) if is_traced(*values) else np.broadcast_arrays(*values)
        return jnp.stack(values, -1) if is_traced(*values) else np.stack(values, -1)
    values = _numbers(params, f"{name}: parameters")
    if values.ndim == 0 or values.shape[-1] != n:
        raise ValueError(f"{name}: got parameters of shape {values.shape}, expected {n}: {', '.join(sde.parameters)}.")
    return values


def check_parameters(sde: SDE, p: np.ndarray) -> None:
    """Raise `ConstraintError` if concrete parameters (of shape ``(..., n)``) are not finite or break a constraint."""
    name = sde.label
    columns = np.reshape(p, (-1, len(sde.parameters))).T
    values = dict(zip(sde.parameters, columns, strict=True))
    for key, column in values.items():
        if not np.all(np.isfinite(column)):
            raise ConstraintError(f"{name}: parameter {key!r} is {column[~np.isfinite(column)][0]}, expected a finite number.")
    for constraint in sde.constraints:
        violation = constraint.violation(values)
        if violation is not None:
            raise ConstraintError(f"{name}: {violation}.")


def valid_rows(sde: SDE, p: np.ndarray) -> np.ndarray:
    """Which rows of concrete parameters (of shape ``(k, n)``) satisfy all constraints."""
    values = dict(zip(sde.parameters, p.T, strict=True))
    ok = np.all(np.isfinite(p), axis=1)
    with np.errstate(all="ignore"):
        for inequality in (i for constraint in sde.constraints for i in constraint.inequalities):
            ok &= np.broadcast_to(inequality.holds(values, np), ok.shape)
    return ok


def valid_parameters(sde: SDE, p: Float[Array, " n"]) -> Any:
    """Whether all constraints hold, as a traceable boolean."""
    values = parameter_values(sde.parameters, p)
    ok = jnp.all(jnp.isfinite(p))
    for constraint in sde.constraints:
        ok = ok & constraint.holds(values)
    return ok


def inside_domain(sde: SDE, x: Float[Array, " d"]) -> Any:
    """Whether a state lies inside the domain, as a traceable boolean; infinities and NaN are outside."""
    ok = jnp.all(jnp.isfinite(x))
    for domain, value in zip(sde.domains, x, strict=True):
        ok = ok & domain.contains(value)
    return ok


def state_vector(sde: SDE, x: Any, what: str = "state") -> Any:
    """A state as an array of shape ``(..., d)``; a bare number will do in one dimension."""
    name, d = sde.label, sde.dimension
    values = _numbers(x, f"{name}: {what}")
    if values.ndim == 0 and d == 1:
        values = values[None]
    if values.ndim == 0 or values.shape[-1] != d:
        raise ValueError(f"{name}: got {what} of shape {values.shape}, expected {d}: {', '.join(sde.states)}.")
    return values


def check_state(sde: SDE, x: np.ndarray, what: str = "state") -> None:
    """Raise ValueError if a concrete state (of shape ``(..., d)``) is not finite or lies outside the domain."""
    rows = np.reshape(x, (-1, sde.dimension))
    for i, (key, domain) in enumerate(sde.states.items()):
        bad = np.flatnonzero(~(np.isfinite(rows[:, i]) & np.asarray(domain.contains(rows[:, i]))))
        if bad.size:
            where = f" (row {bad[0]})" if len(rows) > 1 else ""
            raise ValueError(
                f"{sde.label}: {what} has {key} = {rows[bad[0], i]:g}{where}, expected a finite value in {domain}."
            )


def _real(value: Any) -> float:
    if value is None or isinstance(value, (str, bytes, bool)):
        raise TypeError
    return float(value)


def _numbers(value: Any, what: str) -> Any:
    """A floating point array in double precision, whatever JAX's precision is; traced values pass through."""
    if is_traced(value):
        return jnp.asarray(value)
    try:
        array = np.asarray(value)
        if array.dtype == object:  # e.g. Decimal, or a list that mixes NumPy and JAX scalars
            return np.array([_real(v) for v in array.flat], np.float64).reshape(array.shape)
        if array.dtype == bool or not np.can_cast(array.dtype, np.float64, casting="same_kind"):
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{what}: got {value!r}, expected numbers.") from None

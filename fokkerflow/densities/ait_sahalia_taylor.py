"""Taylor polynomials of drift and covariance at a start, by nested forward differentiation: no formula is read.

A coefficient that is exactly zero for a model, such as a second derivative of an affine drift, is found once, by trying states
and parameters, and then never computed with.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from fokkerflow.densities.ait_sahalia_coordinates import Frame
from fokkerflow.densities.ait_sahalia_polynomials import Graded, Matrix, Multi, Vector, factorial, fence, monomials
from fokkerflow.sde.model import Parameters, Scalar, State
from fokkerflow.sde.probing import sample_parameters, sample_states

_PROBES = 32


class Taylor(NamedTuple):
    """Drift and covariance as polynomials in z - z0, one for each power of t - t0."""

    drift: list[Vector]
    covariance: list[Matrix]


def taylor(frame: Frame, order: int, t0: Scalar, z0: State, p: Parameters) -> Taylor:
    """The expansion at (t0, z0): the covariance up to weight `order`, the drift up to one less. Time has weight two."""
    d = frame.sde.dimension
    tensors, nonzero = _derivatives(frame, order, t0, z0, p), _nonzero(frame, order)

    def polynomial(row: int, power: int, weight: int) -> Graded:
        parts: Graded = []
        for n in range(weight - 2 * power + 1):
            full = {m: m + (power,) * frame.timed for m in monomials(d, n)}
            parts.append({m: _entry(tensors, row, e) for m, e in full.items() if nonzero[sum(e)][(row, *_index(e))]})
        return fence(parts)

    powers = range(order // 2 + 1) if frame.timed else range(1)
    place = _rows_of_covariance(d)
    drift = [[polynomial(a, m, order - 1) for a in range(d)] for m in powers]
    return Taylor(drift, [[[polynomial(int(row), m, order) for row in rows] for rows in place] for m in powers])


def _rows_of_covariance(d: int) -> np.ndarray:
    """Where each entry of the covariance stands in (drift, lower triangle of the covariance)."""
    rows, columns = np.tril_indices(d)
    place = np.zeros((d, d), int)
    place[rows, columns] = place[columns, rows] = d + np.arange(len(rows))
    return place


def _index(m: Multi) -> Multi:
    """Where a mixed derivative stands in the tensor of all derivatives of its order."""
    return tuple(i for i, e in enumerate(m) for _ in range(e))


def _entry(tensors: list[Array], row: int, m: Multi) -> Any:
    value = tensors[sum(m)][(row, *_index(m))]
    return value if factorial(m) == 1 else value / factorial(m)


def _derivatives(frame: Frame, order: int, t0: Scalar, z0: State, p: Parameters) -> list[Array]:
    """Of (drift, lower triangle of the covariance), up to `order`, in z and, if it matters, in t: one tensor for each order."""
    d = frame.sde.dimension
    velocity = frame.drift(t0, z0, p) if frame.moving else jnp.zeros(d)

    def stacked(s: Array) -> Array:
        elapsed = s[d] if frame.timed else jnp.zeros(())
        drift, covariance = frame.formulas(t0 + elapsed, z0 + s[:d] + elapsed * velocity, p)
        return jnp.concatenate([drift - velocity, covariance[np.tril_indices(d)]])

    towers: list[Callable[[Array], Array]] = [stacked]
    for _ in range(order):
        towers.append(jax.jacfwd(towers[-1]))
    return [tower(jnp.zeros(d + frame.timed)) for tower in towers]


@lru_cache(maxsize=256)
def _nonzero(frame: Frame, order: int) -> tuple[Bool[np.ndarray, ...], ...]:
    """Which derivatives are anything but exactly zero at all of the states, times and parameters that are tried."""
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        x, p = jnp.asarray(sample_states(frame.sde, _PROBES)), jnp.asarray(sample_parameters(frame.sde, _PROBES))
        t = jnp.linspace(0.0, 1.0, _PROBES)
        many = jax.jit(jax.vmap(lambda t, x, p: _derivatives(frame, order, t, frame.place(x), p)))
        return tuple(np.any(np.asarray(tensor) != 0, axis=0) for tensor in many(t, x, p))

"""The cumulant generating function of affine models, by their Riccati equations, with all its derivatives.

For ``b = b0 + B h`` and ``Sigma = S0 + sum_k S_k h_k``, h the state relative to a fixed reference r (Duffie, Filipovic and
Schachermayer 2003; here without jumps),

    log E exp(u' X_dt) = phi(dt, u) + psi(dt, u)' h_0 + u' r
    psi_k' = (B' psi)_k + psi' S_k psi / 2 ,  psi(0) = u            phi' = b0' psi + psi' S0 psi / 2 ,  phi(0) = 0 .

The right-hand sides are quadratic, so jets in u go through them as numbers do: one integration gives all derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.densities.extrapolation import integrate, shares
from fokkerflow.densities.jets import Jet, combine, multiply, square, variable
from fokkerflow.sde.model import SDE, Parameters, Scalar, State
from fokkerflow.sde.polynomial import polynomial_structure
from fokkerflow.sde.probing import sample_parameters

_PROBES = 24
_ZERO = 1e-13
"""Coefficients below this share of the largest of their kind are zero."""


class Coefficients(NamedTuple):
    """b0 (d), B (d, d), S0 (d, d) and S (d, d, d), the last index that of the state."""

    b0: Any
    B: Any
    S0: Any
    S: Any


@dataclass(frozen=True)
class AffineStructure:
    """Where the state is measured from, and which coefficients are anything but zero for some parameters."""

    reference: tuple[float, ...]
    nonzero: tuple[tuple[Any, ...], ...]

    def has(self, what: int) -> list[tuple[int, ...]]:
        """The indices of the coefficients of one kind that are not zero."""
        return list(self.nonzero[what])


@lru_cache(maxsize=256)
def affine_structure(sde: SDE) -> AffineStructure | None:
    """None for a model that is not affine, or that depends on time."""
    polynomial = polynomial_structure(sde)
    if polynomial is None or polynomial.quadratic:
        return None
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        p = jnp.asarray(sample_parameters(sde, _PROBES))
        found = jax.jit(jax.vmap(lambda p: coefficients(sde, polynomial.reference, p)))(p)
        patterns = tuple(tuple(map(tuple, np.argwhere(_pattern(np.asarray(c))).tolist())) for c in found)
    return AffineStructure(polynomial.reference, patterns)


def _pattern(values: Float[np.ndarray, "k ..."]) -> np.ndarray:
    size = np.max(np.abs(values), axis=0)
    return size > _ZERO * np.max(size)


def coefficients(sde: SDE, reference: tuple[float, ...], p: Parameters) -> Coefficients:
    def drift(x: State) -> State:
        return sde.drift(jnp.zeros(()), x, p)

    def covariance(x: State) -> Array:
        return sde.covariance(jnp.zeros(()), x, p)

    r = jnp.array(reference)
    return Coefficients(drift(r), jax.jacfwd(drift)(r), covariance(r), jax.jacfwd(covariance)(r))


def cumulants(
    structure: AffineStructure,
    c: Coefficients,
    u: State,
    x0: State,
    dt: Scalar,
    *,
    degree: int,
    steps: int,
    levels: int,
) -> Jet:
    """log E exp(u' X_dt) - u' r as a jet in u of the given degree.

    `steps` and `levels` are those of `fokkerflow.densities.extrapolation.integrate`.
    """
    d = len(u)

    def field(state: tuple[Jet, ...]) -> tuple[Jet, ...]:
        return _field(structure, c, state, degree)

    start = (*(variable(u[k], k, d) for k in range(d)), dict[Any, Any]())
    end = integrate(field, _padded(field, start), dt, steps=steps, levels=levels)
    return combine([(1.0, end[d]), *((x0[k] - structure.reference[k], end[k]) for k in range(d))])


def stiffness(c: Coefficients, u: State, dt: Scalar, *, steps: int) -> Scalar:
    """The fastest rate of the equations at their start, per first step of the integration, which is explicit: 2 is too much."""
    rates = jnp.diagonal(c.B) + jnp.einsum("jkk,j->k", c.S, u)
    return jnp.max(jnp.abs(rates)) * dt * float(shares(steps)[0])


def _field(structure: AffineStructure, c: Coefficients, state: tuple[Jet, ...], degree: int) -> tuple[Jet, ...]:
    """The right-hand sides for psi_1 ... psi_d and phi."""
    d = len(state) - 1
    pairs = {(i, j) for i, j, *_ in structure.has(2) + structure.has(3) if i <= j}
    products = {(i, j): square(state[i], degree) if i == j else multiply(state[i], state[j], degree) for i, j in sorted(pairs)}

    def weight(value: Any, i: int, j: int) -> Any:
        return value / 2 if i == j else value

    psi = [
        combine(
            [(c.B[i, k], state[i]) for i, m in structure.has(1) if m == k]
            + [(weight(c.S[i, j, k], i, j), products[i, j]) for i, j, m in structure.has(3) if m == k and i <= j]
        )
        for k in range(d)
    ]
    phi = combine(
        [(c.b0[i], state[i]) for (i,) in structure.has(0)]
        + [(weight(c.S0[i, j], i, j), products[i, j]) for i, j in structure.has(2) if i <= j]
    )
    return (*psi, phi)


def _padded(field: Any, start: tuple[Jet, ...]) -> tuple[Jet, ...]:
    """The start with zeros wherever the solution will have anything: the smallest set of terms that the field keeps."""
    terms = [set(jet) for jet in start]
    while True:
        reached = jax.eval_shape(field, tuple({key: jnp.zeros(()) for key in keys} for keys in terms))
        larger = [old | set(new) for old, new in zip(terms, reached, strict=True)]
        if larger == terms:
            return tuple(
                {key: jet.get(key, jnp.zeros(())) for key in sorted(keys)} for jet, keys in zip(start, terms, strict=True)
            )
        terms = larger

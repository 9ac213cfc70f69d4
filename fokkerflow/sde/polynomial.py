"""Exact moments of polynomial diffusions: affine drift, covariance at most quadratic in the state.

For these the moments up to order two obey a closed linear system (Cuchiero, Keller-Ressel and Teichmann 2012; Filipovic and
Larsson 2016, theorem 3.1). It is written here for the mean and the *central* second moments, so that the small covariance
after a short time is not the difference of two large numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.sde.domain import Domain
from fokkerflow.sde.linalg import expm
from fokkerflow.sde.model import SDE, Matrix, Parameters, Scalar, State
from fokkerflow.sde.probing import sample_parameters, sample_states

_PROBES = 24
_TOLERANCE = 1e-10


@dataclass(frozen=True)
class PolynomialStructure:
    """Where the polynomials are expanded, and whether the covariance has quadratic terms."""

    reference: tuple[float, ...]
    quadratic: bool


@dataclass(frozen=True)
class _Coefficients:
    """b(r + h) = b0 + b1 h and Sigma(r + h) = s0 + s1 h + s2 (h h') / 2."""

    b0: Float[Array, " d"]
    b1: Float[Array, "d d"]
    s0: Float[Array, "d d"]
    s1: Float[Array, "d d d"]
    s2: Float[Array, "d d d d"]

    def drift(self, h: State) -> State:
        return self.b0 + self.b1 @ h

    def covariance(self, h: State) -> Matrix:
        return self.s0 + self.s1 @ h + self.s2 @ h @ h / 2


def polynomial_moments(
    sde: SDE, structure: PolynomialStructure, dt: Scalar | float, x0: State, p: Parameters
) -> tuple[State, Matrix]:
    """Exact mean and covariance after `dt`: the propagator, which does not depend on `x0`, applied to (1, x0, x0 x0', 0)."""
    d, h = sde.dimension, x0 - jnp.array(structure.reference)
    propagator = expm(dt * _generator(sde, structure, p))
    rows, columns = np.tril_indices(d)
    second = (h[rows] * h[columns],) if structure.quadratic else ()
    start = jnp.concatenate([jnp.ones(1), h, *second])
    end = propagator[:, : start.size] @ start  # the covariance starts at zero
    _, mean, _, covariance = _unpack(end, d, structure.quadratic)
    return jnp.array(structure.reference) + mean, covariance


def _generator(sde: SDE, structure: PolynomialStructure, p: Parameters) -> Float[Array, "k k"]:
    """The matrix of the linear system for (1, m, vech(m m') if needed, vech(C)), where m is relative to the reference."""
    c, d = _expand(sde, structure.reference, p), sde.dimension
    tril = np.tril_indices(d)

    def field(z: Float[Array, " k"]) -> Float[Array, " k"]:
        one, m, M, C = _unpack(z, d, structure.quadratic)
        dm = one * c.b0 + c.b1 @ m
        outer = jnp.outer(c.b0, m) + c.b1 @ M
        flow = c.b1 @ C
        dC = flow + flow.T + one * c.s0 + c.s1 @ m + jnp.tensordot(c.s2, M + C) / 2
        second = ((outer + outer.T)[tril],) if structure.quadratic else ()
        return jnp.concatenate([jnp.zeros(1), dm, *second, dC[tril]])

    triangle = d * (d + 1) // 2
    size = 1 + d + triangle * (2 if structure.quadratic else 1)
    return jax.jacfwd(field)(jnp.zeros(size))


def _unpack(z: Float[Array, " k"], d: int, quadratic: bool) -> tuple[Scalar, State, Matrix, Matrix]:
    triangle = d * (d + 1) // 2
    M = _symmetric(z[1 + d : 1 + d + triangle], d) if quadratic else jnp.zeros((d, d))
    return z[0], z[1 : 1 + d], M, _symmetric(z[-triangle:], d)


def _symmetric(lower: Float[Array, " triangle"], d: int) -> Matrix:
    """The symmetric matrix with this lower triangle."""
    index = np.zeros((d, d), int)
    index[np.tril_indices(d)] = np.arange(d * (d + 1) // 2)
    return lower[np.maximum(index, index.T)]


def _expand(sde: SDE, reference: tuple[float, ...], p: Parameters) -> _Coefficients:
    def drift(x: State) -> State:
        return sde.drift(jnp.zeros(()), x, p)

    def covariance(x: State) -> Matrix:
        return sde.covariance(jnp.zeros(()), x, p)

    r = jnp.array(reference)
    slope = jax.jacfwd(covariance)
    return _Coefficients(drift(r), jax.jacfwd(drift)(r), covariance(r), slope(r), jax.jacfwd(slope)(r))


@lru_cache(maxsize=256)
def polynomial_structure(sde: SDE) -> PolynomialStructure | None:
    """The structure of a polynomial diffusion, or None for a model that is not one; found once per model.

    Drift and covariance are expanded at one point and compared with their own values at random states and parameters. The
    expansion is made at the lower end of bounded coordinates and at 0 of the others, where coefficients that should be zero
    are exactly zero, or else (a formula that has no derivative there) at the model's start.
    """
    if not sde.autonomous:
        return None
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        x, p = jnp.asarray(sample_states(sde, _PROBES)), jnp.asarray(sample_parameters(sde, _PROBES))
        for reference in (tuple(map(_origin, sde.domains)), tuple(map(float, sde.start))):
            error, size, curvature = jax.device_get(_compare(sde, reference, x, p))
            if np.all(error <= _TOLERANCE * np.max(size, axis=0)):  # not so for NaN
                return PolynomialStructure(reference, quadratic=bool(np.any(curvature != 0)))
    return None


def _origin(domain: Domain) -> float:
    return 0.0 if domain.is_line else domain.lower


@partial(jax.jit, static_argnums=(0, 1))
def _compare(
    sde: SDE, reference: tuple[float, ...], x: Float[Array, "k d"], p: Float[Array, "k n"]
) -> tuple[Float[Array, "k 2"], Float[Array, "k 2"], Float[Array, "k d d d d"]]:
    """How far the expansion at `reference` is from drift and covariance, how large those are, and the quadratic terms."""

    def one(x: State, p: Parameters) -> tuple[Array, Array, Array]:
        c, h = _expand(sde, reference, p), x - jnp.array(reference)
        drift, covariance = sde.drift(jnp.zeros(()), x, p), sde.covariance(jnp.zeros(()), x, p)
        error = jnp.array([jnp.max(jnp.abs(c.drift(h) - drift)), jnp.max(jnp.abs(c.covariance(h) - covariance))])
        return error, jnp.array([jnp.max(jnp.abs(drift)), jnp.max(jnp.abs(covariance))]), c.s2

    return jax.vmap(one)(x, p)

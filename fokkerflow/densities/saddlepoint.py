"""Saddlepoint approximation of the transition density of affine models (paper appendix E, for BDFS), with its correction."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fokkerflow.densities.affine import AffineStructure, affine_structure, coefficients, cumulants, stiffness
from fokkerflow.densities.density import Density
from fokkerflow.densities.forward_mode import in_forward_mode
from fokkerflow.densities.gaussian_law import refuse_singular
from fokkerflow.densities.jets import derivatives
from fokkerflow.densities.registry import register
from fokkerflow.sde.linalg import cholesky
from fokkerflow.sde.model import SDE, Matrix, Parameters, Scalar, State

_COARSE = (6, 2)
"""Steps and levels of the integration with which the saddlepoint is looked for."""
_LEVELS = 6
_MOST = 40
_STIFFEST = 2.0
_CLOSE = 1e-10
"""Newton's decrement squared at which the search ends; one cubic step after it leaves 1e-15."""
_ROUNDING = 1e-12
_SHORTER = 0.3
_LEAST = 1e-7


@register("saddlepoint")
@final
class SaddlepointDensity(Density):
    """The saddlepoint approximation, second order by default, for models with affine drift and covariance.

    With the cumulant generating function ``K(u) = log E exp(u' X_dt)`` (`fokkerflow.densities.affine`) and ``K'(u) = x1``,

        log p ~ K(u) - u' x1 - log det(2 pi K''(u)) / 2 + c ,    c = (3 rho_4 - 3 rho_13^2 - 2 rho_23^2) / 24 ,

    where, with G the inverse of K'' and sums over repeated indices, ``rho_4 = K_ijkl G_ij G_kl``,
    ``rho_13^2 = K_ijk K_lmn G_ij G_kl G_mn``, ``rho_23^2 = K_ijk K_lmn G_il G_jm G_kn``. The correction is in the exponent,
    which differs from ``1 + c`` by terms of higher order, cannot be negative, and suits the tails of a Gamma law. Without it,
    the relative error of p is about c, also in the tails. It does not integrate to one.

    For any dt; exact for a Gaussian law (OU). The Riccati equations are solved by `steps` steps of order 12, to 1e-10 as long
    as the fastest mean reversion times dt is below 15 or so at 16 steps. The saddlepoint is found by Newton's method, which
    stays where K is finite and convex and the equations are not too stiff; a transition for which it does not arrive, next to
    the end of a half line, has log density -inf: take more `steps`. Derivatives, of the approximation itself and exact to
    second order, are made in forward mode.

    **Attributes:**

    - `corrected`: with c.
    - `steps`: of the Riccati equations.

    **Reference:** Daniels (1954), Saddlepoint approximations in statistics; McCullagh (1987), Tensor methods in statistics,
    section 6.3, for the multivariate c; Ait-Sahalia and Yu (2006), Saddlepoint approximations for continuous-time Markov
    processes.
    """

    sde: SDE
    corrected: bool = True
    steps: int = 16

    def __check_init__(self) -> None:
        if not self.applies(self.sde):
            why = "it is not" if self.sde.autonomous else "it depends on time"
            raise ValueError(
                f"{self.sde.label}: the saddlepoint method needs the generating function of an affine model, one whose drift "
                f"and covariance are affine functions of the state that do not depend on time; {why}."
            )
        if not isinstance(self.steps, int) or self.steps < 1:
            raise ValueError(f"Got steps = {self.steps!r}, expected a whole number of at least 1.")
        refuse_singular(self.sde, through_drift=True)

    @staticmethod
    def applies(sde: SDE) -> bool:
        """Whether the model is affine."""
        return affine_structure(sde) is not None

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        return in_forward_mode(self._approximation)(x1, x0, dt, p)

    def _approximation(self, x1: State, x0: State, dt: Scalar, p: Parameters) -> Scalar:
        tilt, found = self._saddlepoint(*jax.lax.stop_gradient((x1, x0, dt, p)))
        fine = partial(self._expansion, x1, x0, dt, p, accuracy=(self.steps, _LEVELS))
        _, slope, curvature, third = fine(tilt, degree=3)
        # From a fixed point: a step of third order, hence with the derivatives of the solution up to the second.
        newton = -_solve(curvature, slope)
        u = tilt + newton - _solve(curvature, third @ newton @ newton) / 2
        value, _, curvature, *higher = fine(u, degree=4 if self.corrected else 2)
        log = value - _log_determinant(curvature) / 2 - len(x1) / 2 * math.log(2 * math.pi)
        return jnp.where(found, log + (_correction(curvature, *higher) if self.corrected else 0.0), -jnp.inf)

    def _saddlepoint(self, x1: State, x0: State, dt: Scalar, p: Parameters) -> tuple[State, Bool[Array, ""]]:
        """To a few digits with few steps of the integration, then to all that matter."""
        c = coefficients(self.sde, self._structure.reference, p)

        def at(u: State, accuracy: tuple[int, int]) -> tuple[Array, ...]:
            """Nothing where the equations are not solved."""
            solved = stiffness(c, u, dt, steps=accuracy[0]) < _STIFFEST
            return self._expansion(x1, x0, dt, p, jnp.where(solved, u, jnp.nan), degree=2, accuracy=accuracy)

        guess, _ = _minimum(lambda u: at(u, _COARSE), jnp.zeros_like(x1))
        return _minimum(lambda u: at(u, (self.steps, _LEVELS)), guess)

    @property
    def _structure(self) -> AffineStructure:
        structure = affine_structure(self.sde)
        assert structure is not None  # checked when it was made
        return structure

    def _expansion(
        self, x1: State, x0: State, dt: Scalar, p: Parameters, u: State, *, degree: int, accuracy: tuple[int, int]
    ) -> tuple[Array, ...]:
        """K(u) - u' x1 and its derivatives up to `degree`."""
        structure, (steps, levels) = self._structure, accuracy
        c = coefficients(self.sde, structure.reference, p)
        jet = cumulants(structure, c, u, x0, dt, degree=degree, steps=steps, levels=levels)
        value, slope, *higher = (derivatives(jet, order, len(u)) for order in range(degree + 1))
        distance = x1 - jnp.array(structure.reference)
        return (value - u @ distance, slope - distance, *higher)


class _Search(NamedTuple):
    u: State
    value: Scalar
    step: State
    decrement: Scalar
    scale: Scalar
    tries: Scalar


def _minimum(expansion: Callable[[State], tuple[Array, ...]], start: State) -> tuple[State, Bool[Array, ""]]:
    """The minimum of a convex function that is infinite outside some domain, and whether it was reached.

    Newton's method; a step is shortened until the function is finite, convex and lower there, first to the length that stays in
    the domain of any self-concordant function (Nesterov and Nemirovskii 1994). A start where it is not finite is drawn towards
    0, where it always is. Each round of the loop looks at one point.
    """

    def going_on(state: _Search) -> Bool[Array, ""]:
        return (state.decrement > _CLOSE) & (state.scale > _LEAST) & (state.tries < _MOST)

    def move(state: _Search) -> _Search:
        new, sound = _newton(expansion, state.u + state.scale * state.step)
        margin = _ROUNDING * (1 + jnp.abs(new.value)) - 1e-4 * state.scale * state.decrement
        started = state.value < jnp.inf
        accepted = sound & (~started | (new.value <= state.value + margin))
        nearer = jnp.where(started, state.u, _SHORTER * state.u)
        scale = jnp.minimum(_SHORTER * state.scale, 1 / (1 + jnp.sqrt(state.decrement)))
        shorter = state._replace(u=nearer, scale=jnp.where(started, scale, state.scale))
        chosen = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, shorter)
        return chosen._replace(tries=state.tries + 1)

    one, far = jnp.ones(()), jnp.array(jnp.inf)
    state = _Search(start, far, jnp.zeros_like(start), far, one, 0 * one)
    end = jax.lax.while_loop(going_on, move, jax.lax.stop_gradient(state))
    return end.u, end.decrement <= _CLOSE


def _newton(expansion: Callable[[State], tuple[Array, ...]], u: State) -> tuple[_Search, Bool[Array, ""]]:
    """Newton's step at u, and whether the function is finite and convex there."""
    value, slope, curvature = jax.lax.stop_gradient(expansion(u))
    convex = jnp.all(jnp.diagonal(cholesky(curvature)) > 0)
    step = -_solve(curvature, slope)
    decrement = -slope @ step
    one = jnp.ones(())
    return _Search(u, value, step, decrement, one, 0 * one), convex & jnp.isfinite(value) & jnp.isfinite(decrement)


def _factor(H: Matrix) -> tuple[Matrix, list[Scalar]]:
    L = cholesky(H)
    return L, [jnp.where(L[i, i] > 0, L[i, i], 1.0) for i in range(len(H))]


def _solve(H: Matrix, b: State) -> State:
    """H^-1 b for a few rows, unrolled."""
    (L, pivots), n = _factor(H), len(b)
    y: list[Scalar] = []
    for i in range(n):
        y.append((b[i] - sum(L[i, j] * y[j] for j in range(i))) / pivots[i])
    x: dict[int, Scalar] = {}
    for i in reversed(range(n)):
        x[i] = (y[i] - sum(L[j, i] * x[j] for j in range(i + 1, n))) / pivots[i]
    return jnp.stack([x[i] for i in range(n)])


def _log_determinant(H: Matrix) -> Scalar:
    return 2 * jnp.sum(jnp.log(jnp.stack(_factor(H)[1])))


def _correction(H: Matrix, third: Float[Array, "d d d"], fourth: Float[Array, "d d d d"]) -> Scalar:
    G = jax.vmap(lambda e: _solve(H, e))(jnp.eye(len(H)))
    rho4 = jnp.sum(jnp.tensordot(fourth, G) * G)
    traced = jnp.tensordot(third, G)
    raised = jnp.einsum("lmn,il,jm,kn->ijk", third, G, G, G, optimize="optimal")
    return (3 * rho4 - 3 * traced @ G @ traced - 2 * jnp.sum(third * raised)) / 24

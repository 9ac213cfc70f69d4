"""The Fokker-Planck operator L*, paper equation (5), in density form and in log form.

Density form, as the divergence of the probability flux:

    L* q = -div J,     J = b q - (1/2) div(Sigma q)

Log form, for l = log q, which neither underflows in the tails nor needs the density itself:

    (L* q)/q = -div b + (1/2) d_i d_j Sigma_ij + (d_j Sigma_ij - b_i) d_i l + (1/2) Sigma_ij (d_i d_j l + d_i l d_j l)

Both come from drift and covariance by automatic differentiation; nothing is derived by hand for a model. All functions are
unbatched and pure JAX: use `jax.vmap` at the edge.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from fokkerflow.fokker_planck.flux import flux
from fokkerflow.sde.model import SDE, Matrix, Parameters, Scalar, State


class Coefficients(eqx.Module):
    """What the log form needs of the SDE at one point: independent of the density, so a trainer computes it once per batch.

    **Attributes:** the terms above that multiply second, first and no derivatives of log q.
    """

    second: Matrix
    first: State
    zeroth: Scalar


def coefficients(sde: SDE, t: Scalar, x: State, p: Parameters) -> Coefficients:
    """The coefficients of the log form at a point: Sigma, div Sigma - b, and (1/2) div div Sigma - div b."""
    drift, drift_jacobian = sde.drift(t, x, p), jax.jacfwd(sde.drift, argnums=1)(t, x, p)
    sigma, sigma_jacobian = sde.covariance(t, x, p), jax.jacfwd(sde.covariance, argnums=1)(t, x, p)
    sigma_hessian = jax.jacfwd(jax.jacfwd(sde.covariance, argnums=1), argnums=1)(t, x, p)
    return Coefficients(
        second=sigma,
        first=jnp.einsum("ijj->i", sigma_jacobian) - drift,
        zeroth=0.5 * jnp.einsum("ijij->", sigma_hessian) - jnp.trace(drift_jacobian),
    )


def log_adjoint(log_density: Callable[[State], Scalar], at: Coefficients, x: State) -> Scalar:
    """(L* q)/q at `x` for ``q = exp(log_density)``, given the SDE's coefficients there.

    The second derivatives enter only through tr(Sigma H) = sum_i (d/de_i)(d/dSigma_i) l, so d nested directional derivatives
    suffice: forward mode throughout, no Hessian, and Sigma may be singular.
    """

    def along(direction: State, column: State) -> tuple[Scalar, Scalar]:
        def slope(z: State) -> Scalar:
            return jax.jvp(log_density, (z,), (direction,))[1]

        return jax.jvp(slope, (x,), (column,))

    gradient, curvature = jax.vmap(along)(jnp.eye(len(x), dtype=x.dtype), at.second)
    return at.zeroth + at.first @ gradient + 0.5 * (jnp.sum(curvature) + gradient @ at.second @ gradient)


def log_residual(
    log_density: Callable[[Scalar, State], Scalar], sde: SDE, t0: Scalar, tau: Scalar, x: State, p: Parameters
) -> Scalar:
    """``d/dtau log q - (L* q)/q`` at elapsed time `tau`: zero for the transition density of `sde` started at time `t0`.

    **Arguments:**

    - `log_density`: log q as a function of ``(tau, x)``.
    """
    rate = jax.jvp(lambda s: log_density(s, x), (tau,), (jnp.ones_like(tau),))[1]
    at = coefficients(sde, t0 + tau, x, p)
    return rate - log_adjoint(lambda z: log_density(tau, z), at, x)


def adjoint(density: Callable[[State], Scalar], sde: SDE, t: Scalar, x: State, p: Parameters) -> Scalar:
    """L* q at `x`, in density form: minus the divergence of the flux."""
    return -jnp.trace(jax.jacfwd(lambda z: flux(density, sde, t, z, p))(x))

"""Gaussian closure of the moment equations for models that have no closed system: sigma points and Runge-Kutta.

    dm/dt = E b        dC/dt = E[Db] C + C E[Db]' + E Sigma        expectations over X ~ N(m, C)

The expectations are third-degree cubature (Arasaratnam and Haykin 2009): 2d points m +- sqrt(d) L e_i with LL' = C, equal
weights. Unlike a Taylor expansion around the mean it stays bounded for a cubic drift, and the average of positive
definite matrices is positive definite.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.sde.linalg import cholesky
from fokkerflow.sde.model import SDE, Matrix, Parameters, Scalar, State

_GRADE = 2  # step ends at dt (k / steps)^2: short steps first, where a far start relaxes
_SHARPNESS = 16  # how suddenly sigma points that approach the boundary are drawn in


def integrate_closure(
    sde: SDE, t0: Scalar | float, dt: Scalar | float, x0: State, p: Parameters, *, steps: int
) -> tuple[State, Matrix]:
    """Mean and covariance after `dt` by `steps` classical Runge-Kutta steps (order 4).

    32 steps give 1e-6 standard deviations for the shipped models at ordinary parameters. The steps are explicit: they are
    stable as long as the fastest mean reversion times `dt` is below 0.7 `steps`.
    """

    def rate(t: Scalar, m: State, C: Matrix) -> tuple[State, Matrix]:
        return _rate(sde, t, m, C, p)

    def step(state: tuple[State, Matrix], k: Array) -> tuple[tuple[State, Matrix], None]:
        m, C = state
        t, h = t0 + dt * k**_GRADE / steps**_GRADE, dt * ((k + 1) ** _GRADE - k**_GRADE) / steps**_GRADE
        m1, C1 = rate(t, m, C)
        m2, C2 = rate(t + h / 2, m + h / 2 * m1, C + h / 2 * C1)
        m3, C3 = rate(t + h / 2, m + h / 2 * m2, C + h / 2 * C2)
        m4, C4 = rate(t + h, m + h * m3, C + h * C3)
        return (m + h / 6 * (m1 + 2 * m2 + 2 * m3 + m4), C + h / 6 * (C1 + 2 * C2 + 2 * C3 + C4)), None

    d = sde.dimension
    return jax.lax.scan(step, (x0, jnp.zeros((d, d))), jnp.arange(float(steps)))[0]


def _rate(sde: SDE, t: Scalar, m: State, C: Matrix, p: Parameters) -> tuple[State, Matrix]:
    points = _sigma_points(sde, m, C)
    drift, slope, noise = (
        jnp.mean(values, axis=0)
        for values in jax.vmap(
            lambda x: (sde.drift(t, x, p), jax.jacfwd(lambda y: sde.drift(t, y, p))(x), sde.covariance(t, x, p))
        )(points)
    )
    flow = slope @ C
    return drift, flow + flow.T + noise


def _sigma_points(sde: SDE, m: State, C: Matrix) -> Float[Array, "2*d d"]:
    """m +- deviations; a pair that would leave the domain is drawn in, symmetrically, so that the mean is kept."""
    deviations = np.sqrt(len(m)) * cholesky(C).T
    crowding = jnp.zeros(len(m))
    for i, domain in enumerate(sde.domains):
        for end in (domain.lower, domain.upper):
            if np.isfinite(end):
                crowding += (deviations[:, i] / (m[i] - end)) ** _SHARPNESS
    deviations *= (1 + crowding)[:, None] ** (-1 / _SHARPNESS)
    return jnp.concatenate([m + deviations, m - deviations])

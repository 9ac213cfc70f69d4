"""Mean and covariance of the transition law of any SDE (the anchor of the flow): exact where a closed system exists,
a Gaussian closure otherwise.

    dm/dt = E b(t, X)        dC/dt = E[Db] C + C E[Db]' + E Sigma(t, X)        m(0) = x0,  C(0) = 0
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow._precision import differentiable_in_float64
from fokkerflow.sde.closure import integrate_closure
from fokkerflow.sde.model import SDE, Matrix, Parameters, Scalar, State
from fokkerflow.sde.polynomial import polynomial_moments, polynomial_structure
from fokkerflow.sde.validation import check_parameters, check_state, is_traced, parameter_vector, state_vector


class MomentsError(RuntimeError):
    """Moments that the numerical closure could not find."""


def moments(sde: SDE, t0: Any, dt: Any, x0: Any, p: Any, *, steps: int = 32) -> tuple[State, Matrix]:
    """Mean and covariance of X_{t0+dt} given X_{t0} = x0.

    If the drift is affine and the covariance at most quadratic in the state (OU, geometric Brownian motion, CIR, Heston, BDFS,
    Jacobi, and any model of a user's with that structure), the moment equations close and the result is exact up to rounding,
    by one matrix exponential that depends on `dt` and `p` only: under ``jax.vmap`` over `x0` it is computed once.
    Otherwise they are closed by a Gaussian law and integrated numerically; see `fokkerflow.sde.closure`.

    **Arguments:**

    - `sde`: the model.
    - `t0`: the time of `x0`; it matters for non-autonomous models only.
    - `dt`: the time ahead, positive.
    - `x0`: the state that it starts from, of shape ``(d,)``, inside the domain.
    - `p`: parameters in model order, of shape ``(n,)``, or a mapping by name.
    - `steps`: Runge-Kutta steps of the numerical closure; without effect when the moments are exact.

    **Returns:** the mean ``(d,)`` and the covariance ``(d, d)``, symmetric and positive definite. Differentiable in `t0`, `dt`,
    `x0` and `p`, in both modes.

    **Raises:** ValueError naming the culprit for wrong shapes, ``dt <= 0``, `x0` outside the domain or parameters that break a
    constraint, and `MomentsError` if the numerical closure is unstable. Values that are being traced by JAX cannot raise.

    ```python
    mean, covariance = moments(Heston(), 0.0, 0.5, jnp.array([0.1, 0.0]), jnp.array([0.1, 3.0, 0.25, 0.05, -0.8]))
    ```
    """
    x0, p = state_vector(sde, x0, "x0"), parameter_vector(sde, p)
    _check(sde, dt, x0, p)
    mean, covariance = _moments(sde, steps, t0, dt, x0, p)
    if not is_traced(mean, covariance) and not _is_sound(mean, covariance):
        raise MomentsError(
            f"{sde.label}: the moment closure is unstable over dt = {dt:g} with {steps} steps; increase steps. "
            "It takes about 1.5 dt times the fastest rate of mean reversion."
        )
    return mean, covariance


def _check(sde: SDE, dt: Any, x0: Any, p: Any) -> None:
    for value, ndim, what in ((dt, 0, "dt"), (x0, 1, "x0"), (p, 1, "p")):
        if jnp.ndim(value) != ndim:
            raise ValueError(f"{what} has shape {jnp.shape(value)}: moments takes one transition. Use jax.vmap for many.")
    if not is_traced(dt) and not (float(dt) > 0 and math.isfinite(dt)):
        raise ValueError(f"{sde.label}: got dt = {float(dt):g}, expected a positive, finite time.")
    if not is_traced(x0):
        check_state(sde, np.asarray(x0), "x0")
    if not is_traced(p):
        check_parameters(sde, np.asarray(p))


def _is_sound(mean: State, covariance: Matrix) -> bool:
    return bool(np.all(np.isfinite(mean)) and np.all(np.isfinite(covariance)) and np.all(np.diag(covariance) > 0))


@differentiable_in_float64
@partial(jax.jit, static_argnums=(0, 1))
def _moments(sde: SDE, steps: int, t0: Scalar | float, dt: Scalar | float, x0: State, p: Parameters) -> tuple[State, Matrix]:
    structure = polynomial_structure(sde)
    if structure is not None:
        return polynomial_moments(sde, structure, dt, x0, p)
    return integrate_closure(sde, t0, dt, x0, p, steps=steps)

"""Mean and covariance of the transition law of any SDE (the anchor of the flow): exact where a closed system exists,
a Gaussian closure otherwise.

    dm/dt = E b(t, X)        dC/dt = E[Db] C + C E[Db]' + E Sigma(t, X)        m(0) = x0,  C(0) = 0
"""

from __future__ import annotations

from fokkerflow._precision import in_float64
from fokkerflow.sde.closure import integrate_closure
from fokkerflow.sde.model import SDE, Matrix, Parameters, Scalar, State
from fokkerflow.sde.polynomial import polynomial_moments, polynomial_structure


@in_float64
def moments(
    sde: SDE, t0: Scalar | float, dt: Scalar | float, x0: State, p: Parameters, *, steps: int = 32
) -> tuple[State, Matrix]:
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
    - `p`: parameters in model order, of shape ``(n,)``.
    - `steps`: Runge-Kutta steps of the numerical closure; without effect when the moments are exact.

    **Returns:** the mean ``(d,)`` and the covariance ``(d, d)``, symmetric and positive definite. Differentiable in `t0`, `dt`,
    `x0` and `p`, in both modes.

    ```python
    mean, covariance = moments(Heston(), 0.0, 0.5, jnp.array([0.1, 0.0]), jnp.array([0.1, 3.0, 0.25, 0.05, -0.8]))
    ```
    """
    structure = polynomial_structure(sde)
    if structure is not None:
        return polynomial_moments(sde, structure, dt, x0, p)
    return integrate_closure(sde, t0, dt, x0, p, steps=steps)

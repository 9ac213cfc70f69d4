"""The space-time residual of the Fokker-Planck equation, and the points where it is looked at.

    r = tau * ( d/dtau log q - (L* q)/q )

The factor tau makes residuals of all gaps comparable: it is the derivative with respect to log tau.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.flow import Condition, Flow, approximate_draw
from fokkerflow.fokker_planck import Coefficients, coefficients, log_adjoint
from fokkerflow.sde.model import Parameters, Scalar, State


class Point(NamedTuple):
    """A point where the residual is looked at, with all that it needs and that does not depend on the weights.

    **Attributes:** elapsed time, state, the flow's condition there and its derivative in tau, and the coefficients of the
    log form at (t0 + tau, x, p).
    """

    tau: Scalar
    x: State
    condition: Condition
    condition_rate: Condition
    at: Coefficients


def collocation_point(
    flow: Flow, t0: Scalar, tau: Scalar, x0: State, p: Parameters, base: Float[Array, " k"], spread: Float[Array, " d"]
) -> Point:
    """The point that the flow puts at `base` in the unit cube; `spread` widens its first mixtures, to reach the tails."""
    condition, rate = jax.jvp(lambda s: flow.condition(t0, s, x0, p), (tau,), (jnp.ones_like(tau),))
    x = approximate_draw(flow, base, condition, spread=spread)
    return Point(tau, x, condition, rate, coefficients(flow.sde, t0 + tau, x, p))


def residual(flow: Flow, point: Point) -> Scalar:
    """r at a point. Differentiable in the weights of the flow; everything else is held fixed."""
    speed = jax.jvp(lambda c: flow.log_density(point.x, c), (point.condition,), (point.condition_rate,))[1]
    return point.tau * (speed - log_adjoint(lambda x: flow.log_density(x, point.condition), point.at, point.x))

"""The least squares of Neural Galerkin, paper section 3.1: its points, right-hand side and weights at one theta and tau.

At a point x drawn from the flow, theta_dot = zeta should make

    density form      grad_theta q . zeta      =  L* q - d/dtau q
    log form          grad_theta log q . zeta  =  (L* q)/q - d/dtau log q

where d/dtau is at fixed theta: zero for the paper's flow, the motion of the anchor for an anchored one. A row of the density
form is q times a row of the log form, so both are kept as rows of log q with a weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.flow import Flow, approximate_draw, exact_draw, weights
from fokkerflow.fokker_planck import coefficients, log_adjoint
from fokkerflow.sde.model import Parameters, Scalar, State
from fokkerflow.training.collocation import Conditions, dealt
from fokkerflow.training.least_squares import robust_weights
from fokkerflow.training.residual import Point
from fokkerflow.training.theta_path import Theta

FORMS = ("density", "log")
DRAWS = ("approximate", "exact")


class Places(NamedTuple):
    """Where a step looks at the equation: starts, parameters, and states drawn from the flow at the beginning of the step.

    All stages of the step and its error estimate share them. If states were redrawn at every stage, the estimate would measure
    the noise of sampling.
    """

    t0: Float[Array, " n"]
    x0: Float[Array, "n d"]
    p: Float[Array, "n n_p"]
    x: Float[Array, "n d"]


class Rows(NamedTuple):
    """The least squares ``sum_i w_i^2 (grad_theta log q(x_i) . zeta - f_i)^2``; solvers take the gradients."""

    points: Point
    targets: Float[Array, " n"]
    weights: Float[Array, " n"]

    def and_also(self, other: Rows) -> Rows:
        """Both sets of rows."""
        return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), self, other)


def draw_places(flow: Flow, tau: Scalar, conditions: Conditions, draws: str, spreads: Float[Array, " s"]) -> Places:
    """A state drawn from the flow at `tau` for each condition: by the approximate sampler of Algorithm 2, or exactly.

    `spreads` are factors on the widths of approximate draws, dealt out in turn. The gaps of the conditions are not used.
    """
    each = dealt(spreads, conditions.tau.shape[0], flow.sde.dimension)

    def draw(t0: Scalar, x0: State, p: Parameters, base: Float[Array, " k"], spread: Float[Array, " d"]) -> State:
        condition = flow.condition(t0, tau, x0, p)
        if draws == "exact":
            return exact_draw(flow, base[: x0.size], condition)
        return approximate_draw(flow, base, condition, spread=spread)

    t0, x0, p, base = map(jnp.asarray, (conditions.t0, conditions.x0, conditions.p, conditions.base))
    return Places(t0, x0, p, jax.vmap(draw)(t0, x0, p, base, each))


def points_at(flow: Flow, tau: Scalar, places: Places) -> Point:
    """All that rows need at `tau` and that does not depend on the weights."""

    def point(t0: Scalar, x0: State, p: Parameters, x: State) -> Point:
        condition, rate = jax.jvp(lambda s: flow.condition(t0, s, x0, p), (tau,), (jnp.ones_like(tau),))
        return Point(tau, x, condition, rate, coefficients(flow.sde, t0 + tau, x, p))

    return jax.vmap(point)(*places)


def speed(flow: Flow, point: Point) -> Scalar:
    """d/dtau log q at fixed theta."""
    return jax.jvp(lambda c: flow.log_density(point.x, c), (point.condition,), (point.condition_rate,))[1]


def target(flow: Flow, point: Point) -> Scalar:
    """(L* q)/q - d/dtau log q: what theta_dot has to bring about."""
    return log_adjoint(lambda x: flow.log_density(x, point.condition), point.at, point.x) - speed(flow, point)


def interior_rows(flow: Flow, tau: Scalar, places: Places, form: str, cutoff: float | None) -> Rows:
    """The rows of the residual. One that is not finite has weight zero.

    **Arguments:**

    - `form`: "density" weights a row by q, relative to its largest value in the batch. The common factor changes neither the
      minimiser nor a damping that is relative to the system, and nothing overflows or underflows that is not negligible.
    - `cutoff`: right-hand sides beyond this many medians are weighted down; None for the paper's plain squares.
    """
    points = points_at(flow, tau, places)
    targets = jax.vmap(lambda point: target(flow, point))(points)
    usable = jnp.isfinite(targets)
    targets = jnp.where(usable, targets, 0.0)
    w = usable / jnp.sqrt(1.0 * targets.size)
    if cutoff is not None:
        w = w * robust_weights(targets, cutoff, 1.0)
    if form == "density":
        log_q = jnp.where(usable, log_densities(flow, points), -jnp.inf)
        w = w * jnp.exp(log_q - jnp.max(log_q))
    return Rows(points, targets, w)


def log_densities(flow: Flow, points: Point) -> Float[Array, " n"]:
    """log q at every point."""
    return jax.vmap(lambda point: flow.log_density(point.x, point.condition))(points)


def log_densities_of_theta(flow: Flow, points: Point) -> Callable[[Theta], Float[Array, " n"]]:
    """log q at every point as a function of the weights."""
    _, with_weights = weights(flow)
    return lambda theta: log_densities(with_weights(theta), points)

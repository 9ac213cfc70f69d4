"""Space-time Gauss-Newton: one theta for all gaps, fitted to the Fokker-Planck equation at fresh points every iteration.

Levenberg-Marquardt on the residual of `fokkerflow.training.residual`, with the memory of `fokkerflow.training.least_squares`.
No error accumulates in time, and the start is exact by the construction of the anchored flow.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.flow import Flow, weights
from fokkerflow.training.collocation import Conditions, points
from fokkerflow.training.least_squares import Memory, Theta, forget, gram, remember, robust_weights, step
from fokkerflow.training.residual import Point, residual


@dataclass(frozen=True)
class GaussNewton:
    """Settings of the trainer.

    **Arguments:**

    - `points`: collocation points of one iteration; two or more per weight is a good number.
    - `iterations`: how many.
    - `spreads`: factors on the widths of the flow's draws, for each coordinate all of them in equal shares. The wide ones teach
      the tails.
    - `memory`: how much of the past system is kept; less during the first iterations, when it is soon out of date, more during
      the last fifth.
    - `cutoff`: residuals beyond this many medians are weighted down.
    - `robustness`: how much. At 1 the influence of a large residual is bounded, which is best as long as the anchor has the
      mass in the right place. Where mass has to move between wells, its residual is large for good reason: then take 0.5.
    - `tail_depth`: residuals count as relative errors of log q beyond this depth below the peak of the density: at depth D
      their weight is 1 / (1 + D / tail_depth). Infinite for none of that. In the tails the residual of a wrong width grows with
      log q itself, and without this either they rule the fit, or the cutoff takes all say from them.
    - `damping`: of Levenberg and Marquardt, at first.
    """

    points: int = 8000
    iterations: int = 60
    spreads: tuple[float, ...] = (1.0, 1.0, 1.0, 4.0)
    memory: float = 0.6
    cutoff: float = 15.0
    robustness: float = 1.0
    tail_depth: float = 5.0
    damping: float = 1e-2


_EARLY, _EARLY_MEMORY = 8, 0.3
_LATE, _LATE_MEMORY = 0.8, 0.85
_TRIES, _TRIES_WITH_MEMORY = 6, 3
_TOLERATED_RISE, _CLEAR_FALL = 1.02, 0.9
_DAMPING_UP, _DAMPING_DOWN, _DAMPING_GENTLY_DOWN, _LEAST_DAMPING = 4.0, 0.4, 0.7, 1e-7


class State(NamedTuple):
    """Where a run is: enough to go on as if it had never stopped."""

    theta: Theta
    memory: Memory
    damping: float
    iteration: int


class Info(NamedTuple):
    """What an iteration did.

    **Attributes:** median \\|r\\| over its points, mean weighted r^2 before and after the step, the damping used, whether
    the step was taken, and how many points were unusable (not finite).
    """

    iteration: int
    median: float
    before: float
    after: float
    damping: float
    accepted: bool
    unusable: int


def start(flow: Flow, settings: GaussNewton) -> State:
    theta, _ = weights(flow)
    return State(theta, forget(theta), settings.damping, 0)


def prepare(flow: Flow, settings: GaussNewton, state: State, conditions: Conditions) -> None:
    """Compile what `iterate` calls; the two large programs side by side, since each keeps the compiler busy on one core."""
    _, with_weights = weights(flow)
    at = points(with_weights(state.theta), conditions, jnp.array(settings.spreads))
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(_compile_loss, flow, state.theta, at)
        linearised(flow, state.theta, at, settings)
        other.result()


def iterate(flow: Flow, settings: GaussNewton, state: State, conditions: Conditions) -> tuple[State, Info]:
    """One iteration: look at the points of `conditions`, remember their system, step until the residual does not rise."""
    _, with_weights = weights(flow)
    at = points(with_weights(state.theta), conditions, jnp.array(settings.spreads))
    system = linearised(flow, state.theta, at, settings)
    n = settings.points
    normal, gradient = gram(system.jacobian) / n, np.asarray(system.jacobian).T @ np.asarray(system.residuals) / n
    memory = remember(state.memory, _fading(settings, state.iteration), normal, gradient, state.theta)
    damping, accepted, after = state.damping, False, np.inf
    theta = state.theta
    for attempt in range(_TRIES):
        if attempt == _TRIES_WITH_MEMORY:  # the past may be to blame
            memory = remember(forget(state.theta), 0.0, normal, gradient, state.theta)
        candidate = state.theta + step(memory, state.theta, damping)
        after = float(loss(flow, candidate, at, system.weights))
        if np.isfinite(after) and after < _TOLERATED_RISE * system.loss:
            theta, accepted = candidate, True
            break
        damping *= _DAMPING_UP
    used = damping
    if accepted:
        damping = max(damping * (_DAMPING_DOWN if after < _CLEAR_FALL * system.loss else _DAMPING_GENTLY_DOWN), _LEAST_DAMPING)
    info = Info(state.iteration, float(system.median), float(system.loss), after, used, accepted, int(system.unusable))
    return State(theta, memory, damping, state.iteration + 1), info


def _fading(settings: GaussNewton, iteration: int) -> float:
    """The memory of an iteration: short as long as theta moves far, long at the end, when only noise is left to average."""
    if iteration < _EARLY:
        return min(settings.memory, _EARLY_MEMORY)
    return settings.memory if iteration < _LATE * settings.iterations else max(settings.memory, _LATE_MEMORY)


class Linearised(NamedTuple):
    """The weighted residuals and Jacobian of a batch, and what is reported about it."""

    jacobian: Float[Array, "n m"]
    residuals: Float[Array, " n"]
    loss: Float[Array, ""]
    median: Float[Array, ""]
    weights: Float[Array, " n"]
    unusable: Array


def _residual_at(flow: Flow, theta: Theta, point: Point) -> Float[Array, ""]:
    _, with_weights = weights(flow)
    return residual(with_weights(theta), point)


@eqx.filter_jit
def linearised(flow: Flow, theta: Theta, at: Point, settings: GaussNewton) -> Linearised:
    """The system of a batch. A point whose residual or gradient is not finite has weight zero."""
    values, jacobian = jax.vmap(lambda point: jax.value_and_grad(lambda t: _residual_at(flow, t, point))(theta))(at)
    usable = jnp.isfinite(values) & jnp.all(jnp.isfinite(jacobian), axis=1)
    values = jnp.where(usable, values, 0.0)
    in_depth = 1 / (1 + jax.vmap(lambda point: _depth(flow, theta, point))(at) / settings.tail_depth)
    w = in_depth * robust_weights(values * in_depth, settings.cutoff, settings.robustness) * usable
    return Linearised(
        jacobian=jnp.where(usable[:, None], jacobian, 0.0) * w[:, None],
        residuals=values * w,
        loss=jnp.mean((values * w) ** 2),
        median=jnp.median(jnp.abs(values)),
        weights=w,
        unusable=values.size - jnp.sum(usable),
    )


def _depth(flow: Flow, theta: Theta, point: Point) -> Float[Array, ""]:
    """How far log q lies below the peak of the anchor's Gaussian, at least zero."""
    _, with_weights = weights(flow)
    at = point.condition
    log_scale = jnp.sum(jnp.log(at.sds)) + sum(r.log_residual for r in at.regressions if r is not None)
    peak = -log_scale - 0.5 * point.x.size * jnp.log(2 * jnp.pi)
    return jnp.maximum(peak - with_weights(theta).log_density(point.x, at), 0.0)


def _compile_loss(flow: Flow, theta: Theta, at: Point) -> None:
    program: Any = loss
    with jax.enable_x64(True):  # each thread has its own setting
        program.lower(flow, theta, at, jnp.ones_like(at.tau)).compile()


@eqx.filter_jit
def loss(flow: Flow, theta: Theta, at: Point, w: Float[Array, " n"]) -> Float[Array, ""]:
    """The mean weighted square of the residual elsewhere in theta, at the same points and weights."""
    values = jax.vmap(lambda point: _residual_at(flow, theta, point))(at)
    return jnp.mean(jnp.where(w > 0, values * w, 0.0) ** 2)

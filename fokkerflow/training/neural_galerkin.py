"""Neural Galerkin, the paper's Algorithm 1: theta moves in time, driven by the Fokker-Planck equation.

At every tau, theta_dot minimises the residual over points drawn from the flow itself (`galerkin_system`, `galerkin_solve`),
and theta is integrated by a Runge-Kutta pair of order 5(4) with adaptive steps. This file is the loop of the algorithm as a
state and one attempted step; `fokkerflow.training.fit` drives it, with progress and checkpoints.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from fokkerflow._precision import in_float64
from fokkerflow.flow import Flow, weights
from fokkerflow.training.boundary_flux import artificial_faces
from fokkerflow.training.collocation import Conditions, Gaps
from fokkerflow.training.errors import TrainingError
from fokkerflow.training.felt_weights import felt_weights
from fokkerflow.training.galerkin_settings import NeuralGalerkin
from fokkerflow.training.galerkin_step import Attempt, attempt_step, distance
from fokkerflow.training.theta_path import Theta, ThetaPath


class MarchError(TrainingError):
    """A march that cannot go on; the message says where it was and what to try."""


_ORDER = 5
_SAFETY, _SHORTEST, _LONGEST = 0.9, 0.2, 5.0
_PROPORTIONAL, _INTEGRAL = 0.2, 0.85  # of the stabilised controller (Hairer, Norsett and Wanner 1993, section II.4)
_LEAST_ERROR = 1e-3


class MarchState(NamedTuple):
    """Where a march is: arrays and numbers, enough to go on as if it had never stopped.

    **Attributes:**

    - `tau`, `theta`: now.
    - `step`, `last_error`: the next length to try, and the error of the last step as a share of the tolerance.
    - `refused`, `attempts`: attempts refused since the last step, and attempts altogether.
    - `felt`: numbers of the weights that the density depends on.
    - `taus`, `thetas`, `rates`: all steps so far, for `path_of`.
    """

    tau: float
    theta: Theta
    step: float
    last_error: float
    refused: int
    attempts: int
    felt: Int[np.ndarray, " c"]
    taus: Float[np.ndarray, " k"]
    thetas: Float[np.ndarray, "k m"]
    rates: Float[np.ndarray, "k m"]


class MarchInfo(NamedTuple):
    """What an attempted step did.

    **Attributes:** where it began and its length; whether it was accepted; its error as a share of the tolerance; root mean
    squares of the right-hand side and of what the least squares left of it, at the beginning; how many points were unusable.
    """

    tau: float
    step: float
    accepted: bool
    error: float
    target: float
    residual: float
    unusable: int


@in_float64
def march_start(flow: Flow, settings: NeuralGalerkin, gaps: Gaps) -> MarchState:
    """The state before the first step of a march to the longest of `gaps`."""
    if settings.zero_flux is not None:
        artificial_faces(flow)  # complains if there are none
    theta, _ = weights(flow)
    knot, tau = np.asarray(theta)[None], _begin(flow, settings, gaps)
    step, felt = settings.first_step * gaps.longest, felt_weights(flow)
    return MarchState(tau, theta, step, 1.0, 0, 0, felt, np.array([tau]), knot, np.zeros_like(knot))


def _begin(flow: Flow, settings: NeuralGalerkin, gaps: Gaps) -> float:
    """Where a march begins: at zero, or for an anchored flow, which has no width there, at the shortest gap."""
    anchored = flow.config.start.has_moments
    tau = (gaps.shortest if anchored else 0.0) if settings.tau0 is None else settings.tau0
    if not (tau > 0 if anchored else tau >= 0) or tau >= gaps.longest:
        least = "above 0, where an anchored flow has a width," if anchored else "0 or more"
        raise ValueError(f"Got tau0={tau:g}, expected a number {least} and below the longest gap, {gaps.longest:g}.")
    return tau


def finished(state: MarchState, dt_max: float) -> bool:
    return state.tau >= dt_max


@in_float64
def advance(
    flow: Flow, settings: NeuralGalerkin, state: MarchState, conditions: Conditions, dt_max: float
) -> tuple[MarchState, MarchInfo]:
    """One attempted step, at fresh conditions (`fokkerflow.training.sequence_for`; their gaps are not used).

    **Raises:** MarchError if too many attempts were refused, or if the least squares have no finite solution.
    """
    step = _clipped(state.step, dt_max - state.tau)
    now, length = jnp.asarray(state.tau, jnp.float64), jnp.asarray(step, jnp.float64)
    attempt = attempt_step(flow, settings, state.theta, now, length, conditions, jnp.asarray(state.felt))
    error = float(attempt.error) if np.isfinite(attempt.error) else math.inf
    info = MarchInfo(state.tau, step, error <= 1, error, float(attempt.target), float(attempt.residual), int(attempt.unusable))
    if not math.isfinite(info.residual):
        raise MarchError(
            f"Neural Galerkin cannot go on from tau = {info.tau:.4g}: its least squares have no finite solution. Try more "
            "damping, a cutoff, or a narrower law."
        )
    state = state._replace(attempts=state.attempts + 1)
    if not info.accepted:
        return _refuse(settings, state, info), info
    return _accept(state, info, attempt, dt_max), info


def path_of(state: MarchState) -> ThetaPath:
    """theta(tau) from the start to where a march is."""
    return ThetaPath(jnp.asarray(state.taus), jnp.asarray(state.thetas), jnp.asarray(state.rates))


def _clipped(step: float, remaining: float) -> float:
    """A step that ends at the end, and leaves no tiny one for the end."""
    if step >= remaining:
        return remaining
    return min(step, 0.5 * remaining)


def _accept(state: MarchState, info: MarchInfo, attempt: Attempt, dt_max: float) -> MarchState:
    error = max(info.error, _LEAST_ERROR)
    factor = _SAFETY * error ** (-_INTEGRAL / _ORDER) * state.last_error ** (_PROPORTIONAL / _ORDER)
    tau = dt_max if info.step == dt_max - info.tau else info.tau + info.step
    return state._replace(
        tau=tau,
        theta=attempt.theta,
        step=info.step * min(max(factor, _SHORTEST), 1.0 if state.refused else _LONGEST),
        last_error=error,
        refused=0,
        taus=np.append(state.taus, tau),
        thetas=np.concatenate([state.thetas, attempt.theta[None]]),
        rates=np.concatenate([state.rates[:-1], attempt.first_rate[None], attempt.last_rate[None]]),
    )


def _refuse(settings: NeuralGalerkin, state: MarchState, info: MarchInfo) -> MarchState:
    refused = state.refused + 1
    if refused > settings.max_refusals:
        raise MarchError(
            f"Neural Galerkin is stuck at tau = {info.tau:.4g}: {refused} attempts were refused in a row, the last one a step "
            f"of {info.step:.2g} with an error of {info.error:.2g} tolerances. Try more points, more damping, a cutoff, a "
            "wider start, or a narrower law."
        )
    shorter = _SHORTEST if math.isinf(info.error) else max(_SHORTEST, _SAFETY * info.error ** (-1 / _ORDER))
    return state._replace(step=info.step * shorter, refused=refused)


@in_float64
def dense_output_error(
    flow: Flow, settings: NeuralGalerkin, path: ThetaPath, felt: Int[np.ndarray, " c"], knot: int, conditions: Conditions
) -> float:
    """The error of the interpolant in the middle of a step, root mean square in log q over draws of the flow.

    Against a Runge-Kutta step of half the length from `knot`, at the same conditions as no step of the march.
    """
    tau, half = path.taus[knot], 0.5 * (path.taus[knot + 1] - path.taus[knot])
    stepped = attempt_step(flow, settings, path.thetas[knot], tau, half, conditions, jnp.asarray(felt)).theta
    return float(distance(flow, stepped, path.theta(tau + half), tau + half, conditions))

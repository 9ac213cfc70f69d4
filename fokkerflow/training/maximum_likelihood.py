"""Neural likelihood estimation: the flow of the other trainers, fitted to simulated transitions by maximum likelihood.

The competing method (Papamakarios, Sterratt and Murray 2019, "Sequential neural likelihood", without the sequence): draw
starts, gaps and parameters from the training law, simulate a state at the end of each gap, and maximise

    E[ log q(X_tau | x0, tau, p; theta) ],

which is largest where q is the law of the simulation. It needs a simulator and no equation, and pays for that with noise: the
error of theta falls with the root of the number of simulations, where a residual is zero at the solution, point by point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from fokkerflow._precision import in_float64
from fokkerflow.flow import Flow, weights
from fokkerflow.flow.start import Condition
from fokkerflow.training.collocation import Conditions
from fokkerflow.training.simulated import Transitions, transitions
from fokkerflow.training.theta_path import Theta

_CLIP = 5.0
"""Longest gradient of a step: one state next to an inaccessible boundary must not decide where Adam goes."""
_REFUSALS = 20
"""Steps in a row whose gradient is not finite before the training gives up; until then such a step does nothing."""
_WARM_UP = 0.02
"""The share of the training in which the learning rate grows to its full size."""


@dataclass(frozen=True)
class MaximumLikelihood:
    """Settings of the trainer.

    **Arguments:**

    - `points`: transitions of one step.
    - `steps`: how many. A run of so many steps is reproducible.
    - `seconds`: stop after so much time instead, for comparisons at equal cost. Includes compilation; not reproducible.
    - `substeps`: Euler-Maruyama steps of each transition.
    - `bank`: how many transitions to simulate and then use again and again, a whole number of batches, for simulators that are
      expensive; 0 for fresh ones in every step, which cannot be learned by heart.
    - `rate`: of Adam (Kingma and Ba 2015), at its highest. It falls to zero like a cosine, so that the noise is averaged.
    """

    points: int = 1024
    steps: int = 10_000
    seconds: float | None = None
    substeps: int = 100
    bank: int = 0
    rate: float = 5e-3

    def __post_init__(self) -> None:
        for name in ("points", "steps", "substeps", "rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"MaximumLikelihood needs {name} > 0, got {getattr(self, name)}.")
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise ValueError(f"MaximumLikelihood needs seconds > 0 or None, got {self.seconds}.")
        if self.bank < 0 or self.bank % self.points:
            raise ValueError(
                f"MaximumLikelihood needs a bank of whole batches, 0 or a multiple of points = {self.points}, got {self.bank}."
            )

    def share(self, step: int, seconds: float) -> float:
        """How much of the training is done."""
        return step / self.steps if self.seconds is None else min(seconds / self.seconds, 1.0)


class State(NamedTuple):
    """Where a training is: enough to go on as if it had never stopped.

    **Attributes:** the weights; Adam's moments; steps done and seconds spent; the bank, of zero length without one.
    """

    theta: Theta
    adam: Any
    step: int
    seconds: float
    bank: Transitions


@in_float64
def start(flow: Flow, settings: MaximumLikelihood) -> State:
    """The state before the first step."""
    theta, _ = weights(flow)
    one, state, p = (jnp.zeros((settings.bank, *s)) for s in ((), (flow.sde.dimension,), (len(flow.sde.parameters),)))
    bank = Transitions(t0=one, tau=one, x0=state, p=p, x1=state)
    return State(theta, _OPTIMISER.init(theta), 0, 0.0, bank)


@in_float64
def advance(
    flow: Flow, settings: MaximumLikelihood, state: State, conditions: Conditions, seed: int, share: float
) -> tuple[State, float]:
    """One step, and its loss before it; see `depths`. `share` of the training is done, which decides the learning rate.

    `conditions` are used as long as there is something to simulate: always, or until the bank is full. The noise is that of
    the seed and the step.
    """
    batch, bank = batch_of(flow, settings, state, conditions, seed)
    theta, adam, loss = _update(flow, state.theta, state.adam, batch, jnp.asarray(settings.rate * rate_shape(share)))
    return State(theta, adam, state.step + 1, state.seconds, bank), float(loss)


def batch_of(
    flow: Flow, settings: MaximumLikelihood, state: State, conditions: Conditions, seed: int
) -> tuple[Transitions, Transitions]:
    """The transitions of a step, and the bank, with them in it if it is not full yet."""
    n, first = settings.points, state.step * settings.points
    if first >= settings.bank > 0:
        chosen = _shuffled(settings.bank, seed, first // settings.bank)[first % settings.bank :][:n]
        return Transitions(*(part[chosen] for part in state.bank)), state.bank
    key = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), state.step)
    batch = transitions(key, flow.sde, conditions, substeps=settings.substeps)
    if not settings.bank:
        return batch, state.bank
    return batch, Transitions(*(part.at[first : first + n].set(new) for part, new in zip(state.bank, batch, strict=True)))


def _shuffled(n: int, seed: int, epoch: int) -> np.ndarray:
    """The order in which a pass through the bank takes its transitions."""
    return np.random.default_rng([seed, epoch]).permutation(n)


def rate_shape(share: float) -> float:
    """The learning rate as a share of its highest: a short linear rise, then half a cosine down to zero."""
    if share < _WARM_UP:
        return (share + 1e-3) / (_WARM_UP + 1e-3)
    return 0.5 * (1 + math.cos(math.pi * (share - _WARM_UP) / (1 - _WARM_UP)))


_OPTIMISER = optax.apply_if_finite(optax.chain(optax.clip_by_global_norm(_CLIP), optax.scale_by_adam()), _REFUSALS)


@eqx.filter_jit
def _update(flow: Flow, theta: Theta, adam: Any, batch: Transitions, rate: Array) -> tuple[Theta, Any, Array]:
    loss, gradient = jax.value_and_grad(lambda t: jnp.mean(depths(flow, t, batch)))(theta)
    step, adam = _OPTIMISER.update(gradient, adam, theta)
    return theta - rate * step, adam, loss


def depths(flow: Flow, theta: Theta, batch: Transitions) -> Float[Array, " n"]:
    """How far log q lies below the peak of the Gaussian of the moments, at each transition.

    That is -log q but for a term without theta, which makes narrow and wide densities comparable: the mean is near half of the
    dimension, and exactly that where the law is Gaussian and q is right.
    """
    _, with_weights = weights(flow)
    q = with_weights(theta)

    def depth(one: Transitions) -> Array:
        at = flow.condition(one.t0, one.tau, one.x0, one.p)
        return _log_peak(at) - q.log_density(one.x1, at)

    return jax.vmap(depth)(batch)


def _log_peak(at: Condition) -> Array:
    """The logarithm of the peak of the Gaussian of the moments."""
    log_scale = jnp.sum(jnp.log(at.sds)) + sum(r.log_residual for r in at.regressions if r is not None)
    return -log_scale - 0.5 * at.sds.size * jnp.log(2 * jnp.pi)

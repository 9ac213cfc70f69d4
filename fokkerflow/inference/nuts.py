"""The No-U-Turn sampler with Stan's window adaptation of step size and dense metric, both from BlackJAX.

One step function serves warm-up and sampling, so the gradient of the likelihood is compiled once, and a run can be cut
anywhere. Hoffman and Gelman (2014); Betancourt (2017) for the multinomial variant; the schedule is Stan's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.mass_matrix import mass_matrix_adaptation
from blackjax.adaptation.step_size import dual_averaging_adaptation
from blackjax.adaptation.window_adaptation import build_schedule
from blackjax.mcmc.hmc import HMCState
from jaxtyping import Array, Float, PRNGKeyArray

from fokkerflow.inference.target import UNCONSTRAINED, Frame, Target, value_and_gradient

_FAST, _SLOW, _SAMPLING = 0, 1, 2


class NutsState(NamedTuple):
    """Position, and what adapts: dual averaging, the accumulated covariance, step size and inverse mass matrix."""

    chain: Any
    averaging: Any
    metric: Any
    step_size: Any
    inverse_mass: Any


class Nuts(eqx.Module):
    """NUTS in the coordinates of a `Frame`, where the posterior is roughly standard normal from the start.

    **Arguments:**

    - `acceptance`: the mean acceptance that the step size is adapted to; closer to 1 means smaller steps. The default is the
      optimum of Beskos et al. (2013). Stan's 0.8 takes more gradients for hardly more effective draws in the coordinates of
      a frame. Divergences ask for more.
    - `doublings`: a trajectory has at most two to the power of this many steps.
    """

    acceptance: float = eqx.field(static=True, default=0.65)
    doublings: int = eqx.field(static=True, default=10)

    name = "nuts"

    def plan(self, warmup: int, steps: int) -> Any:
        """For each step: its stage, whether it ends a window, and whether it is the last of the warm-up."""
        schedule = np.array(build_schedule(warmup), dtype=int).reshape(-1, 2) if warmup else np.empty((0, 2), int)
        stage, ends = np.full(steps, _SAMPLING), np.zeros(steps, bool)
        stage[:warmup], ends[:warmup] = schedule[:steps, 0], schedule[:steps, 1]
        return stage, ends, np.arange(steps) == warmup - 1

    def blank(self, n: int) -> NutsState:
        chain = HMCState(jnp.zeros(n), jnp.zeros(()), jnp.zeros(n))
        averaging = dual_averaging_adaptation(self.acceptance)[0](jnp.ones(()))
        metric = mass_matrix_adaptation(is_diagonal_matrix=False)[0](n)
        return NutsState(chain, averaging, metric, jnp.ones(()), metric.inverse_mass_matrix)

    def start(self, target: Target, frame: Frame, z: Float[Array, " n"]) -> NutsState:
        # The function that found the peak is compiled already; BlackJAX's own start would compile another gradient.
        value, slope = value_and_gradient(target, UNCONSTRAINED, frame.unconstrained(z))
        return self.blank(z.shape[0])._replace(chain=HMCState(z, value, frame.scale.T @ slope))

    def step(
        self, target: Target, frame: Frame, state: NutsState, key: PRNGKeyArray, plan: Any
    ) -> tuple[NutsState, dict[str, Any]]:
        kernel = blackjax.nuts.build_kernel()
        chain, info = kernel(
            key,
            state.chain,
            _log_density(target, frame),
            state.step_size,
            state.inverse_mass,
            max_num_doublings=self.doublings,
        )
        p, jacobian = target.prior.transform.parameters(frame.unconstrained(chain.position))
        draw = {
            "p": p,
            "lp": chain.logdensity - jacobian,
            "diverging": info.is_divergent,
            "acceptance_rate": info.acceptance_rate,
            "n_steps": info.num_integration_steps,
            "tree_depth": info.num_trajectory_expansions,
            "energy": info.energy,
            "step_size": state.step_size,
        }
        return self._adapted(state._replace(chain=chain), info.acceptance_rate, *plan), draw

    def _adapted(self, state: NutsState, acceptance: Any, stage: Any, ends: Any, last: Any) -> NutsState:
        """Dual averaging during warm-up, covariances in its slow windows; afterwards nothing changes."""
        restart, update, final = dual_averaging_adaptation(self.acceptance)
        _, gather, close = mass_matrix_adaptation(is_diagonal_matrix=False)
        averaging = update(state.averaging, acceptance)
        metric = _choose(stage == _SLOW, gather(state.metric, state.chain.position), state.metric)
        closed = close(metric)
        metric = _choose(ends, closed, metric)
        inverse_mass = jnp.where(ends, closed.inverse_mass_matrix, state.inverse_mass)
        averaging = _choose(ends, restart(final(averaging)), averaging)
        step_size = jnp.where(last, final(averaging), jnp.exp(averaging.log_step_size))
        adapted = NutsState(state.chain, averaging, metric, step_size, inverse_mass)
        return _choose(stage == _SAMPLING, state, adapted)


def _log_density(target: Target, frame: Frame) -> Callable[[Any], Any]:
    def log_density(z: Any) -> Any:
        parts = target.parts(frame.unconstrained(z))
        value = parts.likelihood + parts.prior + parts.jacobian
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    return log_density


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)

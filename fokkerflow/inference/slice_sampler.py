"""The paper's sampler: axis-aligned slice sampling with stepping out, one parameter after another.

Neal (2003), figures 3 and 5; from BlackJAX. It works on the parameters themselves: outside the constraint the density is
zero, so a slice ends there. No gradient is needed.
"""

from __future__ import annotations

from typing import Any

import blackjax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
from blackjax.mcmc.slice import SliceState, fixed_order, stepping_out
from jaxtyping import Array, Float, PRNGKeyArray

from fokkerflow.inference.target import POSTERIOR, Frame, Target, parameters, value_and_gradient


def start_of_slice(target: Target, u: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """Parameters and log posterior, by the function that found the peak, which is compiled already."""
    return parameters(target, u)[0], value_and_gradient(target, POSTERIOR, u)[0]


class Slice(eqx.Module):
    """Sweeps over the parameters in their order.

    **Arguments:**

    - `expansions`: a slice is stepped out at most this many times; its first width is three standard deviations of the
      Gaussian with the curvature of the peak.
    """

    expansions: int = eqx.field(static=True, default=10)

    name = "slice"

    def plan(self, warmup: int, steps: int) -> Any:
        """Nothing is adapted."""
        return (np.zeros(steps),)

    def blank(self, n: int) -> Any:
        return SliceState(jnp.zeros(n), jnp.zeros(()))

    def start(self, target: Target, frame: Frame, z: Float[Array, " n"]) -> Any:
        p, value = start_of_slice(target, frame.unconstrained(z))
        return SliceState(p, value)

    def step(self, target: Target, frame: Frame, state: Any, key: PRNGKeyArray, plan: Any) -> tuple[Any, dict[str, Any]]:
        kernel = blackjax.coordinate_slice.build_kernel(
            interval=stepping_out,
            coordinate_order=fixed_order,
            initial_widths=frame.widths,
            max_expansions=self.expansions,
        )
        state, info = kernel(key, state, target.log_posterior)
        draw = {
            "p": state.position,
            "lp": state.logdensity,
            "n_expansions": info.num_expansions,
            "n_shrink": info.num_shrink,
        }
        return state, draw

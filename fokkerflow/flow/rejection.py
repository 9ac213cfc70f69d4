"""Exact draws by accept and reject, the paper's last remark (appendix F): a cheap draft, verified by the full flow.

The draft is the flow cut after its first mixture layer, where drawing one component and inverting it (Algorithm 2) is exact.
In each column the density of the flow is the density of the draft times

    prod_{l >= 3} 2 F_l'(x_l) * p_Z(u)  <=  prod_{l >= 3} 2 sum_k alpha_k max phi_k * max p_Z ,

a bound that holds everywhere, so that accepting with the ratio of the two sides is rigorous, and its acceptance rate is
the inverse of the bound. Algorithm 2 through *all* layers is no usable draft: its density is a sum over all paths through
components (7^4 for the paper's Heston flow), and its ratio to the flow has no bound. The paths begin with independent draws of
components, so a path of weight alpha spreads mass where the flow has almost none and misses where it has; and with the
Gamma reference either density can vanish at the boundary faster than the other.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fokkerflow._precision import in_float64
from fokkerflow.flow.column import Column
from fokkerflow.flow.flow import Flow
from fokkerflow.flow.interval import Point, from_line, unit_point
from fokkerflow.flow.quantile import component_point
from fokkerflow.flow.sampling import pick_component
from fokkerflow.flow.start import Condition
from fokkerflow.flow.truncated_mixture import mixture_cdf
from fokkerflow.sde.model import State


class RejectionDraws(NamedTuple):
    """Draws, and the share of proposals accepted in each column."""

    x: Float[Array, "n d"]
    acceptance_rates: Float[np.ndarray, " d"]


class _Attempt(NamedTuple):
    key: PRNGKeyArray
    point: Point
    proposals: Int[Array, ""]
    accepted: Bool[Array, ""]


@in_float64
def sample_by_rejection(
    key: PRNGKeyArray, flow: Flow, condition: Condition, n: int, *, max_proposals: int = 10_000
) -> RejectionDraws:
    """`n` independent exact draws given one condition.

    **Raises:** RuntimeError if some draw is not accepted within `max_proposals`, which happens when the layers after the first
    are narrow; `sample` then does it by root finding.
    """
    x, proposals, accepted = _draw_all(key, flow, condition, n, max_proposals)
    rates = n / np.sum(np.asarray(proposals), axis=0)
    failed = n - int(np.sum(np.all(np.asarray(accepted), axis=1)))
    if failed:
        raise RuntimeError(
            f"{failed} of {n} draws were not accepted within {max_proposals} proposals (acceptance rates {rates}). "
            "Raise max_proposals, or use sample(..., method='exact')."
        )
    return RejectionDraws(x, rates)


@eqx.filter_jit
def _draw_all(
    key: PRNGKeyArray, flow: Flow, condition: Condition, n: int, max_proposals: int
) -> tuple[Float[Array, "n d"], Int[Array, "n d"], Bool[Array, "n d"]]:
    def draw(key: PRNGKeyArray) -> tuple[State, Int[Array, " d"], Bool[Array, " d"]]:
        keys = jax.random.split(key, len(flow.config.coordinates))
        attempts: list[_Attempt] = []

        def invert(i: int, column: Column) -> Point:
            attempts.append(_until_accepted(keys[i], column, max_proposals))
            return attempts[-1].point

        x = flow.inverse_through(condition, invert)
        return x, jnp.stack([a.proposals for a in attempts]), jnp.stack([a.accepted for a in attempts])

    return jax.vmap(draw)(jax.random.split(key, n))


def _until_accepted(key: PRNGKeyArray, column: Column, max_proposals: int) -> _Attempt:
    bound = column.log_verify_bound()
    always = not column.deeper and column.reference.is_uniform

    def proceed(state: _Attempt) -> Bool[Array, ""]:
        return ~state.accepted & (state.proposals < max_proposals)

    def propose(state: _Attempt) -> _Attempt:
        key, own = jax.random.split(state.key)
        pick, position, test = jax.random.uniform(own, (3,), jnp.float64, minval=1e-300)
        point = component_point(column.first, pick_component(column.first, pick), unit_point(position), column.ends)
        if always:
            return _Attempt(key, point, state.proposals + 1, jnp.ones((), bool))
        log_ratio = column.log_verify(mixture_cdf(column.first, point, column.ends)) - bound
        return _Attempt(key, point, state.proposals + 1, jnp.log(test) < log_ratio)

    nowhere = from_line(jnp.zeros_like(column.first.means[0]), column.ends)
    start = _Attempt(key, nowhere, jnp.zeros((), int), jnp.zeros((), bool))
    return jax.lax.while_loop(proceed, propose, start)

"""Draws from the flow: the paper's Algorithm 2 (appendix F), approximate and exact.

Both exist as functions of a base point in the unit cube, so that quasi-random points can be pushed through the flow, and as
samplers that take a key.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fokkerflow._precision import in_float64
from fokkerflow.flow.column import Column
from fokkerflow.flow.flow import Flow
from fokkerflow.flow.interval import SYMMETRIC, Point, point_to_unit, unit_point
from fokkerflow.flow.quantile import component_point, mixture_point, reference_point
from fokkerflow.flow.start import Condition
from fokkerflow.flow.truncated_mixture import Mixture
from fokkerflow.sde.model import State

Scalar = Float[Array, ""]
Spread = float | Scalar | Float[Array, " d"]
_SMALLEST, _LARGEST = 1e-300, 1.0 - 2.0**-53


def base_dimension(flow: Flow) -> int:
    """Number of uniforms that `approximate_draw` takes: per column one for the reference law and one for each mixture."""
    return sum(1 + len(c.components) for c in flow.config.coordinates)


@in_float64
def approximate_draw(flow: Flow, base: Float[Array, " k"], condition: Condition, *, spread: Spread = 1.0) -> State:
    """Algorithm 2 with the approximate inverse: every layer is replaced by one of its components, drawn by weight.

    Exact if there is one mixture layer and the reference is uniform. With more layers it is not the law of the flow, but
    close to it, which is all that training points need.

    **Arguments:**

    - `flow`, `condition`: the density to draw from.
    - `base`: a point of the unit cube, of shape ``(base_dimension(flow),)``; for each column the uniform of the reference law,
      then those that pick a component, from the last layer to the first.
    - `spread`: factor on the widths of the first mixture, one for all coordinates or one for each, to place points further
      out than the density does.

    **Returns:** a state.
    """
    if base.shape != (base_dimension(flow),):
        raise ValueError(f"Got base of shape {base.shape}, expected ({base_dimension(flow)},): see base_dimension.")
    base = jnp.clip(base, _SMALLEST, _LARGEST)
    log_spread = jnp.log(jnp.broadcast_to(spread, (len(flow.config.coordinates),)))
    offsets = [0]
    for coordinate in flow.config.coordinates:
        offsets.append(offsets[-1] + 1 + len(coordinate.components))

    def invert(i: int, column: Column) -> Point:
        own = base[offsets[i] : offsets[i + 1]]
        u = reference_point(column.reference, column.reference_weight, unit_point(own[0]))
        for mixture, pick in zip(reversed(column.deeper), own[1:-1], strict=True):
            u = point_to_unit(component_point(mixture, pick_component(mixture, pick), u, SYMMETRIC))
        first = column.first._replace(log_widths=column.first.log_widths + log_spread[i])
        return component_point(first, pick_component(first, own[-1]), u, column.ends)

    return flow.inverse_through(condition, invert)


@in_float64
def exact_draw(flow: Flow, base: State, condition: Condition) -> State:
    """The inverse of `Flow.rosenblatt`, by safeguarded root finding in every layer: exact draws from uniform `base` (d,).

    Differentiable with respect to the weights, the condition and `base`, by the implicit function theorem.
    """
    if base.shape != (len(flow.config.coordinates),):
        raise ValueError(f"Got base of shape {base.shape}, expected ({len(flow.config.coordinates)},).")
    base = jnp.clip(base, _SMALLEST, _LARGEST)

    def invert(i: int, column: Column) -> Point:
        u = reference_point(column.reference, column.reference_weight, unit_point(base[i]))
        for mixture in reversed(column.deeper):
            u = point_to_unit(mixture_point(mixture, u, SYMMETRIC))
        return mixture_point(column.first, u, column.ends)

    return flow.inverse_through(condition, invert)


@in_float64
def sample(key: PRNGKeyArray, flow: Flow, condition: Condition, n: int, *, method: str = "exact") -> Float[Array, "n d"]:
    """`n` independent draws given one condition; `method` is "exact" (`exact_draw`) or "approximate" (`approximate_draw`)."""
    if method not in ("exact", "approximate"):
        raise ValueError(f"Got method={method!r}, expected 'exact' or 'approximate'.")
    dimension = len(flow.config.coordinates) if method == "exact" else base_dimension(flow)
    return _draw_all(flow, jax.random.uniform(key, (n, dimension), jnp.float64), condition, method)


@eqx.filter_jit
def _draw_all(flow: Flow, base: Float[Array, "n k"], condition: Condition, method: str) -> Float[Array, "n d"]:
    draw = exact_draw if method == "exact" else approximate_draw
    return jax.vmap(lambda u: draw(flow, u, condition))(base)


def pick_component(mixture: Mixture, u: Scalar) -> Int[Array, ""]:
    """The component with cumulative weight around `u`; the uniform component comes last."""
    log_weights = mixture.log_weights if mixture.log_uniform is None else jnp.append(mixture.log_weights, mixture.log_uniform)
    cumulative = jnp.cumsum(jnp.exp(log_weights))
    return jnp.minimum(jnp.sum(cumulative < u * cumulative[-1]), log_weights.size - 1)

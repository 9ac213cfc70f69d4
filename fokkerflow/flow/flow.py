"""The bounded normalizing flow, paper section 4: a normalised transition density, one column per coordinate.

The transport map is triangular: column i sees earlier coordinates (its parents), x0, the parameters and, in the anchored
setting, tau. The log density is the sum over columns of the log slope of the chart and of every mixture layer, and the log
density of the reference law at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key, PRNGKeyArray

from fokkerflow._precision import in_float64
from fokkerflow.flow.column import Column
from fokkerflow.flow.conditioner import CONDITIONERS, Conditioner
from fokkerflow.flow.config import Coordinate, FlowConfig, check_config
from fokkerflow.flow.interval import Point, rescale_ends
from fokkerflow.flow.regression import log_noise_ratio
from fokkerflow.flow.start import Condition, Standardisation
from fokkerflow.sde.model import SDE, Parameters, State

Scalar = Float[Array, ""]


class Seen(NamedTuple):
    """An earlier coordinate, as later columns see it."""

    residual: Scalar  # (x - mean) / sd, for regressions in the state
    charted: Scalar  # the placed chart, for regressions in the chart
    state: Scalar
    features: Float[Array, " e"]  # the inputs of conditioners


class Frame(NamedTuple):
    """A column, and the regression that centres and scales its placed chart: value = (chart - shift) / exp(log_scale)."""

    column: Column
    shift: Scalar
    log_scale: Scalar


class Flow(eqx.Module):
    """A transition density q(x | x0, tau, p, t0; theta) for one SDE.

    Everything that does not depend on theta is in the `Condition`: `condition` computes it, `log_density` takes it from there.
    Build a flow with `paper`, `anchored` or `build_flow`; take its weights out, and put others in, with `weights`.

    ```python
    flow = anchored(key, Heston(), max_dt=0.5)
    condition = flow.condition(0.0, 0.1, x0, p)
    flow.log_density(x, condition)
    ```

    All methods are unbatched and differentiable.
    """

    sde: SDE = eqx.field(static=True)
    config: FlowConfig = eqx.field(static=True)
    conditioners: tuple[tuple[Conditioner, ...], ...]
    reference_weights: tuple[Scalar | None, ...]
    standardisation: Standardisation

    @in_float64
    def condition(self, t0: Scalar | float, tau: Scalar | float, x0: State, p: Parameters) -> Condition:
        """All that the density needs to know about its start `x0` at time `t0`, the gap `tau` > 0 and the parameters `p`."""
        t0, tau = jnp.asarray(t0, jnp.float64), jnp.asarray(tau, jnp.float64)
        return self.config.start.condition(self.sde, self.config.coordinates, self.standardisation, t0, tau, x0, p)

    @in_float64
    def log_density(self, x: State, condition: Condition) -> Scalar:
        """log q(x), -inf outside the support of the charts."""
        inside = self._inside(x)
        x = jnp.where(inside, x, self._interior())  # a harmless state, so that derivatives stay finite
        total, seen = jnp.zeros_like(condition.gate), list[Seen]()
        for i in range(len(self.config.coordinates)):
            frame = self.frame(i, condition, seen)
            point, log_slope, now = self._enter(i, x[i], condition, frame)
            total = total + log_slope + frame.column.log_density(point)
            seen.append(now)
        return jnp.where(jnp.all(inside), total, -jnp.inf)

    @in_float64
    def rosenblatt(self, x: State, condition: Condition) -> State:
        """The conditional distribution functions of the coordinates, one after the other (Rosenblatt 1952).

        Uniform on (0, 1)^d if x is drawn from the flow. `x` must be inside the support.
        """
        values, seen = [], list[Seen]()
        for i in range(len(self.config.coordinates)):
            frame = self.frame(i, condition, seen)
            point, _, now = self._enter(i, x[i], condition, frame)
            u = frame.column.cdf(point)
            values.append(jnp.where(u.log_below < u.log_above, jnp.exp(u.log_below), -jnp.expm1(u.log_above)))
            seen.append(now)
        return jnp.stack(values)

    def inverse_through(self, condition: Condition, invert: Callable[[int, Column], Point]) -> State:
        """The state whose point in column i is ``invert(i, column)``, coordinate after coordinate. Samplers supply `invert`."""
        x, seen = [], list[Seen]()
        for i, coordinate in enumerate(self.config.coordinates):
            frame = self.frame(i, condition, seen)
            point = invert(i, frame.column)
            charted = point.rescaled(-frame.shift * jnp.exp(-frame.log_scale), -frame.log_scale)
            x.append(coordinate.chart.inverse(charted, condition.placements[i]))
            seen.append(self._seen(i, x[i], charted, point, condition))
        return jnp.stack(x)

    def frame(self, i: int, condition: Condition, seen: list[Seen]) -> Frame:
        """Column `i`, given the earlier coordinates."""
        coordinate, start = self.config.coordinates[i], self.config.start
        parents = [seen[j] for j in coordinate.parents]
        inputs = jnp.concatenate([*(s.features for s in parents), condition.features])
        first, *deeper = (network(inputs) for network in self.conditioners[i])
        shift, log_scale = self._regression(i, condition, parents)
        column = Column(
            start.first(first, condition.location[i], condition.gate),
            rescale_ends(coordinate.chart.ends(condition.placements[i]), shift, log_scale),
            tuple(start.deeper(raw, condition.gate) for raw in deeper),
            coordinate.reference,
            self.reference_weights[i],
        )
        return Frame(column, shift, log_scale)

    def _enter(self, i: int, x: Scalar, condition: Condition, frame: Frame) -> tuple[Point, Scalar, Seen]:
        chart = self.config.coordinates[i].chart
        charted, log_slope = chart.forward(x, condition.placements[i])
        point = charted.rescaled(frame.shift, frame.log_scale)
        return point, log_slope - frame.log_scale, self._seen(i, x, charted, point, condition)

    def _seen(self, i: int, x: Scalar, charted: Point, point: Point, condition: Condition) -> Seen:
        residual = (x - condition.means[i]) / condition.sds[i]
        features = self.config.start.earlier(self.sde.domains[i], x, condition.means[i], point.value)
        return Seen(residual, charted.value, x, features)

    def _regression(self, i: int, condition: Condition, parents: list[Seen]) -> tuple[Scalar, Scalar]:
        """Shift and log scale of a placed chart, from the parents: in the states if the chart is linear, else in the charts."""
        regression, coordinate = condition.regressions[i], self.config.coordinates[i]
        if regression is None:
            return jnp.zeros_like(condition.gate), jnp.zeros_like(condition.gate)
        values = jnp.stack([s.residual if coordinate.chart.linear else s.charted for s in parents])
        states = jnp.stack([s.state for s in parents])
        wider = log_noise_ratio(self.sde, i, coordinate.parents, condition.origin, condition.means, states)
        return jnp.dot(regression.slopes, values), regression.log_residual + wider

    def _inside(self, x: State) -> Array:
        supports = [c.chart.support for c in self.config.coordinates]
        return (x > jnp.array([s.lower for s in supports])) & (x < jnp.array([s.upper for s in supports]))

    def _interior(self) -> State:
        return jnp.array([c.chart.interior for c in self.config.coordinates])


@in_float64
def build_flow(key: PRNGKeyArray, sde: SDE, config: FlowConfig, standardisation: Standardisation | None = None) -> Flow:
    """A flow with random weights, in double precision.

    **Arguments:**

    - `key`: for the weights.
    - `sde`: the model.
    - `config`: columns and start; checked against the model.
    - `standardisation`: of the features; without it they enter as they are, as in the paper.
    """
    check_config(config, sde)
    features = config.start.feature_count(sde, config.coordinates)
    if standardisation is None:
        standardisation = Standardisation(jnp.zeros(features), jnp.ones(features))
    keys = jax.random.split(key, (len(config.coordinates), max(len(c.components) for c in config.coordinates)))
    conditioners = tuple(
        _column_conditioners(keys[i], c, features + _earlier_count(sde, config, c), config.start.zero_first_head)
        for i, c in enumerate(config.coordinates)
    )
    reference_weights = tuple(c.reference.initial_weight() for c in config.coordinates)
    return Flow(sde, config, conditioners, reference_weights, standardisation)


def _earlier_count(sde: SDE, config: FlowConfig, coordinate: Coordinate) -> int:
    return sum(config.start.earlier_count(sde.domains[j]) for j in coordinate.parents)


def _column_conditioners(
    keys: Key[Array, " layers"], coordinate: Coordinate, inputs: int, zero_first: bool
) -> tuple[Conditioner, ...]:
    network = coordinate.network
    return tuple(
        CONDITIONERS[network.kind](
            keys[layer], inputs, 3 * components, width=network.width, depth=network.depth, zero_head=zero_first and layer == 0
        )
        for layer, components in enumerate(coordinate.components)
    )


@in_float64
def weights(flow: Flow) -> tuple[Float[Array, " m"], Callable[[Float[Array | np.ndarray, " m"]], Flow]]:
    """The trainable weights theta of a flow as one vector, and the function that makes a flow of any such vector.

    Everything else (model, configuration, standardisation of the features) is carried over from `flow`.
    """
    theta, unravel = ravel_pytree((flow.conditioners, flow.reference_weights))

    @in_float64
    def with_weights(theta: Float[Array | np.ndarray, " m"]) -> Flow:
        conditioners, reference_weights = unravel(jnp.asarray(theta))
        return Flow(flow.sde, flow.config, conditioners, reference_weights, flow.standardisation)

    return theta, with_weights

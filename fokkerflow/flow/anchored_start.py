"""The anchored start: the first layer is centred and scaled by the moments of X_tau, and the networks correct the rest.

At small tau the transition law is a narrow, moving Gaussian, which the moments give for any SDE. Every correction carries a
gate sqrt(tau / max_dt), so that the flow is that Gaussian as tau -> 0, exactly, whatever the weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.flow.chart import Moments, Placement
from fokkerflow.flow.regression import Origin, Regression, regress
from fokkerflow.flow.start import Condition, Standardisation, Start
from fokkerflow.flow.truncated_mixture import Mixture
from fokkerflow.sde.constraint import open_range
from fokkerflow.sde.domain import Domain
from fokkerflow.sde.model import SDE, Parameters, State
from fokkerflow.sde.moments import moments

if TYPE_CHECKING:
    from fokkerflow.flow.config import Coordinate

Scalar = Float[Array, ""]
_FEATURE_BOUND = 8.0  # features saturate beyond this many standard deviations of what the flow was built for
_EARLIER_BOUND = 4.0
_LOG_WIDTH_BOUND = 1.5
_BROAD_WEIGHT = 0.1
_MANY, _SPREAD_OF_FEW = 7, 0.6
_DEEPER_SHARE = 0.9  # the rest of a deeper layer stays the identity, which bounds its log density from below


class Anchor(NamedTuple):
    """The Gaussian that the flow starts from: mean, standard deviations, and each coordinate's regression on its parents."""

    mean: State
    sd: State
    regressions: tuple[Regression | None, ...]


@dataclass(frozen=True)
class AnchoredStart(Start):
    """First layer: Gaussians with Gauss-Hermite nodes and weights, together N(0, 1) at the start, plus gated corrections.

    **Arguments:**

    - `max_dt`: the longest time gap; the gate is 1 from there on.
    - `spread`: standard deviation of the means of the narrow Gaussians, whose own variance is 1 - spread^2.
    - `states`, `parameters`: which coordinates of x0 and of p are features. Those that only shift the mean are left out.
    - `time`: whether t0 is a feature.
    """

    max_dt: float
    spread: float = 0.6
    states: tuple[int, ...] = ()
    parameters: tuple[int, ...] = ()
    time: bool = False

    kind: ClassVar[str] = "anchored"
    has_moments: ClassVar[bool] = True
    zero_first_head: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", tuple(int(j) for j in self.states))
        object.__setattr__(self, "parameters", tuple(int(k) for k in self.parameters))
        if not 0 < self.max_dt < math.inf:
            raise ValueError(f"An anchored start needs max_dt > 0, got {self.max_dt:g}.")
        if not 0 <= self.spread < 1:
            raise ValueError(f"An anchored start needs 0 <= spread < 1, got {self.spread:g}.")

    def feature_count(self, sde: SDE, coordinates: tuple[Coordinate, ...]) -> int:
        shapes = jax.eval_shape(
            lambda x, p: self.raw_features(sde, coordinates, jnp.zeros(()), jnp.ones(()), x, p),
            jax.ShapeDtypeStruct((sde.dimension,), jnp.float64),
            jax.ShapeDtypeStruct((len(sde.parameters),), jnp.float64),
        )
        return shapes.shape[0]

    def condition(
        self,
        sde: SDE,
        coordinates: tuple[Coordinate, ...],
        standardisation: Standardisation,
        t0: Scalar,
        tau: Scalar,
        x0: State,
        p: Parameters,
    ) -> Condition:
        anchor = _anchor(sde, coordinates, t0, tau, x0, p)
        raw = self._features(sde, anchor, t0, tau, x0, p)
        features = (raw - standardisation.centre) / standardisation.scale
        return Condition(
            Origin(jnp.asarray(t0), jnp.asarray(tau), x0, p),
            tuple(_place(sde, c, i, anchor, t0, p) for i, c in enumerate(coordinates)),
            means=anchor.mean,
            sds=anchor.sd,
            regressions=anchor.regressions,
            location=jnp.zeros_like(anchor.mean),
            features=_FEATURE_BOUND * jnp.tanh(features / _FEATURE_BOUND),
            gate=jnp.sqrt(jnp.minimum(tau / self.max_dt, 1.0)),
        )

    def raw_features(
        self, sde: SDE, coordinates: tuple[Coordinate, ...], t0: Scalar, tau: Scalar, x0: State, p: Parameters
    ) -> Float[Array, " f"]:
        """The features before they are standardised."""
        return self._features(sde, _anchor(sde, coordinates, t0, tau, x0, p), t0, tau, x0, p)

    def _features(self, sde: SDE, anchor: Anchor, t0: Scalar, tau: Scalar, x0: State, p: Parameters) -> Float[Array, " f"]:
        """What was asked for, log tau, and the numbers of the anchor, which the network would otherwise have to find.

        Scales enter by their logarithms: distances to boundaries, and parameters by their distance to what bounds them. The
        density of Heston's model changes as much from rho = -0.98 to -0.99 as from -0.6 to -0.8.
        """
        features = [_on_the_line(sde.domains[j], x0[j]) for j in self.states]
        features += [_on_the_line(_range(sde, k), p[k]) for k in self.parameters] + [jnp.log(tau)]
        features += [jnp.asarray(t0)] * self.time
        for i, domain in enumerate(sde.domains):
            features.append(jnp.log(anchor.sd[i]))
            if not domain.is_line:
                features.append(jnp.log(anchor.mean[i] - domain.lower))
            if domain.is_interval:
                features.append(jnp.log(domain.upper - anchor.mean[i]))
            if domain.is_line and i in self.states:
                features.append(anchor.mean[i])
        for regression in anchor.regressions:
            if regression is not None:
                features += [*regression.slopes, regression.log_residual]
        return jnp.stack(features)

    def first(self, raw: Float[Array, " raw"], location: Scalar, gate: Scalar) -> Mixture:
        logits, means, log_widths = jnp.split(gate * raw, 3)
        log_weights, nodes, start_widths = _gauss_hermite(logits.size, self.spread)
        return Mixture(
            jax.nn.log_softmax(log_weights + logits),
            location + nodes + means,
            start_widths + _LOG_WIDTH_BOUND * jnp.tanh(log_widths / _LOG_WIDTH_BOUND),
        )

    def deeper(self, raw: Float[Array, " raw"], gate: Scalar) -> Mixture:
        """Gaussians spread over [-1, 1] with weight 0.9 gate, and the identity with the rest."""
        logits, means, log_widths = jnp.split(raw, 3)
        nodes = (2.0 * np.arange(logits.size) + 1.0) / logits.size - 1.0
        share = _DEEPER_SHARE * gate
        return Mixture(
            jax.nn.log_softmax(logits) + jnp.log(share),
            means + nodes,
            math.log(1.5 / logits.size) + _LOG_WIDTH_BOUND * jnp.tanh(log_widths / _LOG_WIDTH_BOUND),
            jnp.log1p(-share),
        )

    def earlier_count(self, domain: Domain) -> int:
        return 1 if domain.is_line else 2

    def earlier(self, domain: Domain, x: Scalar, mean: Scalar, value: Scalar) -> Float[Array, " e"]:
        """asinh of the value, which grows slowly but does not saturate; and the distance to a boundary against the mean's."""
        features = [jnp.arcsinh(value)]
        if not domain.is_line:
            distance = _on_the_line(domain, x) - _on_the_line(domain, mean)
            features.append(_EARLIER_BOUND * jnp.tanh(distance / _EARLIER_BOUND))
        return jnp.stack(features)


def _on_the_line(domain: Domain, x: Scalar) -> Scalar:
    """A number as it is, or the logarithm of its distance to the boundary, or of the ratio of its distances to both."""
    if domain.is_line:
        return x
    below = jnp.log(x - domain.lower)
    return below - jnp.log(domain.upper - x) if domain.is_interval else below


def _range(sde: SDE, k: int) -> Domain:
    """Where strict constraints keep parameter k, as far as they involve no other parameter."""
    lower, upper = open_range(sde.constraints, sde.parameters[k])
    return Domain(lower, upper) if math.isfinite(lower) else Domain()


def _gauss_hermite(components: int, spread: float) -> tuple[Array, Array, Array]:
    """Log weights, means and log widths of a mixture with the first moments of N(0, 1): narrow Gaussians and a broad one.

    Of k Gaussians, if they are many, k - 1 are equally wide, at Gauss-Hermite nodes; the last is N(0, 1) itself. Far out, where
    narrow ones have died away, it is the density, so that the tails start as those of the anchor and one width has to be
    learned for them.
    """
    narrow = components - 1 if components >= _MANY else components
    nodes, weights = np.polynomial.hermite_e.hermegauss(narrow)
    spread = spread if components >= _MANY else min(spread, _SPREAD_OF_FEW)  # few that are far apart are not N(0, 1)
    spread = spread if components > 1 else 0.0
    log_weights, means = np.log(weights / weights.sum()), spread * nodes
    log_widths = np.full(narrow, 0.5 * math.log1p(-(spread**2)))
    if narrow < components:
        log_weights = np.append(log_weights + math.log1p(-_BROAD_WEIGHT), math.log(_BROAD_WEIGHT))
        means, log_widths = np.append(means, 0.0), np.append(log_widths, 0.0)
    return jnp.asarray(log_weights), jnp.asarray(means), jnp.asarray(log_widths)


def _anchor(sde: SDE, coordinates: tuple[Coordinate, ...], t0: Scalar, tau: Scalar, x0: State, p: Parameters) -> Anchor:
    mean, covariance = moments(sde, t0, tau, x0, p)
    sd = jnp.sqrt(jnp.diagonal(covariance))
    correlation = covariance / (sd[:, None] * sd[None, :])
    return Anchor(mean, sd, tuple(regress(correlation, i, c.parents) for i, c in enumerate(coordinates)))


def _place(sde: SDE, coordinate: Coordinate, i: int, anchor: Anchor, t0: Scalar, p: Parameters) -> Placement:
    chart = coordinate.chart
    exponent = _noise_exponent(sde, coordinate, i, t0, anchor.mean, p) if chart.needs_noise_exponent else None
    return chart.place(Moments(anchor.mean[i], anchor.sd[i], exponent))


def _noise_exponent(sde: SDE, coordinate: Coordinate, i: int, t0: Scalar, mean: State, p: Parameters) -> Scalar:
    """Half the slope of log Sigma_ii in the log distance to the lower boundary, at the mean."""

    def log_noise(x_i: Scalar) -> Scalar:
        return jnp.log(sde.covariance(t0, mean.at[i].set(x_i), p)[i, i])

    slope = jax.jvp(log_noise, (mean[i],), (jnp.ones_like(mean[i]),))[1]
    return 0.5 * slope * (mean[i] - coordinate.chart.support.lower)

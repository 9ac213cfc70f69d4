"""What is sampled and maximised: log likelihood plus log prior, as a function of parameters or of unconstrained coordinates."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.densities.density import Density
from fokkerflow.inference.likelihood import Transitions, total
from fokkerflow.inference.prior import PriorDensity


class Parts(NamedTuple):
    """Parameters, and the terms of the log density of unconstrained coordinates; -inf where parameters are impossible."""

    p: Float[Array, " n"]
    likelihood: Float[Array, ""]
    prior: Float[Array, ""]
    jacobian: Float[Array, ""]


class Target(eqx.Module):
    """Density, data and prior, as a tree of arrays: compiled functions that take one are shared by data of similar length."""

    density: Density
    data: Transitions
    prior: PriorDensity

    @property
    def dimension(self) -> int:
        return len(self.density.sde.parameters)

    def log_likelihood(self, p: Float[Array, " n"]) -> Float[Array, ""]:
        """-inf also where the density is not a number, so that no sampler goes there."""
        value = total(self.density, self.data, p)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    def log_posterior(self, p: Float[Array, " n"]) -> Float[Array, ""]:
        """Up to a constant, with respect to the parameters themselves."""
        return self.log_likelihood(p) + self.prior.log_density(p)

    def parts(self, u: Float[Array, " n"], fixed: Any = None) -> Parts:
        """At unconstrained coordinates; for `fixed` see `Transform.parameters`."""
        p, jacobian = self.prior.transform.parameters(u, fixed)
        return Parts(p, self.log_likelihood(p), self.prior.log_density(p), jacobian)


class Frame(NamedTuple):
    """Coordinates in which the posterior is roughly standard normal, from its curvature at the peak.

    **Attributes:**

    - `centre`, `scale`: ``u = centre + scale @ z``.
    - `widths`: of each parameter with the others fixed: three standard deviations of the Gaussian with the same curvature.
    """

    centre: Float[Array, " n"]
    scale: Float[Array, "n n"]
    widths: Float[Array, " n"]

    def unconstrained(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.centre + self.scale @ z


class Weights(NamedTuple):
    """Which terms count: the likelihood always does, prior and Jacobian do with weight 1 and do not with weight 0."""

    prior: float
    jacobian: float


LIKELIHOOD = Weights(0.0, 0.0)
POSTERIOR = Weights(1.0, 0.0)
UNCONSTRAINED = Weights(1.0, 1.0)


def objective(target: Target, weights: Any, u: Float[Array, " n"], fixed: Float[Array, " n"]) -> Float[Array, ""]:
    """The weighted sum; -inf outside constraint and law whatever the weights are."""
    parts = target.parts(u, fixed)
    possible = jnp.isfinite(parts.prior) & jnp.isfinite(parts.jacobian)
    prior, jacobian = (jnp.where(possible, term, 0.0) for term in (parts.prior, parts.jacobian))
    return jnp.where(possible, parts.likelihood + weights.prior * prior + weights.jacobian * jacobian, -jnp.inf)


@eqx.filter_jit
def _value_and_gradient(target: Target, weights: Any, u: Any, fixed: Any) -> tuple[Any, Any]:
    return jax.value_and_grad(objective, argnums=2)(target, weights, u, fixed)


def value_and_gradient(target: Target, weights: Weights, u: Any, fixed: Any = None) -> tuple[Any, Any]:
    """Of `objective`; one compilation serves likelihood and posterior, and profiles along any parameter."""
    free = jnp.full(target.dimension, jnp.nan) if fixed is None else jnp.asarray(fixed)
    return _value_and_gradient(target, jax.tree.map(jnp.asarray, weights), jnp.asarray(u), free)


@eqx.filter_jit
def parameters(target: Target, u: Any, fixed: Any = None) -> tuple[Any, Any]:
    """Parameters at unconstrained coordinates, and their Jacobian matrix."""

    def of(u: Any) -> Any:
        return target.prior.transform.parameters(u, fixed)[0]

    return of(u), jax.jacfwd(of)(u)

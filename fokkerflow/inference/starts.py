"""Where chains and maximisations begin: starting points, the peak of the posterior, and the frame that it gives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.inference.errors import InferenceError
from fokkerflow.inference.peak import Peak, highest
from fokkerflow.inference.prior import Prior
from fokkerflow.inference.target import UNCONSTRAINED, Frame, Target, Weights, parameters, value_and_gradient

_STARTS = 32
_DISPERSED = 2.0
"""Chains start this many standard deviations of the Gaussian at the peak apart, so that R-hat can tell."""


def find_peak(target: Target, prior: Prior, weights: Weights, seed: int) -> Peak:
    """The highest maximum that is found, in unconstrained coordinates.

    **Raises:** InferenceError if the log density is finite at no starting point.
    """

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = value_and_gradient(target, weights, u)
        return float(value), np.asarray(gradient)

    try:
        return highest(objective, starting_points(target, prior, np.random.default_rng(seed)))
    except ValueError as error:
        raise InferenceError(
            f"{target.density.sde.label}: {error} ({_STARTS} were tried). The data may be impossible under the prior, or "
            f"beyond what the density can evaluate. The prior is: {prior.words}"
        ) from None


def starting_points(target: Target, prior: Prior, rng: np.random.Generator) -> list[np.ndarray]:
    """Typical parameters, draws of the prior if it has any, and points around the first."""
    transform, sde, n = prior.transform, prior.sde, target.dimension
    typical = jnp.array([sde.typical[name] for name in sde.parameters])
    points = [np.asarray(transform.unconstrained(typical)) if transform.inside(typical) else np.zeros(n)]
    if prior.proper:
        key = jax.random.key(int(rng.integers(2**31)), impl="threefry2x32")
        drawn = jax.vmap(transform.unconstrained)(jnp.asarray(prior.sample(key, _STARTS // 2)))
        points += list(np.asarray(drawn))
    return points + [points[0] + rng.normal(size=n) for _ in range(_STARTS - len(points))]


def begin_chains(target: Target, prior: Prior, chains: int, seed: int) -> tuple[Frame, Float[Array, "chains n"]]:
    """Coordinates from the curvature at the peak, and starting points around it where the posterior is finite."""
    frame = frame_at(target, find_peak(target, prior, UNCONSTRAINED, seed))
    rng = np.random.default_rng([seed, 1])
    return frame, jnp.asarray([_start(target, frame, rng) for _ in range(chains)])


def frame_at(target: Target, peak: Peak) -> Frame:
    """The frame of a peak in unconstrained coordinates."""
    covariance = peak.covariance
    _, jacobian = (np.asarray(value) for value in parameters(target, jnp.asarray(peak.point)))
    precision = np.linalg.inv(jacobian @ covariance @ jacobian.T)
    widths = 3 / np.sqrt(np.diag(precision))
    return Frame(jnp.asarray(peak.point), jnp.asarray(np.linalg.cholesky(covariance)), jnp.asarray(widths))


def _start(target: Target, frame: Frame, rng: np.random.Generator) -> np.ndarray:
    for attempt in range(20):
        z = rng.normal(size=target.dimension) * _DISPERSED * 0.8**attempt
        value, gradient = value_and_gradient(target, UNCONSTRAINED, frame.unconstrained(jnp.asarray(z)))
        if np.isfinite(value) and np.all(np.isfinite(gradient)):
            return z
    return np.zeros(target.dimension)

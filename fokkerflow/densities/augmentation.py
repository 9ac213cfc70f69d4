"""Data augmentation: the likelihood of Euler's scheme with unobserved states between, by importance sampling of bridges."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from fokkerflow._precision import in_float64
from fokkerflow.densities.density import Density
from fokkerflow.densities.gaussian_law import refuse_singular
from fokkerflow.densities.modified_bridge import log_weights
from fokkerflow.densities.registry import register
from fokkerflow.densities.unbounded import coefficients, log_volume, to_line
from fokkerflow.sde.model import SDE, Parameters, Scalar, State
from fokkerflow.sde.validation import inside_domain

_ROWS = 2**16
"""Paths of all transitions that an estimate follows at once."""


class Estimate(NamedTuple):
    """Estimates of transition densities; fields of one shape.

    **Attributes:**

    - `log_density`: the logarithm of an unbiased estimate of the density (of Euler's scheme).
    - `standard_error`: of `log_density`, from the spread of the paths. The logarithm is low by half its square on average.
    - `ess`: the effective sample size of the importance weights.
    """

    log_density: Float[Array, "*batch"]
    standard_error: Float[Array, "*batch"]
    ess: Float[Array, "*batch"]

    @property
    def log_likelihood(self) -> tuple[float, float]:
        """The sum over all transitions, and its standard error."""
        return float(jnp.sum(self.log_density)), float(jnp.sqrt(jnp.sum(self.standard_error**2)))


@register("data-augmentation")
@final
class AugmentedDensity(Density):
    """Modified Brownian bridges with importance sampling, for any SDE with noise in every coordinate.

        p(x1 | x0) ~ (1/S) sum_s prod_{m<M} phi(u_{m+1} | u_m, dt/M) / prod_{m<M-1} q(u_{m+1} | u_m)

    phi is Euler's Gaussian, q the bridge's (`fokkerflow.densities.modified_bridge`). The sum is formed from logarithms.

    The error has two parts: a bias of order 1/M, that of Euler's scheme, and the Monte Carlo error of order S^-1/2, which
    `estimate` reports. Bridges do not see the drift, so the weights degenerate (`ess`) where it moves the process by many
    standard deviations within dt, or where a correlation makes x1 unlikely given part of it.

    By default the noise of a transition is a function of the seed and the numbers of x0, x1 and dt. The log likelihood of given
    data is then a smooth, deterministic function of the parameters (common random numbers), and the errors of different
    transitions are independent; as a function of x1 the density is rough. With ``shared_noise=True`` all transitions have the
    same noise: smooth in all arguments, but the errors add up.

    The cost is proportional to ``M S``: some 0.05 to 0.1 us for each step of each path (``benchmarks/augmentation.py``).

    **Attributes:**

    - `steps`: M.
    - `paths`: S.
    - `seed`: of the noise.
    - `antithetic`: paths in pairs with opposite noise.
    - `coordinates`: ``"unbounded"`` takes the logarithm (or logit) of coordinates with ends, by Ito's formula, and Euler's
      scheme there: no path leaves the domain, none is wasted, and nothing is reflected, which would change the process.
      ``"plain"`` takes Euler's scheme in the model's own coordinates, as in the article; a path that leaves counts zero. Far
      from the ends that has a smaller bias for square-root noise; close to them the bias is larger and falls like the root of
      1/M only.

    **Reference:** Durham and Gallant (2002), Numerical techniques for maximum likelihood estimation of continuous-time
    diffusion processes, section 2.3; Andrieu and Roberts (2009), The pseudo-marginal approach for efficient Monte Carlo
    computations, for what `estimate` is good for.
    """

    sde: SDE
    steps: int = 32
    paths: int = 128
    seed: int = 0
    antithetic: bool = True
    coordinates: str = "unbounded"
    shared_noise: bool = False

    def __check_init__(self) -> None:
        for what, least in (("steps", 1), ("paths", 2), ("seed", 0)):
            value = getattr(self, what)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"Got {what} = {value!r}, expected a whole number of at least {least}.")
        if self.antithetic and self.paths % 4:
            raise ValueError(f"Got paths = {self.paths}, expected a multiple of 4 for pairs; or set antithetic=False.")
        if self.coordinates not in ("unbounded", "plain"):
            raise ValueError(f"Got coordinates = {self.coordinates!r}, expected 'unbounded' or 'plain'.")
        refuse_singular(self.sde, through_drift=False)

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        key = jax.random.key(self.seed, impl="threefry2x32")
        key = key if self.shared_noise else _folded(key, x1, x0, dt)
        logs = self._log_weights(key, x1, x0, dt, p, t0)
        peak = jax.lax.stop_gradient(jnp.max(logs))
        some = peak > -jnp.inf
        total = jnp.sum(jnp.exp(logs - jnp.where(some, peak, 0.0)))
        return jnp.where(some, peak + jnp.log(jnp.where(some, total, 1.0) / self.paths), -jnp.inf)

    def estimate(self, key: PRNGKeyArray, x1: Any, x0: Any, dt: Any, params: Any, t0: Any = 0.0) -> Estimate:
        """Fresh, independent estimates with their errors: unbiased on the scale of the density, as pseudo-marginal MCMC needs.

        **Arguments:** those of `log_prob_batch`, after a key. Memory is that of a few thousand paths, whatever the number
        of transitions, steps and paths is.
        """
        arguments = [jnp.asarray(a) for a in self._checked(x1, x0, dt, params, t0)]
        return _estimates(self, key, *arguments)

    def _log_weights(
        self, key: PRNGKeyArray, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar
    ) -> Float[Array, " paths"]:
        options: dict[str, Any] = {"steps": self.steps, "paths": self.paths, "antithetic": self.antithetic}
        sde = self.sde
        if self.coordinates == "plain":
            return log_weights(
                key,
                lambda t, x: (sde.drift(t, x, p), sde.covariance(t, x, p)),
                lambda x: inside_domain(sde, x),
                x1, x0, dt, t0, **options,
            )  # fmt: skip
        logs = log_weights(
            key,
            lambda t, z: coefficients(sde, t, z, p),
            lambda z: jnp.all(jnp.isfinite(z)),
            to_line(sde, x1), to_line(sde, x0), dt, t0, **options,
        )  # fmt: skip
        return logs + log_volume(sde, x1)


def _folded(key: PRNGKeyArray, x1: State, x0: State, dt: Scalar) -> PRNGKeyArray:
    """A key made of the digits of the data; no parameter enters."""
    numbers = jax.lax.stop_gradient(jnp.concatenate([x1, x0, dt[None]]))
    words = jax.lax.bitcast_convert_type(numbers, jnp.uint32).ravel()
    return jax.lax.scan(lambda key, word: (jax.random.fold_in(key, word), None), key, words)[0]


@in_float64
@eqx.filter_jit
def _estimates(density: AugmentedDensity, key: PRNGKeyArray, x1: Array, x0: Array, dt: Array, p: Array, t0: Array) -> Estimate:
    shape = jnp.broadcast_shapes(x1.shape[:-1], x0.shape[:-1], dt.shape, p.shape[:-1], t0.shape)
    count = math.prod(shape)
    rows = [jnp.broadcast_to(a, shape + a.shape[-1:]).reshape(count, -1) for a in (x1, x0, p)]
    times = [jnp.broadcast_to(a, shape).ravel() for a in (dt, t0)]

    def one(row: tuple[Array, ...]) -> Estimate:
        key, x1, x0, p, dt, t0 = row
        good: Bool[Array, ""] = inside_domain(density.sde, x1)
        logs = density._log_weights(key, jnp.where(good, x1, x0), x0, dt, p, t0)
        return _summary(jnp.where(good, logs, -jnp.inf), density.antithetic)

    batch = max(1, _ROWS // density.paths)
    found = jax.lax.map(one, (jax.random.split(key, count), *rows, *times), batch_size=batch)
    return Estimate(*(value.reshape(shape) for value in found))


def _summary(logs: Float[Array, " paths"], antithetic: bool) -> Estimate:
    """Pairs are the independent units, if there are pairs."""
    peak = jnp.max(logs)
    w = jnp.exp(logs - jnp.where(peak > -jnp.inf, peak, 0.0))
    units = w.reshape(2, -1).mean(0) if antithetic else w
    mean = jnp.mean(units)
    safe = jnp.where(mean > 0, mean, 1.0)
    error = jnp.std(units, ddof=1) / np.sqrt(len(units)) / safe
    ess = jnp.sum(w) ** 2 / jnp.where(mean > 0, jnp.sum(w**2), 1.0)
    return Estimate(peak + jnp.log(safe), jnp.where(mean > 0, error, jnp.inf), ess)

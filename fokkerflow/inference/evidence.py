"""The log evidence by tempered sequential Monte Carlo, for comparing models: log of the integral of likelihood times prior.

From the prior to the posterior through powers of the likelihood, each chosen so that the weights stay even (Del Moral, Doucet
and Jasra 2006), with the waste-free moves of Dau and Chopin (2022); from BlackJAX.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.smc import adaptive_tempered, extend_params, resampling
from blackjax.smc.waste_free import waste_free_smc
from jaxtyping import Array, Float, PRNGKeyArray

from fokkerflow.inference.errors import InferenceError
from fokkerflow.inference.target import Target

_EVEN = 0.5
"""The effective share of particles that a step leaves."""
_STEP = 2.38
"""Random-walk steps in standard deviations over root dimension (Roberts, Gelman and Gilks 1997)."""
_AT_ONCE = 8
_PATIENCE = 500


@dataclass(frozen=True)
class Evidence:
    """The log evidence.

    **Attributes:**

    - `log_evidence`: of the data under the model, with the prior normalised over constraint and law.
    - `standard_error`: from independent runs.
    - `runs`: the estimate of each.
    - `temperatures`: how many steps lead from prior to posterior, in each run.
    """

    log_evidence: float
    standard_error: float
    runs: tuple[float, ...]
    temperatures: tuple[int, ...]

    def __str__(self) -> str:
        return f"log evidence {self.log_evidence:.3f} +- {self.standard_error:.3f} ({len(self.runs)} runs)"


def evidence(
    key: PRNGKeyArray,
    target: Target,
    prior: Callable[[PRNGKeyArray, int], Float[np.ndarray, "k n"]],
    *,
    particles: int,
    moves: int,
    runs: int,
    progress: Callable[[str, float], None] | None = None,
) -> Evidence:
    """Independent runs of sequential Monte Carlo.

    **Arguments:**

    - `prior`: independent draws of the normalised prior.
    - `particles`: of a run; a multiple of `moves`.
    - `moves`: one chain of this length for each resampled particle; all of its points are kept.
    """
    values, counts = [], []
    for run in range(runs):
        start, steps = jax.random.split(jax.random.fold_in(key, run))
        value, count = _one(steps, target, jnp.asarray(prior(start, particles)), moves, run, runs, progress)
        values.append(value)
        counts.append(count)
    mean, spread = _combined(np.array(values))
    return Evidence(mean, spread, tuple(values), tuple(counts))


def _combined(logs: Float[np.ndarray, " runs"]) -> tuple[float, float]:
    """The log of the mean of the unbiased estimates, and its standard error by the delta method."""
    shares = np.exp(logs - logs.max())
    error = np.std(shares, ddof=1) / np.mean(shares) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan
    return float(logs.max() + np.log(np.mean(shares))), float(error)


def _one(
    key: PRNGKeyArray, target: Target, p: Float[Array, "k n"], moves: int, run: int, runs: int, progress: Any
) -> tuple[float, int]:
    state = adaptive_tempered.init(jax.vmap(target.prior.transform.unconstrained)(p))
    total, count = 0.0, 0
    while float(state.tempering_param) < 1:
        state, increment = _step(target, state, jax.random.fold_in(key, count), moves)
        total, count = total + float(increment), count + 1
        if not math.isfinite(total) or count >= _PATIENCE:
            raise InferenceError(
                f"{target.density.sde.label}: the evidence cannot be computed: after {count} steps the power of the "
                f"likelihood is {float(state.tempering_param):.3g} and its logarithm {total}. Use more particles, or a prior "
                "that is nearer to the data."
            )
        if progress is not None:
            progress(f"run {run + 1} of {runs}, power {float(state.tempering_param):.2g}", (run + _share(state)) / runs)
    return total, count


def _share(state: Any) -> float:
    """Powers grow geometrically."""
    return 1 + max(math.log10(max(float(state.tempering_param), 1e-6)), -6) / 6


@eqx.filter_jit
def _step(target: Target, state: Any, key: PRNGKeyArray, moves: int) -> tuple[Any, Any]:
    """One temperature: resample, move, weigh. Moves are random-walk Metropolis with the covariance of the particles."""
    walk = blackjax.additive_step_random_walk.build_kernel()

    def move(key: PRNGKeyArray, state: Any, log_density: Any, root: Any) -> tuple[Any, Any]:
        return walk(key, state, log_density, lambda k, u: root @ jax.random.normal(k, u.shape))

    def log_prior(u: Any) -> Any:
        parts, jacobian = target.prior.transform.parameters(u)
        return target.prior.log_density(parts) + jacobian

    def log_likelihood(u: Any) -> Any:
        return target.log_likelihood(target.prior.transform.parameters(u)[0])

    count, n = state.particles.shape
    kernel = adaptive_tempered.build_kernel(
        log_prior,
        log_likelihood,
        move,
        blackjax.additive_step_random_walk.init,
        resampling.systematic,
        _EVEN,
        batch_size=_AT_ONCE,
        update_strategy=waste_free_smc(count, moves),
    )
    mean = state.weights @ state.particles
    spread = (state.particles - mean).T @ ((state.particles - mean) * state.weights[:, None])
    root = jnp.linalg.cholesky(spread + 1e-10 * jnp.eye(n)) * _STEP / math.sqrt(n)
    state, info = kernel(key, state, None, extend_params({"root": root}))
    return state, info.log_likelihood_increment

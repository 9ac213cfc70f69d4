"""Log densities of many sets of transitions by one compiled program, and what they cost."""

from __future__ import annotations

import time
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow._precision import in_float64
from fokkerflow.densities.density import Density
from fokkerflow.report.accuracy_trials import Jobs

_TRANSITIONS = 8192
"""In one call of the compiled program."""

_TIMED_SECONDS, _TIMINGS, _MOST_REPEATS = 0.25, 3, 10_000


@final
class Evaluator:
    """A density for one time gap, compiled once for jobs of one size, whatever their number.

    **Attributes:**

    - `seconds`: of one job, compiled and warm, the least that was seen; infinite before the first call that compiled nothing.
    """

    def __init__(self, density: Density, dt: float, size: int) -> None:
        self._density, self._dt, self._size = density, dt, size
        self._block = -(-_TRANSITIONS // size)
        self._compiled, self.seconds = False, np.inf

    def __call__(self, jobs: Jobs) -> Float[np.ndarray, "k n"]:
        """The log density of every transition of every job."""
        parts = [jobs.part(i, i + self._block) for i in range(0, len(jobs.p), self._block)]
        return np.concatenate([self._run(part, len(part.p))[: len(part.p)] for part in parts] or [np.empty((0, self._size))])

    def time(self, jobs: Jobs) -> float:
        """Microseconds a transition: the best of some calls that go over the same jobs for about a quarter of a second.

        A job that takes longer than that is gone over once.
        """
        part = jobs.part(0, self._block)
        repeats = int(np.clip(_TIMED_SECONDS / self.seconds, 1, _MOST_REPEATS)) if self._compiled else 1
        for _ in range(_TIMINGS if repeats > 1 else 1):
            self._run(part, repeats)
        return 1e6 * self.seconds / self._size

    def _run(self, part: Jobs, count: int) -> Float[np.ndarray, "k n"]:
        """`count` jobs, the given ones again if it is more than there are."""
        wide = Jobs(*(np.resize(a, (self._block, *a.shape[1:])) for a in part))
        started = time.perf_counter()
        found = np.asarray(_values(self._density, self._dt, wide, len(part.p), count))
        if self._compiled:
            self.seconds = min(self.seconds, (time.perf_counter() - started) / count)
        self._compiled = True
        return found


@in_float64
def _values(density: Density, dt: Any, jobs: Jobs, given: int, count: int) -> Float[Array, "k n"]:
    t0: Any = jnp.zeros(()) if density.sde.autonomous else jobs.t0
    dt, x1, x0, p, t0 = (jnp.asarray(a, jnp.float64) for a in (dt, jobs.x1, jobs.x0, jobs.p, t0))
    return _loop(density, dt, x1, x0, p, t0, jnp.asarray(given), jnp.asarray(count))


@eqx.filter_jit
def _loop(density: Density, dt: Array, x1: Array, x0: Array, p: Array, t0: Array, given: Array, count: Array) -> Array:
    def job(i: Array, values: Array) -> Array:
        k = i % given
        found = density.log_prob_batch(x1[k], x0[k], dt, p[k], t0[k] if t0.ndim else t0)
        return values.at[k].set(found)

    return jax.lax.fori_loop(0, count, job, jnp.full(x1.shape[:2], jnp.nan))

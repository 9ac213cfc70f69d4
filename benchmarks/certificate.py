"""Does the L1 bound of the certificate hold, and how many times the true error is it?

    python benchmarks/certificate.py [--record]

For every shipped density whose model has an exact one, at draws of its training law. The true error is 2 E_q max(0, 1 - p/q),
by sampling. With --record the answer is kept in results/certificate.json.
"""

from __future__ import annotations

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from recording import run

from fokkerflow.densities import Density, density, load, methods, pretrained
from fokkerflow.flow import exact_draw
from fokkerflow.training import Trained
from fokkerflow.training.bound import l1_bounds
from fokkerflow.training.bound_rules import base_points

CONDITIONS, POINTS = 64, 4096


@eqx.filter_jit
def true_errors(trained: Trained, exact: Density, x0: Array, p: Array, dt: Array, u: Array, weight: Array) -> Array:
    """For each condition and gap."""

    def one(x0: Array, p: Array, tau: Array) -> Array:
        flow, t0 = trained.at(tau), jnp.zeros(())
        condition = flow.condition(t0, tau, x0, p)

        def lack(u: Array) -> Array:
            x = exact_draw(flow, u, condition)
            return jnp.maximum(-jnp.expm1(exact.log_density(x, x0, tau, p, t0) - flow.log_density(x, condition)), 0.0)

        return 2 * jnp.mean(jax.vmap(lack)(u) * weight)

    return jax.lax.map(lambda c: jax.vmap(lambda tau: one(*c, tau))(dt), (x0, p))


def compare(trained: Trained) -> dict[str, Any]:
    """Bounds and true errors of one density."""
    x0, p = map(jnp.asarray, trained.law.sample(np.random.default_rng(0), CONDITIONS))
    dt = np.geomspace(max(trained.gaps.shortest, 0.01 * trained.gaps.longest), trained.gaps.longest, 4)
    started = time.perf_counter()
    bounds = l1_bounds(jax.random.key(0), trained, x0, p, jnp.zeros(CONDITIONS), dt)
    seconds = time.perf_counter() - started
    base = base_points(jax.random.key(1), POINTS, 1, trained.sde.dimension)
    exact = density("exact", trained.sde)
    errors = np.asarray(true_errors(trained, exact, x0, p, jnp.asarray(dt), base.u[0], base.weight[0]))
    return {
        "held": float(np.mean(bounds.value > errors)),
        "not finite": bounds.unusable,
        "by gap": [_row(*row) for row in zip(dt, bounds.value.T, errors.T, strict=True)],
        "seconds, compilation included": round(seconds, 1),
    }


def _row(dt: float, bound: Float[np.ndarray, " c"], error: Float[np.ndarray, " c"]) -> dict[str, Any]:
    ratio = {
        name: round(float(np.quantile(bound / error, q)), 2) for name, q in (("smallest", 0), ("median", 0.5), ("largest", 1))
    }
    medians = {"bound, median": float(np.median(bound)), "true error, median": float(np.median(error))}
    return {"dt": round(float(dt), 4), **medians, "ratio": ratio}


def measure() -> dict[str, Any]:
    answer = {}
    for name in pretrained():
        trained = load(name).trained
        if "exact" in methods(trained.sde) and trained.law.t0 is None:
            answer[name] = compare(trained)
    return answer


if __name__ == "__main__":
    run("certificate", __doc__, measure)

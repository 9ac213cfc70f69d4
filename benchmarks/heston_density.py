"""What does one exact Heston transition cost, and how accurate is it?

    taskset -c 0 python benchmarks/heston_density.py [--record]

Time: batches of 4096 transitions through `log_prob_batch`, best of several, meant for one core. Accuracy: mpmath (the reference
of the tests) at random points of the paper's training and test laws, up to ten standard deviations out in both coordinates.
About two minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from recording import best_seconds, run

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fokkerflow.densities import density  # noqa: E402
from fokkerflow.sde.models import CIR, Heston  # noqa: E402
from tests.densities.heston_reference import log_density_mp  # noqa: E402
from tests.densities.laws import draw_parameters, draw_transitions  # noqa: E402

BATCH = 4096
SERIES = 349
POINTS = 200


def microseconds(function: Any, *arguments: Any, per: int) -> float:
    return round(1e6 * best_seconds(function, *arguments, repeats=15) / per, 3)


def speed(rng: np.random.Generator) -> dict[str, float]:
    """Microseconds a transition: all arguments batched, and for a series under one parameter with its gradient."""
    heston, cir = density("exact", Heston()), density("exact", CIR())
    p = draw_parameters(rng, "test", BATCH)
    x1, x0, dt = draw_transitions(rng, p, reach=3.0)
    one = np.array([Heston.typical[name] for name in Heston.parameters])

    def log_likelihood(q: Any) -> Any:
        return jax.vmap(lambda a, b: heston.log_density(a, b, 0.5, q, 0.0))(x1[:SERIES], x0[:SERIES]).sum()

    gradient = jax.jit(jax.grad(log_likelihood))
    value = microseconds(heston.log_prob_batch, x1, x0, dt, p, per=BATCH)
    variance = microseconds(cir.log_prob_batch, x1[:, :1], x0[:, :1], dt, p[:, :3], per=BATCH)
    return {
        "us_per_transition": value,
        "us_per_transition_series": microseconds(heston.log_prob_batch, x1[:SERIES], x0[:SERIES], 0.5, one, per=SERIES),
        "us_per_gradient_series": microseconds(gradient, one, per=SERIES),
        "us_per_cir_transition": variance,
        "ratio_to_cir": round(value / variance, 1),
    }


def accuracy(rng: np.random.Generator, law: str) -> dict[str, float]:
    """Errors of the log density, relative where it is above one in size."""
    p = draw_parameters(rng, law, POINTS)
    x1, x0, dt = draw_transitions(rng, p)
    got = np.asarray(density("exact", Heston()).log_prob_batch(x1, x0, dt, p))
    expected = np.array([float(log_density_mp(*row)) for row in zip(x1, x0, dt, p, strict=True)])
    error = np.abs(got - expected) / np.maximum(1.0, np.abs(expected))
    return {f"{name}_error": float(f"{value:.2g}") for name, value in (("max", error.max()), ("median", np.median(error)))}


def measure() -> dict[str, Any]:
    rng = np.random.default_rng(20260101)
    return {"speed": speed(rng), "accuracy": {law: accuracy(rng, law) for law in ("train", "test")}, "points": POINTS}


if __name__ == "__main__":
    run("heston_density", __doc__, measure)

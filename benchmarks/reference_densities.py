"""What do the reference densities of BDFS and SVCEV cost, and how accurate are they?

    taskset -c 0 python benchmarks/reference_densities.py [--record]

Time: batches through `log_prob_batch`, best of several, meant for one core. Accuracy of BDFS: mpmath (the reference of the
tests) at random points of the paper's law, ten standard deviations out. Accuracy of SVCEV: the exact Heston density, at
gamma = 1/2, over the training law where 2 alpha beta / sigma^2 exceeds 2, eight standard deviations out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from recording import best_seconds, run

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fokkerflow.densities import Density, density  # noqa: E402
from fokkerflow.sde.models import BDFS, SVCEV, Heston  # noqa: E402
from tests.densities.bdfs_reference import FINE, log_density_mp  # noqa: E402
from tests.densities.laws import (  # noqa: E402
    draw_bdfs_parameters,
    draw_bdfs_transitions,
    draw_parameters,
    draw_svcev_transitions,
)

BATCH = 512
POINTS = 60


def microseconds(exact: Density, x1: Any, x0: Any, dt: Any, p: Any) -> dict[str, float]:
    """Of a transition, when every argument differs, and in a series under one parameter."""
    cases = {"distinct": (x1, x0, dt, p), "series": (x1, x0, dt[0], p[0])}
    return {name: round(1e6 * best_seconds(exact.log_prob_batch, *a, repeats=5) / len(x1), 1) for name, a in cases.items()}


def relative(got: Any, expected: Any) -> dict[str, float]:
    error = np.abs(np.asarray(got) - expected) / np.maximum(1, np.abs(expected))
    return {"median error": float(np.median(error)), "largest error": float(np.max(error))}


def bdfs(rng: np.random.Generator) -> dict[str, float]:
    exact = density("exact", BDFS())
    p = draw_bdfs_parameters(rng, BATCH)
    x1, x0, dt = draw_bdfs_transitions(rng, p)
    rows = zip(*(a[:POINTS] for a in (x1, x0, dt, p)), strict=True)
    expected = np.array([float(log_density_mp(*row, FINE)) for row in rows])
    return microseconds(exact, x1, x0, dt, p) | relative(exact.log_prob_batch(x1, x0, dt, p)[:POINTS], expected)


def svcev(rng: np.random.Generator) -> dict[str, float]:
    fourier, heston = density("fourier", SVCEV()), density("exact", Heston())
    p = draw_parameters(rng, "train", 2 * BATCH)
    p = p[2 * p[:, 0] * p[:, 1] / p[:, 2] ** 2 > 2][:BATCH]
    half = np.append(p, np.full((len(p), 1), 0.5), 1)
    x1, x0, dt = draw_svcev_transitions(rng, half, lowest=0.01)
    expected = np.asarray(heston.log_prob_batch(x1, x0, dt, p))
    return microseconds(fourier, x1, x0, dt, half) | relative(fourier.log_prob_batch(x1, x0, dt, half), expected)


def measure() -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(20260101)
    return {"bdfs": bdfs(rng), "svcev": svcev(rng)}


if __name__ == "__main__":
    run("reference_densities", __doc__, measure)

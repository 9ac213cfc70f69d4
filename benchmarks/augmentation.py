"""How far is data augmentation from the SVCEV likelihood at each resolution, and what does it cost?

    nice python benchmarks/augmentation.py [--record]

The paper's validation table (its appendix D): log likelihood of 100 observations at mu*, dt = 0.5, with M steps and S paths a
transition. The paper compares with the same estimator at M = 1500, S = 3000; here the reference is Fourier's method, which is
near exact, and the data are a trajectory of our own. The relative error is that of one run, its mean over independent
repetitions, with a 95 % interval for that mean. Bias is the error of their average. Some minutes on two cores.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np
from errors import star, trajectory
from recording import run

from fokkerflow.densities import density
from fokkerflow.inference import log_likelihoods
from fokkerflow.sde.models import SVCEV
from fokkerflow.sde.series import Series

DT, OBSERVATIONS, SEED = 0.5, 100, 1
# steps, paths, repetitions, the paper's relative error
TABLE = (
    (46, 93, 250, 3.504e-3),
    (93, 187, 100, 2.082e-3),
    (187, 375, 30, 1.409e-3),
    (375, 750, 10, 1.018e-3),
    (750, 1500, 4, 7.17e-4),
    (1000, 2500, 2, 5.46e-4),
)


def row(series: Series, exact: float, coordinates: str, steps: int, paths: int, repetitions: int) -> dict[str, Any]:
    sde = SVCEV()
    x0, x1, dt, _ = series.transitions()
    d = density("data-augmentation", sde, steps=steps, paths=paths, antithetic=False, coordinates=coordinates)
    keys = jax.random.split(jax.random.key(SEED), repetitions)
    found, seconds = [], np.inf  # the shortest: the first repetition compiles
    for key in keys:
        started = time.perf_counter()
        estimate = d.estimate(key, x1, x0, dt, sde.typical)
        found.append((*estimate.log_likelihood, float(np.median(estimate.ess))))
        seconds = min(seconds, time.perf_counter() - started)
    values, reported, ess = np.array(found).T
    errors = np.abs(values - exact) / abs(exact)
    half = 1.96 * np.std(errors, ddof=1) / np.sqrt(repetitions)
    return {
        "steps": steps,
        "paths": paths,
        "repetitions": repetitions,
        "log likelihood": round(float(values.mean()), 3),
        "relative error": float(f"{errors.mean():.3e}"),
        "95 % interval": [float(f"{errors.mean() + s * half:.3e}") for s in (-1, 1)],
        "bias": round(float(values.mean() - exact), 3),
        "standard deviation": round(float(np.std(values, ddof=1)), 3),
        "standard deviation it reports": round(float(np.sqrt(np.mean(reported**2))), 3),
        "median effective sample size": round(float(np.median(ess)), 1),
        "us a transition": round(1e6 * seconds / len(dt), 1),
    }


def measure() -> dict[str, Any]:
    series = trajectory(SVCEV(), DT, OBSERVATIONS, SEED)
    exact = float(np.asarray(log_likelihoods(density("fourier", SVCEV()), series, star(SVCEV())))[0])
    plain = [row(series, exact, "plain", *line[:3]) | {"the paper's relative error": line[3]} for line in TABLE]
    unbounded = [row(series, exact, "unbounded", *line[:3]) for line in TABLE[:3]]
    return {"reference log likelihood": round(exact, 4), "plain": plain, "unbounded": unbounded}


if __name__ == "__main__":
    run("augmentation", __doc__, measure)

"""How long does a Heston posterior take, and how far is the trained density's from the exact one's?

    taskset -c 0,1 python benchmarks/posterior.py [--record]

The paper's experiment: 349 transitions half a year apart. NUTS (4 chains of 1 000 after 1 000, compilation counted) and the
paper's slice sampler (13 000 sweeps) with the trained density; NUTS with the exact density twice, 2 chains of 1 000 after 400
with different seeds: the distance between those two is the sampling floor of the Wasserstein distance. Distances are of 2 000
draws (exact optimal transport), in the paper's units and in posterior standard deviations. How far the trained density moves
the posterior means is found by giving its draws the exact density's weights, which has less noise than means of chains. Most
of the time goes into the exact density; what is done so far is told on standard error.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import ot
from likelihood import trained_heston
from recording import run

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fokkerflow.densities import Density, density  # noqa: E402
from fokkerflow.inference import Posterior, Prior, diagnose, log_likelihoods  # noqa: E402
from fokkerflow.sde.models import Heston  # noqa: E402
from fokkerflow.sde.series import Series  # noqa: E402
from fokkerflow.sde.simulate import simulate  # noqa: E402

NAMES = Heston.parameters
NUTS = {"draws": 1000, "warmup": 1000, "chains": 4}
EXACT = {"draws": 1000, "warmup": 400, "chains": 2}
SLICE = {"draws": 2500, "warmup": 750, "chains": 4}
"""13 000 sweeps in all."""
TRANSPORTED = 2000


def sampled(posterior: Posterior, sampler: str, seed: int, **lengths: int) -> tuple[np.ndarray, dict[str, Any]]:
    jax.clear_caches()
    started = time.perf_counter()
    data = posterior.sample(sampler, seed=seed, pointwise=False, **lengths)
    seconds = time.perf_counter() - started
    result = diagnose(data)
    draws = np.stack([data.posterior[name].values.ravel() for name in NAMES], axis=1)
    found = {
        "seconds": round(seconds, 1),
        "largest_r_hat": round(max(result.r_hat.values()), 4),
        "least_ess": round(min(*result.ess_bulk.values(), *result.ess_tail.values())),
        "divergences": result.divergences,
    }
    print(sampler, type(posterior.density).__name__, found, file=sys.stderr, flush=True)
    return draws, found


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The empirical Wasserstein-2 distance between evenly thinned draws."""
    a, b = (x[np.linspace(0, len(x) - 1, TRANSPORTED).astype(int)] for x in (a, b))
    weights = np.full(TRANSPORTED, 1 / TRANSPORTED)
    return float(np.sqrt(ot.emd2(weights, weights, ot.dist(a, b), numItermax=10**7)))


def importance_shift(trained: Density, exact: Density, series: Series, draws: np.ndarray) -> np.ndarray:
    """The mean of the trained density's draws less that of the same draws with the exact density's weights.

    Both means have the same Monte Carlo error, so that hardly any of it is left in the difference.
    """
    log_w = np.asarray(log_likelihoods(exact, series, draws)) - np.asarray(log_likelihoods(trained, series, draws))
    w = np.exp(log_w - log_w.max())
    return draws.mean(0) - w @ draws / w.sum()


def _named(values: np.ndarray) -> dict[str, float]:
    return dict(zip(NAMES, np.round(values, 4).tolist(), strict=True))


def measure() -> dict[str, Any]:
    series = simulate(Heston(), Heston.typical, dt=0.5, n=350, burn_in=350, seed=1)
    name, trained = trained_heston()
    prior = Prior(Heston(), law=trained.trained.law)
    exact = Posterior(density("exact", Heston()), series, prior)
    flow = Posterior(trained, series, prior)
    ours, nuts_run = sampled(flow, "nuts", 3, **NUTS)
    paper, slice_run = sampled(flow, "slice", 4, **SLICE)
    first, first_run = sampled(exact, "nuts", 1, **EXACT)
    second, second_run = sampled(exact, "nuts", 2, **EXACT)
    mean, sd = first.mean(0), first.std(0)
    return {
        "density": name,
        "nuts": nuts_run,
        "slice": slice_run,
        "nuts_exact": [first_run, second_run],
        "w2": {
            "floor_exact_to_exact": round(distance(first, second), 4),
            "nuts_to_exact": round(distance(ours, first), 4),
            "slice_to_exact": round(distance(paper, first), 4),
        },
        "w2_in_standard_deviations": {
            "floor_exact_to_exact": round(distance((first - mean) / sd, (second - mean) / sd), 4),
            "nuts_to_exact": round(distance((ours - mean) / sd, (first - mean) / sd), 4),
        },
        "mean_shift_in_sd": _named(importance_shift(trained, exact.density, series, ours) / sd),
        "difference_of_chain_means_in_sd": _named((ours.mean(0) - mean) / sd),
        "difference_of_two_exact_chain_means_in_sd": _named((second.mean(0) - mean) / sd),
    }


if __name__ == "__main__":
    run("posterior", __doc__, measure)

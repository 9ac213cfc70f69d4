"""How often do the checks of a posterior raise an alarm: when nothing is wrong, and when something is?

    python benchmarks/trust.py [--record]

PIT: an Ornstein-Uhlenbeck model is fitted to its own data, and to data of other models with the same mean reversion and
variance. Calibration: ranks of the truth among draws whose standard deviation is too small. The recorded answer is in
results/trust.json.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from recording import run
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))
import fokkerflow as ff
from fokkerflow.inference.pit import pit
from fokkerflow.inference.ranks import Calibration
from tests.inference.ou_posterior import ou_draws

DT, DATASETS = 0.1, 200
P = np.array([2.0, 0.5, 0.3])
Noise = Callable[[np.random.Generator, int], np.ndarray]


def clusters(rng: np.random.Generator, n: int) -> np.ndarray:
    """Stochastic volatility: a log standard deviation of persistence 0.95 per step, and standard deviation 0.5."""
    h = np.zeros(n)
    for i in range(1, n):
        h[i] = 0.95 * h[i - 1] + 0.5 * np.sqrt(1 - 0.95**2) * rng.normal()
    return rng.normal(size=n) * np.exp(h - 0.25)


NOISES: dict[str, Noise] = {
    "nothing": lambda rng, n: rng.normal(size=n),
    "noise with tails of Student's t, 4 degrees of freedom": lambda rng, n: rng.standard_t(4, n) / 2**0.5,
    "one move of six standard deviations": lambda rng, n: np.where(np.arange(n) == n // 2, 6.0, rng.normal(size=n)),
    "noise with autocorrelation 0.2": lambda rng, n: np.convolve(rng.normal(size=n + 1), [0.979, 0.2043])[1 : n + 1],
    "stochastic volatility": clusters,
}


def linear(noise: np.ndarray) -> ff.Series:
    decay = np.exp(-P[0] * DT)
    sd, x = P[2] * np.sqrt((1 - decay**2) / (2 * P[0])), [P[1]]
    for z in noise:
        x.append(P[1] + (x[-1] - P[1]) * decay + sd * z)
    return ff.Series(DT * np.arange(len(x)), x)


def alarms(paths: list[ff.Series], rng: np.random.Generator) -> float:
    """The share of data sets for which the verdict is that the model is wrong."""
    exact = ff.density("exact", ff.OU())
    return float(np.mean([not pit(exact, path, ou_draws(path, rng), at_most=20).ok for path in paths]))


def of_models(n: int) -> dict[str, float]:
    rng = np.random.default_rng(n)
    found = {name: alarms([linear(noise(rng, n)) for _ in range(DATASETS)], rng) for name, noise in NOISES.items()}
    cir = ff.simulate_paths(ff.CIR(), [0.1, 2.0, 0.5], dt=DT, n=n + 1, seed=n, paths=DATASETS)
    wells = ff.simulate_paths(ff.DoubleWell(), [2.0, 0.8], dt=DT, n=n + 1, seed=n, paths=DATASETS)
    for name, paths in (("square-root noise", cir), ("a double well", wells)):
        found[name] = alarms([ff.Series(DT * np.arange(n + 1), path) for path in paths], rng)
    return found


def of_posteriors(simulations: int, narrower: float) -> float:
    """The share of calibrations with an alarm: Gaussian posteriors of five parameters, one of which is too narrow."""
    rng = np.random.default_rng(simulations)

    def alarm() -> bool:
        below = rng.uniform(size=(simulations, 6))
        below[:, 0] = stats.norm.cdf(rng.normal(size=simulations) / narrower)
        ranks = rng.binomial(99, below)
        return not Calibration(tuple("abcdef"), ranks, 99, np.zeros((simulations, 5))).ok

    return float(np.mean([alarm() for _ in range(DATASETS)]))


def measure() -> dict[str, Any]:
    return {
        "share of data sets for which PIT calls the model wrong, by what is wrong": {
            f"{n} transitions": of_models(n) for n in (100, 350, 1000)
        },
        "share of calibrations that call the posterior wrong, by the ratio of its standard deviation to the right one": {
            f"{s} simulations": {str(r): of_posteriors(s, r) for r in (1.0, 0.9, 0.8, 0.7, 0.5)} for s in (100, 300, 1000)
        },
    }


if __name__ == "__main__":
    run("trust", __doc__, measure)

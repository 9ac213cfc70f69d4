"""Which choices of the default trainer matter, and how much? One row for each, everything else as it is.

    python benchmarks/ablation.py [--record]        # or: fokkerflow benchmark ablation

Heston's model, the paper's training law, gaps up to 0.5, a short training of the same length for every row. The anchor itself
and the density form cannot be taken out of this trainer, in which the gap is an input: benchmarks/neural_galerkin.py has the
paper's start beside the anchored one, for a march in time. Rows are kept in out/ablation.json as they come, and a run that was
cut short goes on where it was; delete that file to start afresh. With --record the answer is kept in results/ablation.json.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from errors import log_ratios, relative_errors, star, trajectory
from recording import run

from fokkerflow import Heston, train
from fokkerflow.densities import density
from fokkerflow.flow import weights
from fokkerflow.flow.chart import Identity, Log, Power
from fokkerflow.training import laws

DONE = Path(__file__).parents[1] / "out" / "ablation.json"
DT, BASE = 0.5, {"points": 5000, "iterations": 30}
ROWS: Mapping[str, Mapping[str, Any]] = {
    "as it is": {},
    "another seed": {"seed": 1},
    "4 components": {"components": 4},
    "8 components": {"components": 8},
    "20 components": {"components": 20},
    "means of components less spread (0.5)": {"spread": 0.5},
    "one more mixture layer": {"layers": 3},
    "width 8": {"width": 8},
    "width 24": {"width": 24},
    "one hidden layer": {"depth": 1},
    "GRU instead of MLP": {"network": "gru"},
    "log chart": {"charts": (Log(0.0), Identity())},
    "square-root chart": {"charts": (Power(0.0, exponent=0.5), Identity())},
    "2500 points": {"points": 2500},
    "10000 points": {"points": 10000},
    "no memory": {"memory": 0.0},
    "memory 0.8": {"memory": 0.8},
    "no points spread out": {"spreads": (1.0,)},
    "no weights by depth": {"tail_depth": float("inf")},
    "plain squares": {"cutoff": 1e9},
    "bounded by Huber": {"robustness": 0.5},
    "first damping 1": {"damping": 1.0},
}


def row(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Train, and measure: what a user feels, and what the trainer sees."""
    jax.clear_caches()  # every row compiles anew, so that seconds compare
    q, p = train(Heston(), "paper", DT, **{**BASE, **overrides}), density("exact", Heston())
    record, series = q.trained.record, trajectory(Heston(), DT, 350, seed=1)
    _, test = laws.shipped("paper-test", Heston()).sample(np.random.default_rng(1), 100)
    ratio, errors = log_ratios(q, p, DT, laws.shipped("paper", Heston()), 2048, seed=1), relative_errors(q, p, series, test)
    figures = {
        "rms error of log q": np.sqrt(np.mean(ratio**2)),
        "log likelihood at mu*": relative_errors(q, p, series, star(Heston()))[0],
        "test law, median": np.median(errors),
        "test law, mean": np.mean(errors),
        "residual": record.history[-1],
    }
    return {"weights": int(weights(q.trained.flow)[0].size), "seconds": round(record.seconds, 1)} | {
        name: float(f"{value:.2g}") for name, value in figures.items()
    }


def measure() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(DONE.read_text()) if DONE.exists() else {}
    for name in [name for name in ROWS if name not in answer]:
        started = time.perf_counter()
        answer[name] = row(ROWS[name])
        print(f"{name}: {answer[name]} ({time.perf_counter() - started:.0f} s)", file=sys.stderr, flush=True)
        DONE.parent.mkdir(exist_ok=True)
        DONE.write_text(json.dumps(answer, indent=2))
    return answer


if __name__ == "__main__":
    run("ablation", __doc__, measure)

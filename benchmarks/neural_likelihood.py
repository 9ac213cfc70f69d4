"""In a minute, what does an equation teach, and what do simulations? Gauss-Newton against neural likelihood estimation.

    python benchmarks/neural_likelihood.py [--record]        # or: fokkerflow benchmark neural_likelihood
    SBI_PYTHON=/path/to/python python benchmarks/neural_likelihood.py        # sbi in an environment of its own

Heston's model with the paper's law and a gap of 0.5, against the exact density. Every method has a minute of wall time on this
machine, compilation and simulation included, imports not:

- space-time Gauss-Newton, preset "fast"; what it has when its 40 iterations are done, and after the minute;
- neural likelihood estimation with the same flow, for the same gaps, from fresh simulations;
- the same for the one gap of 0.5, which is all that is asked of it here;
- sbi's NLE as it comes (a masked autoregressive flow, Adam, a tenth of the simulations for validation), for that one gap too,
  and with what is known about the model: it sees log v, y - y0 and no y0. Without sbi (extra `compare`) it is left out.

Errors of log q are at draws of the process itself, with starts and parameters from the training law; those of log likelihoods
as the paper defines them. With --record the answer is kept in results/neural_likelihood.json.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from errors import star, trajectory
from jaxtyping import Float
from recording import run

from fokkerflow import Heston
from fokkerflow.densities import Density, Surrogate, density
from fokkerflow.flow import weights
from fokkerflow.training import Conditions, Gaps, GaussNewton, Record, Trained, fit, gauss_newton, laws, sequence_for
from fokkerflow.training.presets import preset_with
from fokkerflow.training.simulated import transitions

SECONDS = float(os.environ.get("SECONDS_EACH", "60"))
DT, SEED, OBSERVATIONS, TEST_DRAWS, ROWS_OF_LAW = 0.5, 0, 350, 100, 6
NARROW = 1e-3
"""Share of the gap by which the gaps of a training for one gap differ: a law of gaps cannot be a point."""
SBI_SIMULATIONS, SUBSTEPS, REFERENCE_SUBSTEPS = 100_000, 100, 1000
SDE, LAW = Heston(), laws.shipped("paper", Heston())


class Places(NamedTuple):
    """Transitions in rows: first those of the training law, then the data with mu* and with each draw of the test law."""

    x0: Float[np.ndarray, "k m 2"]
    x1: Float[np.ndarray, "k m 2"]
    p: Float[np.ndarray, "k m 5"]


def places() -> Places:
    x0, x1, _, _ = trajectory(SDE, DT, OBSERVATIONS, seed=1).transitions()
    p = np.concatenate([star(SDE), laws.shipped("paper-test", SDE).sample(np.random.default_rng(1), TEST_DRAWS)[1]])
    drawn = simulated(ROWS_OF_LAW * len(x0), REFERENCE_SUBSTEPS, seed=1)
    of_law = (part.reshape(ROWS_OF_LAW, len(x0), -1) for part in drawn)
    of_data = (np.tile(x0, (len(p), 1, 1)), np.tile(x1, (len(p), 1, 1)), np.repeat(p[:, None], len(x0), axis=1))
    return Places(*(np.concatenate(parts) for parts in zip(of_law, of_data, strict=True)))


def simulated(n: int, substeps: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts from the training law, ends after the gap, and parameters."""
    x0, p = LAW.sample(np.random.default_rng(seed), n)
    conditions = Conditions(np.zeros(n), np.full(n, DT), x0, p, np.zeros((n, 0)))
    drawn = transitions(jax.random.key(seed), SDE, conditions, substeps=substeps)
    return np.asarray(drawn.x0), np.asarray(drawn.x1), np.asarray(drawn.p)


def of_density(q: Density, at: Places) -> Float[np.ndarray, "k m"]:
    """Row by row, so that one program of moderate size serves."""
    return np.stack([np.asarray(q.log_prob_batch(x1, x0, DT, p)) for x0, x1, p in zip(*at, strict=True)])


def errors(log_q: Float[np.ndarray, "k m"], log_p: Float[np.ndarray, "k m"]) -> dict[str, Any]:
    local = (log_q - log_p)[:ROWS_OF_LAW].ravel()
    found, exact = log_q[ROWS_OF_LAW:].sum(axis=1), log_p[ROWS_OF_LAW:].sum(axis=1)
    relative = np.abs(found - exact) / np.abs(exact)
    rounded = {
        "rms error of log q over the training law": np.sqrt(np.mean(local**2)),
        "median error of log q over the training law": np.median(np.abs(local)),
        "relative error of the log likelihood at mu*": relative[0],
        "mean over the test law": np.mean(relative[1:]),
        "median over the test law": np.median(relative[1:]),
    }
    return {name: float(f"{value:.3g}") for name, value in rounded.items()} | {
        "values of log q that are not finite": int(np.sum(~np.isfinite(log_q)))
    }


def by_equation(evaluate: Callable[[Density], dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The preset as it is, and beyond its last iteration if there is time. The clock stops while the density is measured."""
    chosen, gaps, started = preset_with("gauss-newton", "fast", {}, SDE), Gaps(1e-3 * DT, DT), time.perf_counter()
    settings = chosen.trainer
    if not isinstance(settings, GaussNewton):
        raise TypeError(settings)
    flow = chosen.flow.build(LAW, gaps, SEED)
    state, sequence, (_, with_weights) = gauss_newton.start(flow, settings), sequence_for(flow, LAW, gaps, SEED), weights(flow)
    spent = time.perf_counter() - started

    def measured() -> dict[str, Any]:
        record = Record("gauss-newton", "fast", SEED, {}, "", (), spent)
        sizes = {"seconds": round(spent, 1), "iterations": state.iteration, "weights": int(state.theta.size)}
        return sizes | evaluate(Surrogate(Trained(with_weights(state.theta), None, LAW, gaps, record)))

    while spent < SECONDS:
        started = time.perf_counter()
        state, _ = gauss_newton.iterate(flow, settings, state, sequence.take(settings.points))
        spent += time.perf_counter() - started
        if state.iteration == settings.iterations:
            yield "Gauss-Newton, fast", measured()
    yield "Gauss-Newton, fast, for the whole time", measured()


def by_simulation(evaluate: Callable[[Density], dict[str, Any]], **options: Any) -> dict[str, Any]:
    trained = fit(SDE, LAW, DT, method="simulation", preset="fast", seed=SEED, seconds=SECONDS, **options)
    steps, points = len(trained.record.history), trained.record.settings["points"]
    sizes = {"steps": steps, "simulated transitions": steps * points, "weights": int(weights(trained.flow)[0].size)}
    return {"seconds": round(trained.record.seconds, 1), **sizes, **evaluate(Surrogate(trained))}


def by_sbi(at: Places, log_p: Float[np.ndarray, "k m"]) -> dict[str, Any]:
    """Its density of (log v, y - y0) given (v0, parameters), turned into one of (v, y)."""
    python = os.environ.get("SBI_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", "import sbi.inference"], capture_output=True, text=True, check=False)
    if found.returncode:
        why = (found.stderr.strip() or "no message").splitlines()[-1]
        return {"left out": f"{why}: install the extra 'compare', or name a Python that has sbi in SBI_PYTHON"}
    started = time.perf_counter()
    x0, x1, p = simulated(SBI_SIMULATIONS, SUBSTEPS, seed=SEED)
    simulation = time.perf_counter() - started
    rows = (part.reshape(-1, part.shape[-1]) for part in at)
    asked = dict(zip(("theta", "x", "theta_at", "x_at"), (*_for_sbi(x0, x1, p), *_for_sbi(*rows)), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "asked.npz", **asked, seconds=SECONDS - simulation, seed=SEED)
        child = [python, "-W", "ignore", "-c", f"import sbi_side; sbi_side.answer({folder!r})"]
        subprocess.run(child, cwd=folder, env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)}, check=True)
        with np.load(Path(folder) / "found.npz") as answer:
            log_q = answer["log_q"].reshape(log_p.shape) - np.log(at.x1[..., 0])
            sizes = {"epochs": int(answer["epochs"]), "weights": int(answer["weights"])}
            spent = simulation + float(answer["seconds"])
    return {"seconds": round(spent, 1), **sizes, "simulated transitions": SBI_SIMULATIONS, **errors(log_q, log_p)}


def _for_sbi(x0: np.ndarray, x1: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([x0[:, :1], p], axis=1), np.stack([np.log(x1[:, 0]), x1[:, 1] - x0[:, 1]], axis=1)


def measure() -> dict[str, Any]:
    at = places()
    log_p = of_density(density("exact", SDE), at)

    def evaluate(q: Density) -> dict[str, Any]:
        return errors(of_density(q, at), log_p)

    return {
        "seconds each": SECONDS,
        **dict(by_equation(evaluate)),
        "neural likelihood, our flow, all gaps": by_simulation(evaluate),
        "neural likelihood, our flow, one gap": by_simulation(evaluate, shortest=(1 - NARROW) * DT),
        "neural likelihood, sbi, one gap": by_sbi(at, log_p),
    }


if __name__ == "__main__":
    run("neural_likelihood", __doc__, measure)

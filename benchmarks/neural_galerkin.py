"""What do the paper's three settings of Neural Galerkin cost on this machine, and what does a reduced one reach?

    python benchmarks/neural_galerkin.py train          # a quarter of an hour; out/ng-*.fkf, resumable
    python benchmarks/neural_galerkin.py rates          # out/ng-rates.json, resumable
    python benchmarks/neural_galerkin.py [--record]

Four answers. Seconds of one right-hand side of the ODE of theta (draw, residual, Jacobian, least squares) at the paper's full
settings, and hours if a march takes as many right-hand sides as the reduced one did; those are seconds of processor time too,
which other programs on the machine do not lengthen. Accuracy of the reduced march for Heston's model, with the paper's
definitions. The flux through its artificial boundary, as in the paper's table. What the penalised zero-flux variant does where
the boundary is felt. With --record the answer is kept in results/neural_galerkin.json.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from errors import relative_errors, relative_l2, trajectory
from recording import run

from fokkerflow import BDFS, OU, SVCEV, Heston, Law, Uniform
from fokkerflow.densities import Surrogate, density, load
from fokkerflow.flow import weights
from fokkerflow.inference import log_likelihoods
from fokkerflow.sde.model import SDE
from fokkerflow.training import Gaps, NeuralGalerkin, Progress, Trained, artifact, boundary_flux, fit, laws, sequence_for
from fokkerflow.training.felt_weights import felt_weights
from fokkerflow.training.galerkin_system import draw_places, interior_rows
from fokkerflow.training.neural_galerkin import dense_output_error
from fokkerflow.training.presets import preset_with

OUT = Path(__file__).parents[1] / "out"
RATES = OUT / "ng-rates.json"
DT, SEED = 0.5, 0
STAGES = 7
TIGHT_BOX = ((-1.0, 1.0),)
_NARROW = {"kappa": Uniform(1.4, 1.6), "mean": Uniform(0, 0.2), "sigma": Uniform(0.55, 0.65)}
TIGHT_LAW = Law(OU(), {"x": Uniform(-0.2, 0.2)}, _NARROW)
PENALTIES = (None, 1.0, 0.1, 0.01)


def train(presets: Sequence[str]) -> None:
    """The reduced and the anchored march, each in a file; a run that was cut short goes on where it was."""
    OUT.mkdir(exist_ok=True)
    for preset in presets:
        file = OUT / f"ng-{preset}.fkf"
        if file.exists():
            continue
        checkpoint = file.with_suffix(".checkpoint")
        options = {"method": "neural-galerkin", "preset": preset, "seed": SEED, "checkpoint": checkpoint}
        processor = time.process_time()
        trained = fit(Heston(), "paper", DT, progress=_Lines(), **options)
        print(
            f"{file}: {trained.record.seconds:.0f} s, processor {time.process_time() - processor:.0f} s in this run", flush=True
        )
        artifact.save(file, trained)
        checkpoint.unlink()


class _Lines:
    """A line every fifteen seconds."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.share == 1 or time.monotonic() - self._last > 15:
            self._last = time.monotonic()
            left = f"{progress.seconds:.0f} s spent, {progress.seconds_left:.0f} s left"
            print(f"{progress.where}: residual {progress.residual:.2e}, {left}", flush=True)


def right_hand_side(sde: SDE, solver: str) -> dict[str, Any]:
    """Wall and processor seconds of one right-hand side at the paper's setting of a model, compilation not counted."""
    preset = preset_with("neural-galerkin", "paper", {"solver": solver}, sde)
    settings, gaps = preset.trainer, Gaps(1e-3 * DT, DT)
    if not isinstance(settings, NeuralGalerkin):
        raise TypeError(settings)
    law = laws.shipped("paper", sde)
    flow = preset.flow.build(law, gaps, SEED)
    felt, conditions = jnp.asarray(felt_weights(flow)), sequence_for(flow, law, gaps, SEED).take(settings.points)
    theta, with_weights = weights(flow)
    theta = theta + 1e-2 * jax.random.normal(jax.random.key(0), theta.shape)  # away from the start, where derivatives vanish

    def rate(theta: jax.Array) -> jax.Array:
        places = draw_places(with_weights(theta), jnp.asarray(0.1), conditions, settings.draws, jnp.ones(1))
        rows = interior_rows(with_weights(theta), jnp.asarray(0.1), places, settings.form, settings.cutoff)
        return settings.least_squares.solve(flow, theta, rows, felt)

    compiled = jax.jit(rate).lower(theta).compile()
    wall, processor = time.perf_counter(), time.process_time()
    jax.block_until_ready(compiled(theta))
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return {
        "weights": int(theta.size),
        "of which are felt": int(felt.size),
        "points": settings.points,
        "seconds": round(wall, 2),
        "processor seconds": round(processor, 2),
    }


def rates() -> None:
    """One right-hand side of each of the paper's settings by each solver, kept in a file; what is there is not repeated."""
    OUT.mkdir(exist_ok=True)
    for solver in ("cholesky", "lsmr"):
        for sde in (Heston(), SVCEV(), BDFS()):
            known = json.loads(RATES.read_text()) if RATES.exists() else {}
            if solver not in known.get(sde.name, {}):
                known.setdefault(sde.name, {})[solver] = right_hand_side(sde, solver)
                RATES.write_text(json.dumps(known, indent=2))
                print(sde.name, solver, known[sde.name][solver], flush=True)


def full_settings(right_hand_sides: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"right-hand sides of a march, as many as the reduced one took": right_hand_sides}
    for name, costs in json.loads(RATES.read_text()).items():
        hours = {solver: round(cost["processor seconds"] * right_hand_sides / 3600, 1) for solver, cost in costs.items()}
        answer[name] = {**costs, "processor hours of a march": hours}
    return answer


def accuracy(trained: Trained) -> dict[str, Any]:
    """The paper's figures for Heston's model, against the exact density."""
    sde, surrogate = Heston(), Surrogate(trained)
    exact, series = density("exact", sde), trajectory(sde, DT, 350, seed=1)
    star = np.array([[sde.typical[name] for name in sde.parameters]])
    rng = np.random.default_rng(2)
    _, p = laws.shipped("paper-test", sde).sample(rng, 100)
    errors = relative_errors(surrogate, exact, series, p)
    x0, inside = laws.shipped("paper", sde).sample(rng, 100)
    l2 = {"paper": relative_l2(surrogate, exact, DT, x0, inside), "paper-test": relative_l2(surrogate, exact, DT, x0, p)}
    return {
        "relative error of the log likelihood at mu*": float(relative_errors(surrogate, exact, series, star)[0]),
        "the same, nats a transition": float(
            np.abs(log_likelihoods(surrogate, series, star) - log_likelihoods(exact, series, star))[0] / (len(series.times) - 1)
        ),
        "over the test law": _summary(errors),
        "relative L2 error of the density, parameters from the test law": _summary(l2["paper-test"]),
        "relative L2 error of the density, parameters from the training law": _summary(l2["paper"]),
    }


def march(trained: Trained) -> dict[str, Any]:
    steps = len(trained.path.taus) - 1 if trained.path is not None else 0
    attempts = len(trained.record.history)
    theta, _ = weights(trained.flow)
    return {
        "weights": int(theta.size),
        "points": trained.record.settings["points"],
        "minutes": round(trained.record.seconds / 60, 1),
        "steps": steps,
        "attempts": attempts,
        "right-hand sides": STAGES * attempts,
    }


def between_steps(trained: Trained, knots: int = 6) -> dict[str, float]:
    """Error of the dense output in the middle of steps, root mean square in log q over draws of the flow."""
    stored = trained.record.settings
    settings = NeuralGalerkin(**{**stored, "spreads": tuple(stored["spreads"])})
    conditions = sequence_for(trained.flow, trained.law, trained.gaps, SEED + 1).take(settings.points)
    if trained.path is None:
        raise ValueError("The density has no path.")
    chosen = np.linspace(2, len(trained.path.taus) - 2, knots).astype(int)
    felt = felt_weights(trained.flow)
    errors = [dense_output_error(trained.flow, settings, trained.path, felt, int(k), conditions) for k in chosen]
    return {"tolerance of a step": settings.tolerance, "median": float(np.median(errors)), "largest": max(errors)}


def flux(trained: Trained, conditions: int = 100, times: int = 40) -> dict[str, Any]:
    """As in the paper's table: 100 draws of the training law, trapezoidal rule in time."""
    taus = jnp.concatenate([jnp.zeros(1), jnp.geomspace(1e-4, trained.gaps.longest, times)])
    x0, p = trained.law.sample(np.random.default_rng(3), conditions)
    found = boundary_flux(trained.at, taus, jnp.asarray(x0), jnp.asarray(p))
    return {
        "integrated": _summary(np.asarray(found.integrated)),
        "maximum": _summary(np.asarray(found.maximum)),
    }


def penalty() -> dict[str, Any]:
    """The OU process in a box of 2.9 stationary standard deviations, with and without the penalty on the flux."""
    answer = {}
    options = {"box": TIGHT_BOX, "layers": 3, "components": 2, "width": 5, "depth": 1, "points": 300, "start_width": 0.05}
    exact = density("exact", OU())
    x0, p = TIGHT_LAW.sample(np.random.default_rng(4), 50)
    x = np.linspace(-0.5, 0.5, 21)[:, None]
    for epsilon in PENALTIES:
        options |= {"damping": 1e-6, "tolerance": 3e-3, "zero_flux": epsilon}
        trained = fit(OU(), TIGHT_LAW, DT, method="neural-galerkin", preset="reduced", **options)
        found = boundary_flux(trained.at, jnp.linspace(0, DT, 60), jnp.asarray(x0), jnp.asarray(p))
        difference = np.asarray(Surrogate(trained).log_prob_batch(x, x0[:, None], DT, p[:, None])) - np.asarray(
            exact.log_prob_batch(x, x0[:, None], DT, p[:, None])
        )
        answer["none" if epsilon is None else f"epsilon {epsilon:g}"] = {
            "integrated flux, mean": float(np.mean(found.integrated)),
            "maximum flux, mean": float(np.mean(found.maximum)),
            "median error of log q against the process without a boundary": float(np.median(np.abs(difference))),
            "steps": len(trained.record.history),
        }
    return answer


def _summary(values: np.ndarray) -> dict[str, float]:
    finite = values[np.isfinite(values)]
    statistics = {"mean": np.mean(finite), "sd": np.std(finite, ddof=1), "median": np.median(finite), "largest": np.max(finite)}
    return {**{name: float(value) for name, value in statistics.items()}, "not finite": int(values.size - finite.size)}


def measure() -> dict[str, Any]:
    trained = {name: load(OUT / f"ng-{name}.fkf").trained for name in ("anchored", "reduced")}
    answer: dict[str, Any] = {name: {"march": march(t), "accuracy": accuracy(t)} for name, t in trained.items()}
    answer["reduced"]["flux through the artificial boundary"] = flux(trained["reduced"])
    answer["reduced"]["dense output"] = between_steps(trained["reduced"])
    answer["zero-flux penalty"] = penalty()
    answer["full settings"] = full_settings(answer["reduced"]["march"]["right-hand sides"])
    return answer


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        jax.config.update("jax_enable_x64", True)
        train(sys.argv[2:] or ("reduced", "anchored"))
    elif sys.argv[1:] == ["rates"]:
        jax.config.update("jax_enable_x64", True)
        rates()
    else:
        run("neural_galerkin", __doc__, measure)

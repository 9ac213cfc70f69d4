"""Simulation-based calibration: do posteriors hold the truth as often as they say? (Talts et al. 2018, Modrák et al. 2023.)

    theta ~ prior,   data ~ simulator(theta),   theta_1 .. theta_L ~ posterior(data),   rank = #{ l : theta_l < theta }

Over repetitions the rank is uniform on 0 .. L if density, sampler and prior are right. The starting state is the same in every
simulation: the likelihood conditions on it, so it must not tell anything about theta.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from fokkerflow.densities.density import Density, check_gaps
from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.inference.draws import exactly, parameter_draws, pooled
from fokkerflow.inference.errors import InferenceError
from fokkerflow.inference.likelihood import log_likelihoods
from fokkerflow.inference.posterior import Posterior
from fokkerflow.inference.prior import Prior
from fokkerflow.inference.ranks import Calibration
from fokkerflow.inference.run_file import check_same, digest
from fokkerflow.sde.series import Series
from fokkerflow.sde.simulate import SimulationError, observation_times, simulate
from fokkerflow.sde.validation import state_vector
from fokkerflow.training import container
from fokkerflow.training.checkpoint import fingerprint

Sampler = Callable[[Series, int], Any]
"""From data and a seed to posterior draws, in any form that `parameter_draws` takes."""

FEWEST = 20
_KIND = "calibration"


class CalibrationProgress(NamedTuple):
    """Where a calibration is; `seconds_left` is to be expected, and infinite as long as nobody knows."""

    where: str
    share: float
    seconds: float
    seconds_left: float


class _Done(NamedTuple):
    """What there is so far: ranks (-1 in a failed row), truths, and failures by simulation."""

    ranks: Int[np.ndarray, "s q"]
    truths: Float[np.ndarray, "s n"]
    failed: dict[int, str]


def posterior_sampler(density: Density, prior: Prior, **options: Any) -> Sampler:
    """`Posterior.sample`, by default four short chains of NUTS; the options are its own."""
    options = {"draws": 250, "warmup": 250, "chains": 4, "pointwise": False, **options}

    def sampler(series: Series, seed: int) -> Any:
        return Posterior(density, series, prior).sample(seed=seed, **options)

    return sampler


def calibrate(
    density: Density,
    prior: Prior | None = None,
    *,
    dt: Any,
    n: int,
    x0: Any = None,
    t0: float = 0.0,
    simulations: int = 100,
    of: int = 99,
    sampler: Sampler | None = None,
    substeps: int = 100,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 10.0,
    progress: Callable[[CalibrationProgress], None] | None = None,
) -> Calibration:
    """Simulation-based calibration of everything that stands between data and posterior.

    **Arguments:**

    - `density`: the transition density.
    - `prior`: must be proper; the one of the model by default. That of a trained density is restricted to its law.
    - `dt`, `n`, `x0`, `t0`: gaps, number of observations, first state and first time of the data, as in `fokkerflow.simulate`.
      For your own data ``dt=series.gaps, n=len(series), x0=series.states[0]``.
    - `simulations`: how many; see docs/trust.md for what can be noticed with 100 or 1000.
    - `of`: posterior draws that the truth is ranked among. They are taken evenly spaced, so that they hardly depend on
      each other; ranks among draws that do look like those of a posterior that is too narrow.
    - `sampler`: from ``(series, seed)`` to posterior draws; `posterior_sampler` by default.
    - `substeps`: of the simulation; the error of Euler's method must be small against the posterior's width.
    - `seed`: simulation i depends on the seed and on i alone.
    - `checkpoint`: a file that is written every `checkpoint_every` seconds and at the end. If it exists, the calibration goes
      on from there, also to more simulations than before.
    - `progress`: called after every simulation.

    **Raises:** ValueError for settings that make no sense or a prior that cannot be drawn from; FileError for a checkpoint of
    another calibration. A simulation whose path or posterior fails is counted as failed.
    """
    if simulations < FEWEST or of < 1:
        raise ValueError(f"Got simulations={simulations}, of={of}; expected at least {FEWEST} simulations and 1 draw.")
    prior = _prior(density, prior)
    gaps = np.diff(observation_times(dt, n, 0, t0))
    check_gaps(density, gaps)
    start = state_vector(density.sde, density.sde.start if x0 is None else x0, "x0")
    sample = sampler or posterior_sampler(density, prior)
    key = jax.random.key(seed, impl="threefry2x32")

    def truth(i: int) -> np.ndarray:
        return prior.sample(jax.random.fold_in(key, i), 1)[0]

    def ranks(i: int, p: np.ndarray) -> np.ndarray:
        own = int(np.random.SeedSequence([seed, i]).generate_state(1)[0])
        series = simulate(density.sde, p, start, dt=gaps, n=n, substeps=substeps, t0=t0, seed=own)
        return _ranks(density, series, p, sample(series, own), of)

    settings = _settings(density, prior, gaps, start, t0, of, seed, substeps, sampler)
    file = None if checkpoint is None else Path(checkpoint)
    done = _run(_begin(file, settings, density), truth, ranks, simulations, _saver(file, settings, checkpoint_every), progress)
    good = np.array([i not in done.failed for i in range(simulations)])
    if not good.any():
        raise InferenceError(f"All {simulations} simulations failed. The first: {done.failed[0]}")
    quantities = (*density.sde.parameters, "log likelihood")
    rows, failed = done.ranks[:simulations][good], tuple(text for i, text in done.failed.items() if i < simulations)
    return Calibration(quantities, rows, of, done.truths[:simulations][good], failed, seed)


def _prior(density: Density, prior: Prior | None) -> Prior:
    prior = Prior(density.sde) if prior is None else prior
    if prior.sde != density.sde:
        raise ValueError(f"Got a prior of {prior.sde.label} and a density of {density.sde.label}, expected the same model.")
    return prior.restricted(density.trained.law) if isinstance(density, Surrogate) and prior.law is None else prior


def _ranks(density: Density, series: Series, truth: np.ndarray, draws: Any, of: int) -> Int[np.ndarray, " q"]:
    p = pooled(parameter_draws(density.sde, draws))
    if len(p) < of:
        raise ValueError(f"The sampler gave {len(p)} draws, expected at least of={of} to rank the truth among.")
    p = exactly(p, of)
    value = np.asarray(log_likelihoods(density, series, np.concatenate([truth[None], p])))
    return np.append(np.sum(p < truth, axis=0), np.sum(value[1:] < value[0]))


def _run(
    done: _Done,
    truth: Callable[[int], np.ndarray],
    ranks: Callable[[int, np.ndarray], np.ndarray],
    simulations: int,
    save: Callable[[_Done, bool], None],
    progress: Callable[[CalibrationProgress], None] | None,
) -> _Done:
    clock, first = time.monotonic(), len(done.ranks)
    save(done, True)  # a folder that cannot be written to is noticed now
    try:
        for i in range(first, simulations):
            p, failed = truth(i), done.failed
            try:
                row = ranks(i, p)
            except (SimulationError, InferenceError) as error:
                row, failed = np.full(done.ranks.shape[1], -1), {**failed, i: f"simulation {i}: {error}"}
            done = _Done(np.vstack([done.ranks, row]), np.vstack([done.truths, p]), failed)
            save(done, False)
            if progress is not None:
                seconds, share = time.monotonic() - clock, (i + 1) / simulations
                left = seconds / (i + 1 - first) * (simulations - i - 1)
                progress(CalibrationProgress(f"simulation {i + 1} of {simulations}", share, seconds, left))
    finally:
        save(done, True)
    return done


def _settings(
    density: Density,
    prior: Prior,
    gaps: np.ndarray,
    start: np.ndarray,
    t0: float,
    of: int,
    seed: int,
    substeps: int,
    sampler: Sampler | None,
) -> dict[str, Any]:
    """All that the ranks depend on, except how many there are."""
    return {
        "model": density.sde.label,
        "density": digest(density),
        "prior": prior.words + " " + digest(prior.density.distributions),
        "data": digest([gaps, np.asarray(start), t0]),
        "of": of,
        "seed": seed,
        "substeps": substeps,
        "sampler": "posterior" if sampler is None else getattr(sampler, "__qualname__", type(sampler).__name__),
    }


def _begin(file: Path | None, settings: Mapping[str, Any], density: Density) -> _Done:
    n = len(density.sde.parameters)
    if file is None or not file.exists():
        return _Done(np.empty((0, n + 1), int), np.empty((0, n)), {})
    header, arrays = container.read(file, _KIND)
    check_same(file, header, settings, "calibration")
    return _Done(arrays["ranks"], arrays["truths"], {int(i): text for i, text in header["failed"].items()})


def _saver(file: Path | None, settings: Mapping[str, Any], every: float) -> Callable[[_Done, bool], None]:
    """Writes the checkpoint when the last one is `every` seconds old, or at once."""
    saved = [time.monotonic()]

    def save(done: _Done, now: bool) -> None:
        if file is None or not (now or time.monotonic() - saved[0] >= every):
            return
        failed = {str(i): text for i, text in done.failed.items()}
        header = {"kind": _KIND, "fingerprint": fingerprint(settings), "settings": dict(settings), "failed": failed}
        container.write(file, header, {"ranks": done.ranks, "truths": done.truths})
        saved[0] = time.monotonic()

    return save

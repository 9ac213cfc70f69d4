"""Neural likelihood estimation: what is simulated, what is learned from it, and runs that end early."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fokkerflow.densities import Surrogate, density
from fokkerflow.flow import weights
from fokkerflow.sde.functions import from_functions
from fokkerflow.training import (
    Conditions,
    FileError,
    Gaps,
    MaximumLikelihood,
    Progress,
    Trained,
    TrainingError,
    artifact,
    fit,
    maximum_likelihood,
    sequence_for,
)
from fokkerflow.training.presets import PRESETS, preset_with
from fokkerflow.training.simulated import Transitions, transitions
from tests.training.trainings import OU_LAW

OU, GAPS = OU_LAW.sde, Gaps(1e-3, 1.0)
COMB: dict[str, Any] = {"components": 9, "spread": 0.97, "width": 4, "depth": 1}
"""A flow that starts as a comb of nine narrow Gaussians, so that there is something to learn of a Gaussian law."""
SMALL: dict[str, Any] = {**COMB, "points": 256, "substeps": 50, "rate": 0.03, "steps": 300}
EXACT = density("exact", OU)


def train(**options: Any) -> Trained:
    return fit(OU, OU_LAW, GAPS.longest, method="simulation", **{**SMALL, **options})


@pytest.fixture(scope="module")
def whole() -> tuple[Trained, list[Progress]]:
    reports: list[Progress] = []
    return train(progress=reports.append), reports


@pytest.fixture(scope="module")
def drawn() -> Transitions:
    """Transitions that no training sees."""
    flow = preset_with("simulation", "default", COMB).flow.build(OU_LAW, GAPS, 0)
    return transitions(jax.random.key(7), OU, sequence_for(flow, OU_LAW, GAPS, seed=7).take(4096), substeps=400)


def test_simulated_transitions_have_the_moments_of_the_process(drawn: Transitions) -> None:
    """Mean 0 and variance 1 when they are centred and scaled by the exact moments, in Monte Carlo standard errors."""
    kappa, mean, sigma = np.asarray(drawn.p).T
    decay = np.exp(-kappa * drawn.tau)
    sd = sigma * np.sqrt((1 - decay**2) / (2 * kappa))
    z = (np.asarray(drawn.x1)[:, 0] - mean - (np.asarray(drawn.x0)[:, 0] - mean) * decay) / sd
    assert abs(z.mean()) < 4 / np.sqrt(z.size)
    assert abs(z.var() - 1) < 4 * np.sqrt(2 / z.size)


def test_the_gap_of_every_transition_is_its_own() -> None:
    """Nearly without noise a path follows its drift: to x0 + 2 t0 tau + tau^2 here, but for tau^2 / substeps by Euler."""
    sde = from_functions(
        lambda t, x, p: 2 * t + 0 * x, lambda t, x, p: p.noise**2 + 0 * x, states={"x": "real"}, parameters={"noise": 1e-5}
    )
    t0, tau = np.array([0.0, 1.0, 2.0]), np.array([0.1, 0.5, 1.0])
    conditions = Conditions(t0, tau, np.ones((3, 1)), np.full((3, 1), 1e-5), np.zeros((3, 0)))
    x1 = np.asarray(transitions(jax.random.key(0), sde, conditions, substeps=1000).x1)[:, 0]
    np.testing.assert_allclose(x1, 1 + 2 * t0 * tau + tau**2 * (1 - 1 / 1000), atol=1e-4)


def test_a_simulation_that_leaves_the_numbers_is_refused() -> None:
    sde = from_functions(
        lambda x, p: p.push * x**3, lambda x, p: 1.0 + 0 * x, states={"x": "real"}, parameters={"push": 30.0}, name="burst"
    )
    conditions = Conditions(np.zeros(2), np.ones(2), np.array([[0.0], [9.0]]), np.array([[0.0], [30.0]]), np.zeros((2, 0)))
    with pytest.raises(TrainingError, match=r"burst: 1 of 2 simulated transitions are not finite.* substeps \(now 20\)"):
        transitions(jax.random.key(0), sde, conditions, substeps=20)


def test_progress_is_reported_after_every_step(whole: tuple[Trained, list[Progress]]) -> None:
    trained, reports = whole
    assert [r.where for r in reports] == [f"step {i} of 300" for i in range(1, 301)]
    assert [r.share for r in (reports[0], reports[-1])] == [1 / 300, 1]
    assert tuple(r.residual for r in reports) == trained.record.history


def test_the_loss_falls(whole: tuple[Trained, list[Progress]], drawn: Transitions) -> None:
    """On transitions that were not seen, so that it is no memory, and the same ones before and after, so that it is no luck."""
    trained, _ = whole
    before, after = (np.mean(maximum_likelihood.depths(trained.flow, t, drawn)) for t in (_first_weights(), _theta(trained)))
    assert after < before - 0.05
    assert abs(after - 0.5) < 4 * np.sqrt(0.5 / len(drawn.tau))  # half of the dimension, as the law is Gaussian
    late = np.mean(trained.record.history[-50:])
    assert abs(late - after) < 4 * np.sqrt(0.5 / (50 * SMALL["points"]) + 0.5 / len(drawn.tau))


def test_the_density_comes_closer_to_the_exact_one(whole: tuple[Trained, list[Progress]], drawn: Transitions) -> None:
    trained, _ = whole
    exact = np.asarray(EXACT.log_prob_batch(drawn.x1, drawn.x0, drawn.tau, drawn.p))
    _, with_weights = weights(trained.flow)
    start = Surrogate(eqx.tree_at(lambda t: t.flow, trained, with_weights(_first_weights())))
    before, after = (
        np.sqrt(np.mean((np.asarray(q.log_prob_batch(drawn.x1, drawn.x0, drawn.tau, drawn.p)) - exact) ** 2))
        for q in (start, Surrogate(trained))
    )
    assert after < 0.3 * before


def _theta(trained: Trained) -> jax.Array:
    return weights(trained.flow)[0]


def _first_weights() -> jax.Array:
    return weights(preset_with("simulation", "default", COMB).flow.build(OU_LAW, GAPS, 0))[0]


@pytest.mark.parametrize("bank", [0, 768], ids=["fresh", "bank"])
def test_an_interrupted_run_goes_on_where_it_was(bank: int, tmp_path: Path) -> None:
    """Interrupted in the second pass through the bank, whose order is another one."""

    def interrupt(report: Progress) -> None:
        if report.where.startswith("step 5 "):
            raise KeyboardInterrupt

    file, options = tmp_path / "run.ckpt", {"steps": 8, "bank": bank}
    uninterrupted = train(**options)
    with pytest.raises(KeyboardInterrupt):
        train(checkpoint=file, progress=interrupt, **options)
    reports: list[Progress] = []
    resumed = train(checkpoint=file, progress=reports.append, **options)
    assert [r.where for r in reports] == ["step 6 of 8", "step 7 of 8", "step 8 of 8"]
    assert eqx.tree_equal(resumed.flow, uninterrupted.flow, typematch=True)
    assert resumed.record.history == uninterrupted.record.history
    with pytest.raises(FileError, match=r"other settings \(trainer\.rate: 0\.03 there, 0\.01 here"):
        train(checkpoint=file, **{**options, "rate": 0.01})


def test_the_weights_depend_on_the_seed_and_on_nothing_else() -> None:
    first = train(steps=2)
    with jax.enable_x64(False):
        assert eqx.tree_equal(train(steps=2).flow, first.flow, typematch=True)
    assert first.record.history[0] != train(steps=2, seed=1).record.history[0]


def test_a_bank_is_used_again_and_again_in_another_order() -> None:
    flow, settings = train(steps=1).flow, MaximumLikelihood(points=256, steps=9, substeps=50, bank=768)
    state, seen = maximum_likelihood.start(flow, settings), []
    for step in range(9):
        conditions = sequence_for(flow, OU_LAW, GAPS, seed=step).take(256)
        batch, bank = maximum_likelihood.batch_of(flow, settings, state, conditions, seed=0)
        seen.append(np.asarray(batch.x1)[:, 0])
        state = state._replace(step=step + 1, bank=bank)
    passes = [np.concatenate(seen[first : first + 3]) for first in (0, 3, 6)]
    for later in passes[1:]:
        np.testing.assert_array_equal(np.sort(later), np.sort(passes[0]))
    assert not any(np.array_equal(a, b) for a, b in pairwise(passes))


def test_a_timed_run_stops_in_time() -> None:
    reports: list[Progress] = []
    trained = train(seconds=1e-6, progress=reports.append)
    assert [(r.where, r.share) for r in reports] == [("step 1", 1.0)]
    assert trained.record.settings["seconds"] == 1e-6


def test_the_learning_rate_rises_shortly_and_falls_to_zero() -> None:
    shape = np.array([maximum_likelihood.rate_shape(share) for share in np.linspace(0, 1, 201)])
    assert 0 < shape[0] < 0.1
    assert np.argmax(shape) == 4  # two parts in a hundred
    assert shape[4] == 1
    assert np.all(np.diff(shape[4:]) < 0)
    assert shape[-1] == pytest.approx(0, abs=1e-15)


def test_a_gradient_that_is_not_finite_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(flow: Any, theta: jax.Array, batch: Transitions) -> jax.Array:
        return jnp.sqrt(0 * jnp.sum(theta)) + batch.tau  # finite, with an infinite slope

    flow, settings = train(steps=1).flow, MaximumLikelihood(points=8, substeps=5)
    monkeypatch.setattr(maximum_likelihood, "depths", broken)
    state = maximum_likelihood.start(flow, settings)
    conditions = sequence_for(flow, OU_LAW, GAPS, seed=0).take(8)
    after, loss = maximum_likelihood.advance(flow, settings, state, conditions, 0, 0.5)
    assert np.isfinite(loss)
    np.testing.assert_array_equal(after.theta, state.theta)


def test_an_artifact_says_how_it_was_made(tmp_path: Path) -> None:
    trained = train(steps=2)
    artifact.save(tmp_path / "ou.fkf", trained)
    again = artifact.load(tmp_path / "ou.fkf")
    assert eqx.tree_equal(again, trained, typematch=True)
    assert (again.record.method, again.record.settings["substeps"]) == ("simulation", 50)
    assert "method='simulation'" in again.record.command


@pytest.mark.parametrize("name", PRESETS["simulation"])
def test_presets_have_the_flow_of_gauss_newton(name: str) -> None:
    assert PRESETS["simulation"][name].flow == PRESETS["gauss-newton"][name].flow


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "paper"}, "Got preset 'paper' of method 'simulation', expected one of 'fast', 'default', 'accurate'"),
        (
            {"iterations": 3},
            "Got the option 'iterations', expected one of the flow: .*; of the trainer: points, steps, seconds",
        ),
        ({"steps": 0}, "MaximumLikelihood needs steps > 0, got 0"),
        ({"rate": float("nan")}, "MaximumLikelihood needs rate > 0, got nan"),
        ({"seconds": -1.0}, r"MaximumLikelihood needs seconds > 0 or None, got -1\.0"),
        ({"bank": 300}, "needs a bank of whole batches, 0 or a multiple of points = 256, got 300"),
    ],
)
def test_bad_settings_are_refused(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(**options)


@pytest.mark.parametrize("options", [{"points": 1e3}, {"seconds": "a minute"}, {"steps": None}, {"rate": "high"}])
def test_a_setting_of_another_type_is_refused(options: Mapping[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"Got \w+=.*, expected something like"):
        train(**options)

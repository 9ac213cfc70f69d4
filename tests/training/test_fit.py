"""Training from beginning to end: progress, settings, and runs that end early."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import fokkerflow
from fokkerflow.training import FileError, Progress, Trained, TrainingError, fit, trainer
from fokkerflow.training.presets import PRESETS, preset_with
from tests.training.trainings import CIR_LAW, OU_LAW, TINY

OU, CIR = OU_LAW.sde, CIR_LAW.sde


def train(**options: object) -> Trained:
    return fit(OU, OU_LAW, 1.0, **{**TINY, **options})


@pytest.fixture(scope="module")
def whole() -> tuple[Trained, list[Progress]]:
    reports: list[Progress] = []
    return train(progress=reports.append), reports


def test_progress_is_reported_after_every_iteration(whole: tuple[Trained, list[Progress]]) -> None:
    trained, reports = whole
    assert [r.where for r in reports] == [f"iteration {i} of 6" for i in range(1, 7)]
    assert reports[-1].share == 1
    assert reports[-1].seconds_left == 0
    assert all(r.seconds_left > 0 for r in reports[:-1])
    assert tuple(r.residual for r in reports) == trained.record.history


def test_the_weights_depend_on_the_seed_and_on_nothing_else(whole: tuple[Trained, list[Progress]]) -> None:
    assert eqx.tree_equal(train().flow, whole[0].flow)
    assert not eqx.tree_equal(train(seed=1).flow, whole[0].flow)


def test_the_density_is_better_than_what_it_starts_from() -> None:
    """One component of an anchored flow is the exact Gaussian at the start, two are not; training has to bring them back."""
    trained, x0, p = train(iterations=30), jnp.array([0.3]), jnp.array([2.0, 0.5, 0.3])
    exact, x1 = fokkerflow.density("exact", OU), jnp.linspace(0.0, 0.9, 20)[:, None]
    error = [float(trained.log_density(x, x0, jnp.asarray(0.5), p, jnp.zeros(())) - exact.log_prob(x, x0, 0.5, p)) for x in x1]
    assert np.max(np.abs(error)) < 0.05


def test_an_interrupted_run_goes_on_where_it_was(whole: tuple[Trained, list[Progress]], tmp_path: Path) -> None:
    def interrupt(report: Progress) -> None:
        if report.where.startswith("iteration 3"):
            raise KeyboardInterrupt

    file = tmp_path / "run.ckpt"
    with pytest.raises(KeyboardInterrupt):
        train(checkpoint=file, progress=interrupt)
    reports: list[Progress] = []
    resumed = train(checkpoint=file, progress=reports.append)
    assert [r.where for r in reports] == [f"iteration {i} of 6" for i in range(4, 7)]
    assert eqx.tree_equal(resumed.flow, whole[0].flow)
    assert resumed.record.history == whole[0].record.history
    finished = train(checkpoint=file, progress=reports.append)  # nothing is left to do
    assert eqx.tree_equal(finished.flow, whole[0].flow)
    assert len(reports) == 3


CHILD = """
import sys, time
from fokkerflow.training import fit
from tests.training.trainings import OU_LAW, TINY

def report(progress):
    print(progress.where, flush=True)
    if progress.where.startswith("iteration 4"):
        time.sleep(60)  # to be killed now, after the checkpoint of iteration 3

fit(OU_LAW.sde, OU_LAW, 1.0, checkpoint=sys.argv[1], checkpoint_every=0.0, progress=report, **TINY)
"""


def test_a_killed_run_ends_in_the_same_weights(whole: tuple[Trained, list[Progress]], tmp_path: Path) -> None:
    file, root = tmp_path / "run.ckpt", Path(__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(file)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout:
        for line in child.stdout:
            if line.startswith("iteration 4"):
                break
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    reports: list[Progress] = []
    resumed = train(checkpoint=file, progress=reports.append)
    assert reports[0].where == "iteration 4 of 6"
    assert eqx.tree_equal(resumed.flow, whole[0].flow)


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    train(checkpoint=tmp_path / "run.ckpt", iterations=0)
    with pytest.raises(FileError, match=r"other settings \(.*seed: 0 there, 1 here"):
        train(checkpoint=tmp_path / "run.ckpt", seed=1)


def test_a_residual_that_is_not_finite_ends_the_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(self: object, state: object, conditions: object) -> tuple[object, trainer.Report]:
        return state, trainer.Report("iteration 1 of 6", 0.2, float("nan"))

    monkeypatch.setattr(trainer.GaussNewtonTrainer, "advance", broken)
    with pytest.raises(TrainingError, match=r"The residual is nan at iteration 1 of 6\. Start from other weights"):
        train()


@pytest.mark.parametrize("name", PRESETS["gauss-newton"])
def test_presets_can_be_changed_field_by_field(name: str) -> None:
    changed = preset_with("gauss-newton", name, {"components": 3, "points": 77})
    assert (changed.flow.components, changed.trainer.points) == (3, 77)
    assert changed.flow.width == PRESETS["gauss-newton"][name].flow.width


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton"}, "Got method 'newton', expected one of 'gauss-newton'"),
        ({"preset": "quick"}, "Got preset 'quick' of method 'gauss-newton', expected one of 'fast', 'default', 'accurate'"),
        ({"wdth": 3}, "Got the option 'wdth', expected one of the flow: layers, components, .*; of the trainer: points"),
        ({"shortest": 2.0}, "Gaps need 0 < shortest < longest, got 2 and 1"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(**options)


@pytest.mark.parametrize("options", [{"points": "many"}, {"points": 1e3}, {"damping": None}, {"network": 3}])
def test_a_setting_of_another_type_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=r"Got \w+=.*, expected something like"):
        train(**options)


def test_the_law_has_to_be_one_of_the_model() -> None:
    with pytest.raises(ValueError, match="The law is one of CIR, the model is OU"):
        fit(OU, CIR_LAW, 1.0)
    with pytest.raises(TypeError):
        fit(OU, {"x": (0, 1)}, 1.0)

"""Marches from beginning to end: settings, runs that end early, artifacts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from fokkerflow.cli import app
from fokkerflow.densities import Surrogate
from fokkerflow.sde.models import BDFS, CIR, SVCEV, Heston
from fokkerflow.training import (
    FileError,
    Gaps,
    MarchError,
    Progress,
    ThetaPath,
    TrainingError,
    artifact,
    fit,
    laws,
)
from fokkerflow.training.galerkin_step import Attempt
from fokkerflow.training.presets import PRESETS, preset_with
from tests.training.marches import LAW, P, march, small_march
from tests.training.trainings import CIR_LAW


def test_an_interrupted_march_ends_in_the_same_path(tmp_path: Path) -> None:
    file, steps = tmp_path / "run.ckpt", len(small_march()[1])

    def interrupt(report: Progress) -> None:
        seen.append(report)
        if len(seen) == 7:
            raise KeyboardInterrupt

    seen: list[Progress] = []
    with pytest.raises(KeyboardInterrupt):
        march(checkpoint=file, progress=interrupt)
    resumed = march(checkpoint=file, progress=seen.append)
    assert len(seen) == steps
    whole = small_march()[0]
    assert eqx.tree_equal((resumed.flow, resumed.path), (whole.flow, whole.path), typematch=True)
    assert resumed.record.history == whole.record.history
    with pytest.raises(FileError, match=r"other settings \(trainer\.tolerance: 0\.003 there, 0\.004 here"):
        march(checkpoint=file, tolerance=4e-3)


def test_an_artifact_keeps_the_path(tmp_path: Path) -> None:
    trained, _ = small_march()
    artifact.save(tmp_path / "ou.fkf", trained)
    again = artifact.load(tmp_path / "ou.fkf")
    assert eqx.tree_equal(again, trained, typematch=True)
    np.testing.assert_array_equal(
        again.at(jnp.asarray(0.5)).conditioners[0][0].head.bias, trained.flow.conditioners[0][0].head.bias
    )
    density = Surrogate(again)
    assert density.log_prob(0.1, 0.0, dt=0.2, params=P) == Surrogate(trained).log_prob(0.1, 0.0, dt=0.2, params=P)


def test_double_precision_whatever_the_setting_of_jax() -> None:
    whole, _ = small_march()
    with jax.enable_x64(False):
        again = march()
        assert not jax.config.jax_enable_x64
        assert again.path.thetas.dtype == np.float64
    assert eqx.tree_equal(again.path, whole.path, typematch=True)


def test_the_command_line_trains_and_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> Attempt:
        return Attempt(args[2], args[2], args[2], *(jnp.asarray(v) for v in (9.0, 1.0, 0.5)), jnp.asarray(0))

    monkeypatch.setattr("fokkerflow.training.neural_galerkin.attempt_step", refused)
    (tmp_path / "law.json").write_text(_json(LAW))
    settings = ["box=[[-5, 5]]", "layers=2", "components=1", "width=4", "points=120", "max_refusals=3"]
    arguments = ["train", "ou", "--law", str(tmp_path / "law.json"), "--dt-max", "0.5", "-o", str(tmp_path / "ou.fkf")]
    arguments += ["--method", "neural-galerkin", "--preset", "reduced", *(a for s in settings for a in ("--set", s))]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert result.exit_code == 1, result.output
    assert "Neural Galerkin is stuck at tau = 0: 4 attempts were refused in a row" in result.output
    assert "tau 0.00e+00 of 0.5, step 0: residual" in result.output
    assert "? left" in result.output
    assert "Traceback" not in result.output


def _json(law: Any) -> str:
    import json

    return json.dumps(law.to_dict())


def test_a_least_squares_without_solution_ends_the_march(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Attempt:
        return Attempt(args[2], args[2], args[2], *(jnp.asarray(v) for v in (np.nan, 1.0, np.nan)), jnp.asarray(0))

    monkeypatch.setattr("fokkerflow.training.neural_galerkin.attempt_step", broken)
    with pytest.raises(MarchError, match=r"from tau = 0: its least squares have no finite solution\. Try more damping"):
        march()
    assert issubclass(MarchError, TrainingError)


@pytest.mark.parametrize(("sde", "felt"), [(Heston(), 8328), (SVCEV(), 6756), (BDFS(), 15150)])
def test_the_settings_of_the_paper(sde: Any, felt: int) -> None:
    preset = preset_with("neural-galerkin", "paper", {}, sde)
    flow = preset.flow.build(laws.shipped("paper", sde), Gaps(5e-4, 0.5), 0)
    assert sum(leaf.size for leaf in jax.tree.leaves((flow.conditioners, flow.reference_weights))) == felt
    assert preset.trainer.solver == "lsmr"
    assert preset.trainer.spreads == (1.0,)
    assert preset.trainer.cutoff is None


def test_the_default_is_the_anchored_preset() -> None:
    assert PRESETS["neural-galerkin"]["default"] == PRESETS["neural-galerkin"]["anchored"]
    changed = preset_with("neural-galerkin", "default", {"tolerance": 0.1, "cutoff": None, "tau0": 0.01})
    assert (changed.trainer.tolerance, changed.trainer.cutoff, changed.trainer.tau0) == (0.1, None, 0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "fast"}, "Got preset 'fast' of method 'neural-galerkin', expected one of 'anchored', 'default', 'reduced'"),
        (
            {"preset": "paper"},
            r"CIR: the paper's flow lives on a box, .* Give one with box=\(\(lower, upper\)",
        ),
        ({"preset": "paper", "box": ((-1, 3),)}, "CIR, state 'v'"),
        ({"iterations": 3}, "Got the option 'iterations', expected one of the flow: .*; of the trainer: points, tau0, form"),
        ({"form": "logarithm"}, "Got form='logarithm', expected one of density, log"),
        ({"solver": "qr"}, "Got solver='qr', expected one of cholesky, lsmr, lsmr-matrix-free"),
        ({"tolerance": 0.0}, "NeuralGalerkin needs tolerance > 0, got 0.0"),
        ({"zero_flux": -1.0}, "NeuralGalerkin needs zero_flux > 0 or None, got -1.0"),
        ({"zero_flux": 1.0}, "CIR: the flow has no finite artificial boundary"),
        ({"draws": "exact", "spreads": (1.0, 4.0)}, r"Exact draws cannot be spread: got spreads=\(1\.0, 4\.0\)"),
        (
            {"tau0": 0.0},
            "Got tau0=0, expected a number above 0, .* and below the longest gap, 0.5",
        ),
        ({"tau0": 0.7}, "Got tau0=0.7, expected"),
    ],
)
def test_bad_settings_are_refused(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(CIR(), CIR_LAW, 0.5, method="neural-galerkin", **options)


@pytest.mark.parametrize("options", [{"cutoff": "no"}, {"points": None}, {"tolerance": "small"}, {"form": 2}])
def test_a_setting_of_another_type_is_refused(options: Mapping[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"Got \w+=.*, expected something like"):
        fit(CIR(), CIR_LAW, 0.5, method="neural-galerkin", **options)


def test_a_path_has_two_knots_or_more() -> None:
    with pytest.raises(ValueError, match="two knots or more"):
        ThetaPath(jnp.zeros(1), jnp.zeros((1, 3)), jnp.zeros((1, 3)))


def test_a_path_follows_a_cubic_exactly_and_stays_at_its_ends() -> None:
    taus = jnp.array([0.0, 0.3, 1.0])
    path = ThetaPath(taus, (taus**3 - taus)[:, None], (3 * taus**2 - 1)[:, None])
    inside = np.linspace(0, 1, 11)
    np.testing.assert_allclose([path.theta(t)[0] for t in inside], inside**3 - inside, atol=1e-15)
    assert (path.theta(-1.0)[0], path.theta(2.0)[0]) == (0, 0)

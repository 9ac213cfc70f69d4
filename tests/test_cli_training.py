"""`fokkerflow train` and `fokkerflow certify`: files, progress, resuming, models of a user's own, and refusals."""

import io
import json
import re
from pathlib import Path

import equinox as eqx
import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import fokkerflow
from fokkerflow.cli import app, progress
from fokkerflow.densities import load
from fokkerflow.training import Progress, fit, trainer
from fokkerflow.training.bound import Bounds
from tests.training.trainings import OU_LAW, TINY

RUN = CliRunner()
SETTINGS = [part for name, value in TINY.items() for part in ("--set", f"{name}={value}")]

MY_SDE = """
import fokkerflow as ff

MINE = ff.from_functions(
    lambda x, p: p.kappa * (0.5 - x), lambda x, p: p.sigma**2,
    states={"x": "real"}, parameters={"kappa": 2.0, "sigma": 0.3}, name="mine",
)
LAW = ff.Law(MINE, {"x": ff.Uniform(0, 1)}, {"kappa": ff.Uniform(1, 3), "sigma": ff.Uniform(0.2, 0.4)})
NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "law.json").write_text(json.dumps(OU_LAW.to_dict()))
    (tmp_path / "my_sde.py").write_text(MY_SDE)
    return tmp_path


def train(*arguments: str, model: str = "ou", out: str = "ou.fkf", law: str = "law.json") -> object:
    return RUN.invoke(app, ["train", model, "--law", law, "-o", out, *SETTINGS, *arguments])


def test_train_writes_the_density_that_the_library_trains(folder: Path) -> None:
    result = train()
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert re.match(r"iteration 1 of 6: residual \d\.\d\de-\d\d, [\d:]+ \w+ spent, [\d:]+ \w+ left", lines[0])
    assert lines[-2].startswith("iteration 6 of 6")
    assert re.match(r"ou\.fkf: OU, gaps up to 1, residual", lines[2])
    trained = load("ou.fkf").trained
    assert eqx.tree_equal(trained.flow, fit(OU_LAW.sde, OU_LAW, 1.0, **TINY).flow)
    assert trained.record.command.startswith(
        "fokkerflow train ou --law law.json --dt-max 1 --method gauss-newton --preset default"
    )
    assert sorted(file.name for file in folder.iterdir()) == ["law.json", "my_sde.py", "ou.fkf"]


def test_an_interrupted_training_says_how_to_go_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advance = trainer.GaussNewtonTrainer.advance

    def interrupted(self: trainer.GaussNewtonTrainer, state: object, conditions: object) -> object:
        if state.iteration == 3:
            raise KeyboardInterrupt
        return advance(self, state, conditions)

    with monkeypatch.context() as patch:
        patch.setattr(trainer.GaussNewtonTrainer, "advance", interrupted)
        result = train()
    assert result.exit_code == 1
    assert "Interrupted. To go on: fokkerflow train ou" in result.output
    assert not Path("ou.fkf").exists()
    again = train()
    assert again.exit_code == 2
    assert "from a run that did not finish. Add --resume to go on, or delete it" in again.output.replace("\n", " ")
    resumed = train("--resume")
    assert resumed.exit_code == 0, resumed.output
    assert resumed.output.startswith("iteration 4 of 6")
    assert eqx.tree_equal(load("ou.fkf").trained.flow, fit(OU_LAW.sde, OU_LAW, 1.0, **TINY).flow)
    assert not Path("ou.fkf.checkpoint").exists()


def test_a_failed_training_exits_with_1(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = lambda self, state, conditions: (state, trainer.Report("iteration 1 of 6", 0.2, float("nan")))  # noqa: E731
    monkeypatch.setattr(trainer.GaussNewtonTrainer, "advance", broken)
    result = train()
    assert result.exit_code == 1
    assert "The residual is nan" in result.output


def test_a_model_and_a_law_of_ones_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = train("--dt-max", "0.5", model="my_sde.py:MINE", law="my_sde.py:LAW", out="mine.fkf")
    assert result.exit_code == 0, result.output
    refused = RUN.invoke(app, ["certify", "mine.fkf"])
    assert refused.exit_code == 2
    assert "The model 'mine' (my_sde:mine) is not part of fokkerflow" in refused.output
    bounds = Bounds(np.full((3, 5), 0.0125), np.full((3, 5), 1e-4), np.full((3, 5), 1e-3), unusable=0)
    monkeypatch.setattr("fokkerflow.training.certificate.l1_bounds", lambda *args, **options: bounds)  # tested elsewhere
    certified = RUN.invoke(app, ["certify", "mine.fkf", "--model", "my_sde.py:MINE", "--conditions", "3"])
    assert certified.exit_code == 0, certified.output
    assert "over 3 draws of the training law" in certified.output
    assert "kappa" in certified.output
    assert "1.25e-02" in certified.output
    stored = load("mine.fkf", sde=fokkerflow.cli.arguments.find_model("my_sde.py:MINE")).certificate
    assert stored is not None
    assert stored.conditions == 3
    assert stored.dt[-1] == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "ou", "-o", "x.fkf"], "Got the law 'paper'; those that come with the package for OU"),
        (["train", "uo", "-o", "x.fkf"], "Got model 'uo', expected one of ou"),
        (["train", "my_sde.py:YOURS", "-o", "x.fkf"], "my_sde.py has no 'YOURS'"),
        (["train", "my_sde.py:NUMBER", "-o", "x.fkf"], "got 3, expected a model"),
        (["train", "your_sde.py:MINE", "-o", "x.fkf"], "there is no file your_sde.py"),
        (["train", "ou", "--law", "my_sde.py:NUMBER", "-o", "x.fkf"], "got 3, expected a fokkerflow.Law"),
        (["train", "ou", "--law", "your.json", "-o", "x.fkf"], "your.json: this is not a law"),
        (["train", "cir", "--law", "law.json", "-o", "x.fkf"], "CIR: got a law of x0 for x, expected v"),
        (["train", "ou", "--law", "law.json", "-o", "x.fkf", "--set", "widht=3"], "Got the option 'widht'"),
        (["train", "ou", "--law", "law.json", "-o", "x.fkf", "--set", "width"], "Got 'width' in --set, expected name=value"),
        (["train", "ou", "--law", "law.json", "-o", "x.fkf", "--method", "adam"], "Got method 'adam'"),
        (["train", "ou", "--law", "law.json", "-o", "x.fkf", "--dt-max", "-1"], "Gaps need 0 < shortest < longest"),
        (["train", "ou", "--law", "law.json", "-o", "no/folder/x.fkf"], "There is no folder no/folder"),
        (["certify", "x.fkf"], "x.fkf: there is no such file"),
        (["certify", "law.json"], "law.json: this is not a fokkerflow file"),
    ],
)
def test_bad_input_exits_with_2(arguments: list[str], message: str, folder: Path) -> None:
    result = RUN.invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert message in result.output.replace("\n", " ")
    assert "Traceback" not in result.output
    assert not list(folder.glob("*.fkf*"))


def test_a_terminal_gets_a_bar() -> None:
    screen = io.StringIO()
    with progress.shown(Console(file=screen, force_terminal=True, width=100)) as report:
        report(Progress("iteration 3 of 6", 0.5, 1.25e-3, 60.0, 187.0))
    assert "iteration 3 of 6" in screen.getvalue()
    assert "residual 1.25e-03" in screen.getvalue()
    assert "3:07 min left" in screen.getvalue()


def test_a_log_gets_a_line_a_minute(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.shown(Console(file=io.StringIO())) as report:
        for step in range(1, 101):
            report(Progress(f"iteration {step} of 100", step / 100, 1e-3, 3.0 * step, 3.0 * (100 - step)))
            now += 3
    steps = [int(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert steps == [1, 21, 41, 61, 81, 100]


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (187, "3:07 min"), (8100, "2:15 h")])
def test_durations_are_read_at_a_glance(seconds: float, text: str) -> None:
    assert progress.duration(seconds) == text

"""`fokkerflow compare` without data: the table, its files, and how it refuses."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fokkerflow.cli import app
from fokkerflow.cli.accuracy import best_first
from fokkerflow.sde.simulate import SimulationError

RUN = CliRunner()
SMALL = ["compare", "-m", "ou", "--dt", "0.25", "-n", "21", "--trajectories", "2", "--draws", "3"]
CHOSEN = ["--density", "euler", "--density", "fourier"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    out = tmp_path_factory.mktemp("compare") / "deep" / "folder"
    result = RUN.invoke(app, [*SMALL, *CHOSEN, "--seed", "4", "--out", str(out)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result, out


def test_one_table_has_every_density_and_every_reason(written: tuple[Any, Path]) -> None:
    result, out = written
    words = " ".join(result.stdout.split())
    assert "OU, dt = 0.25: relative errors against 'exact'" in words
    assert "fourier does not apply: Method 'fourier' is not available for OU; it exists for SVCEV." in words
    assert "mu*: 2 trajectories of 21 observations. Test law: that of the trained density, 3 draws." in words
    euler = next(line for line in result.stdout.splitlines() if line.startswith("euler "))
    (record,) = [row for row in json.loads((out / "accuracy.json").read_text())["densities"] if row["name"] == "euler"]
    shown = [float(cell) for cell in euler.split()[1:6]]
    kinds = ("at_star", "median"), ("at_star", "largest"), ("over_law", "median"), ("over_law", "mean"), ("l2", "mean")
    np.testing.assert_allclose(shown, [record[kind][field] for kind, field in kinds], rtol=0.06)
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if line.startswith(("exact", "euler", "density")))


def test_progress_is_on_standard_error(written: tuple[Any, Path]) -> None:
    assert "simulating trajectories: 0 % done" in written[0].stderr
    assert "done: 100 % done" in written[0].stderr
    assert "% done" not in written[0].stdout


def test_it_leaves_a_figure_a_table_and_a_record(written: tuple[Any, Path]) -> None:
    _, out = written
    assert {file.name for file in out.iterdir()} == {"accuracy.png", "accuracy.csv", "accuracy.json"}
    assert (out / "accuracy.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((out / "accuracy.json").read_text())
    assert record["command"].startswith("fokkerflow compare --model ou --density euler --density fourier --dt 0.25")
    assert (record["n"], record["trajectories"], record["draws"], record["seed"]) == (21, 2, 3, 4)
    with (out / "accuracy.csv").open() as file:
        lines = {line["name"]: line for line in csv.DictReader(file)}
    assert list(lines) == ["exact", "euler", "fourier"]
    euler = next(row for row in record["densities"] if row["name"] == "euler")
    assert float(lines["euler"]["at_star_median"]) == euler["at_star"]["median"]
    assert float(lines["euler"]["microseconds"]) == euler["microseconds"] > 0
    assert lines["fourier"]["microseconds"] == ""
    assert lines["fourier"]["reason"].startswith("Method 'fourier' is not available")


def test_json_is_all_there_is_on_standard_output(written: tuple[Any, Path]) -> None:
    """Two gaps, and parameters in place of the typical ones."""
    result = RUN.invoke(app, [*SMALL, *CHOSEN, "--dt", "0.5", "-p", "kappa=1", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [(row["dt"], row["name"]) for row in found["densities"]] == [
        (dt, name) for dt in (0.25, 0.5) for name in ("exact", "euler", "fourier")
    ]
    errors = [row["at_star"]["median"] for row in found["densities"] if row["name"] == "euler"]
    assert 0 < errors[0] < errors[1]


def test_a_model_without_a_law_is_tried_at_mu_star_alone() -> None:
    result = RUN.invoke(app, ["compare", "-m", "gbm", "--dt", "0.5", "-n", "20", "--draws", "2", "--density", "euler"])
    assert result.exit_code == 0, result.output
    assert "No test law (--law LAW)" in " ".join(result.stdout.split())
    euler = next(line for line in result.stdout.splitlines() if line.startswith("euler "))
    assert euler.split()[3:5] == ["-", "-"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "ou"], "Got neither data files nor --dt"),
        (["ou.csv", "-m", "ou", "--dt", "0.5"], "Got data files and --dt: the times are in the files"),
        (["ou.csv", "-m", "ou", "--time", "none", "--dt", "1", "--dt", "2"], "Got --dt more than once with data files"),
        (["ou.csv", "-m", "ou", "--law", "default", "--out", "x"], "Got --law, --out, which is for a comparison without data"),
        (["-m", "ou", "--dt", "1", "--warmup", "9", "--prior", "a=b"], "Got --prior, --warmup, which is for a comparison with"),
        (["-m", "ou", "--dt", "-1"], "Got dt = -1, expected a positive, finite time"),
        (["-m", "ou", "--dt", "1", "-n", "1"], "Got n = 1, expected at least 2"),
        (["-m", "ou", "--dt", "1", "--draws", "0"], "Got draws = 0, expected at least 1"),
        (["-m", "ou", "--dt", "1", "--budget", "-1"], "Got --budget -1, expected seconds"),
        (["-m", "ou", "--dt", "1", "-p", "kapa=1"], "unknown parameter 'kapa'"),
        (["-m", "ou", "--dt", "1", "-p", "kappa=-1"], "0 < kappa is violated"),
        (["-m", "ou", "--dt", "1", "--law", "papr"], "Got the law 'papr'; those that come with the package for OU"),
        (["-m", "ou", "--dt", "1", "--density", "exct"], "Got the density 'exct': no file, and no density of OU"),
        (["-m", "ou", "--dt", "1", "--reference", "exct"], "Got the density 'exct': no file, and no density of OU"),
        (["-m", "double-well", "--dt", "1"], "DoubleWell has no exact density to compare with. Name another reference"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ou.csv").write_text("t,x\n0,0.5\n0.5,0.4\n")
    result = RUN.invoke(app, ["compare", *arguments])
    assert result.exit_code == 2, result.output
    assert message in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.output
    assert {file.name for file in tmp_path.iterdir()} == {"ou.csv"}


def test_a_simulation_that_fails_is_a_failed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise SimulationError("OU: the state is not finite")

    monkeypatch.setattr("fokkerflow.report.accuracy_trials.simulate", fail)
    result = RUN.invoke(app, SMALL)
    assert result.exit_code == 1
    assert "OU: the state is not finite" in result.stderr


def test_help_explains_both_uses() -> None:
    words = " ".join(RUN.invoke(app, ["compare", "--help"]).output.split())
    assert "fokkerflow compare --model heston --dt 0.5 --out out/compare" in words
    assert "fokkerflow compare data.csv --model heston --density exact --density mine.fkf" in words


def test_the_best_density_is_the_one_that_others_are_compared_with() -> None:
    assert best_first(["euler", "fourier", "surrogate"]) == ["fourier", "euler", "surrogate"]
    assert best_first(["euler", "fourier", "exact"])[0] == "exact"


def test_on_data_the_accurate_densities_are_compared_if_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ou.csv").write_text("t,x\n0,0.5\n0.5,0.4\n1,0.6\n")
    seen: list[str] = []

    def run(densities: dict[str, Any], *_: Any, **__: Any) -> None:
        seen.extend(densities)
        raise ValueError("seen enough")

    monkeypatch.setattr("fokkerflow.report.comparison.compare", run)
    assert RUN.invoke(app, ["compare", str(tmp_path / "ou.csv"), "-m", "ou"]).exit_code == 2
    assert seen == ["exact", "surrogate"]

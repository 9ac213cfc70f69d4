"""The command line: what it prints, what it writes, and how it refuses."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fokkerflow
from fokkerflow.cli import app

RUN = CliRunner()
COMMANDS = (
    "models", "simulate", "infer", "report", "check", "profile", "compare", "calibrate", "train", "certify", "demo",
)  # fmt: skip


def test_help_lists_the_commands() -> None:
    result = RUN.invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in COMMANDS:
        assert command in result.output
        help_text = RUN.invoke(app, [command, "--help"]).output
        assert "Example: fokkerflow " + command in help_text


def test_help_does_not_import_jax() -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom fokkerflow.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\nassert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_version() -> None:
    assert RUN.invoke(app, ["--version"]).output.strip() == f"fokkerflow {fokkerflow.__version__}"


def test_models_lists_every_model() -> None:
    result = RUN.invoke(app, ["models"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for name in fokkerflow.MODELS:
        assert name in result.output
    assert "0 < sigma < sqrt(2*alpha*beta)" in result.output


def test_simulate_writes_what_the_library_simulates(tmp_path: Path) -> None:
    out = tmp_path / "ou.csv"
    arguments = ["simulate", "ou", "-o", str(out), "--dt", "0.25", "-n", "20", "-p", "kappa=3, sigma=0.1", "--seed", "7"]
    result = RUN.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    expected = fokkerflow.simulate(fokkerflow.OU(), {"kappa": 3, "mean": 0.5, "sigma": 0.1}, dt=0.25, n=20, seed=7)
    written = fokkerflow.Series.from_csv(out)
    np.testing.assert_array_equal(written.states, expected.states)
    np.testing.assert_array_equal(written.times, expected.times)
    assert written.names == ("x",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "hesston", "-o", "x.csv"], "Got model 'hesston', expected one of ou"),
        (["simulate", "ou", "-o", "x.csv", "-p", "kapa=1"], "unknown parameter 'kapa'"),
        (["simulate", "ou", "-o", "x.csv", "-p", "kappa"], "expected name=number"),
        (["simulate", "ou", "-o", "x.csv", "-p", "kappa=-1"], "0 < kappa is violated"),
        (["simulate", "ou", "-o", "x.csv", "--dt", "-1"], "dt"),
        (["simulate", "ou", "-o", "missing/folder/x.csv"], "missing"),
    ],
)
def test_bad_input_exits_with_2(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = RUN.invoke(app, arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_demo_infers_from_the_shipped_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def run(folder: Any, posterior: Any, settings: Any, record: Any, **options: Any) -> None:
        seen.update(folder=folder, posterior=posterior, settings=settings, record=record, **options)
        raise ValueError("seen enough")

    monkeypatch.setattr("fokkerflow.report.run.run", run)
    result = RUN.invoke(app, ["demo", "--out", str(tmp_path / "deep" / "demo")])
    assert result.exit_code == 2, result.output
    assert result.stdout.startswith("fokkerflow infer ")
    (series,) = seen["posterior"].series
    assert (len(series), series.names) == (350, ("v", "y"))
    assert seen["truth"] == dict(fokkerflow.Heston.typical)
    assert seen["settings"].draws == seen["settings"].warmup == 1000
    assert seen["record"]["command"].startswith("fokkerflow infer ")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("heston", {"dt": 0.5, "n": 350, "burn_in": 350}),
        ("svcev", {"dt": 0.5, "n": 100, "burn_in": 350}),
        ("cir", {"dt": 0.25, "n": 200, "burn_in": 200}),
        ("ou", {"dt": 0.25, "n": 200, "burn_in": 200}),
    ],
)
def test_shipped_data_are_what_the_documented_command_makes(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    words = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    result = RUN.invoke(app, ["simulate", name, "-o", str(tmp_path / "made.csv"), *words, "--seed", "1"])
    assert result.exit_code == 0, result.output
    shipped = fokkerflow.Series.from_csv(Path(fokkerflow.__file__).parent / "data" / f"{name}.csv")
    made = fokkerflow.Series.from_csv(tmp_path / "made.csv")
    np.testing.assert_allclose(made.states, shipped.states, rtol=1e-9)
    np.testing.assert_array_equal(made.times, shipped.times)
    assert f"fokkerflow simulate {name} " in (Path(__file__).parents[1] / "docs" / "cli.md").read_text()


def test_import_is_quick() -> None:
    """The target is 1.5 s with nothing else running; the bound here is loose because test machines are busy."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import fokkerflow"], check=True)
    assert time.perf_counter() - started < 4

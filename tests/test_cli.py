"""The command line: what it prints, what it writes, and how it refuses."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fokkerflow
from fokkerflow.cli import app

RUN = CliRunner()


def test_help_lists_the_commands() -> None:
    result = RUN.invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in ("models", "simulate", "train", "certify", "demo"):
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


def test_demo_writes_data_and_picture(tmp_path: Path) -> None:
    result = RUN.invoke(app, ["demo", "--out", str(tmp_path / "deep" / "demo")])
    assert result.exit_code == 0, result.output
    assert len(fokkerflow.Series.from_csv(tmp_path / "deep" / "demo" / "heston.csv")) == 350
    assert (tmp_path / "deep" / "demo" / "likelihood.png").stat().st_size > 20_000


def test_import_is_quick() -> None:
    """The target is 1.5 s with nothing else running; the bound here is loose because test machines are busy."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import fokkerflow"], check=True)
    assert time.perf_counter() - started < 4

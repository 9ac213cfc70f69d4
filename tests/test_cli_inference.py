"""The commands of inference on small data: what they leave, what machines read, and how they go on after an interruption."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import fokkerflow
from fokkerflow.cli import app
from fokkerflow.inference import chains
from fokkerflow.inference._arviz import arviz
from tests.report.posteriors import ou_series

RUN = CliRunner()
SHORT = ["--draws", "100", "--warmup", "100", "--chains", "2"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    ou_series().to_csv(folder / "ou.csv")
    return folder / "ou.csv"


@pytest.fixture(scope="module")
def finished(data: Path) -> Path:
    """A run; tests that change it make a copy."""
    out = data.parent / "run"
    result = RUN.invoke(app, ["infer", str(data), "-m", "ou", "-o", str(out), *SHORT, "--truth", "kappa=2,mean=0.5,sigma=0.3"])
    assert result.exit_code == 0, result.output
    (out / "output.txt").write_text(result.stdout)
    (out / "progress.txt").write_text(result.stderr)
    return out


def test_infer_leaves_four_files(finished: Path) -> None:
    idata = arviz.from_netcdf(str(finished / "posterior.nc"), engine="h5netcdf")
    assert idata.posterior.sizes == {"chain": 2, "draw": 100}
    record = json.loads((finished / "run.json").read_text())
    assert record["status"] == "finished"
    assert record["density"] == "exact"
    assert record["command"].startswith("fokkerflow infer ")
    assert set(record["seconds"]) == {"sampling", "checks", "report"}
    summary = pd.read_csv(finished / "summary.csv").set_index("parameter")
    for name in ("kappa", "mean", "sigma"):
        assert summary.loc[name, "mean"] == pytest.approx(float(idata.posterior[name].mean()))
        assert summary.loc[name, "q5"] < summary.loc[name, "q50"] < summary.loc[name, "q95"]
    assert (finished / "report.html").read_text().startswith("<!doctype html>")
    assert not (finished / "sampling.checkpoint").exists()


def test_it_says_what_it_uses_and_what_it_found(finished: Path) -> None:
    words = " ".join((finished / "progress.txt").read_text().split())
    assert "OU, density 'exact'. Prior: kappa flat" in words
    said = re.search(r"draw 100 of 100: (\d+) divergences", words)
    idata = arviz.from_netcdf(str(finished / "posterior.nc"), engine="h5netcdf")
    assert said is not None
    assert int(said[1]) == int(idata.sample_stats["diverging"].sum())  # how many depends on the last digit of the machine
    output = (finished / "output.txt").read_text()
    for text in ("kappa", "true value", "Did the sampler converge?", "Does the model fit the data?", "report.html"):
        assert text in output


def test_json_is_all_there_is_on_standard_output(data: Path, tmp_path: Path) -> None:
    result = RUN.invoke(app, ["infer", str(data), "-m", "ou", "-o", str(tmp_path / "run"), *SHORT, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert list(found["parameters"]) == ["kappa", "mean", "sigma"]
    assert found["verdict"]["level"] in {"good", "care", "bad"}
    assert Path(found["files"]["report.html"]).exists()


def test_report_and_check_work_on_what_is_there(finished: Path) -> None:
    checked = RUN.invoke(app, ["check", str(finished), "--against", "exact"])
    assert checked.exit_code == 0, checked.output
    assert "The posterior is the one that the reference density gives" in checked.output
    assert json.loads((finished / "run.json").read_text())["checks"]["reference"]["ok"]
    page = (finished / "report.html").read_text()
    assert "agree?" in page
    (finished / "report.html").unlink()
    again = RUN.invoke(app, ["report", str(finished), "--json"])
    assert again.exit_code == 0, again.output
    assert "agree?" in (finished / "report.html").read_text()
    assert json.loads(again.stdout)["density"] == "exact"


def test_profile_writes_its_curves(data: Path, tmp_path: Path) -> None:
    result = RUN.invoke(app, ["profile", str(data), "-m", "ou", "-o", str(tmp_path), "--points", "5", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    for name, each in found["parameters"].items():
        low, high = (np.inf if end is None else end for end in each["profile_95"])
        assert low < each["estimate"] < high, name
        assert max(each["log_likelihood"]) <= found["log_likelihood"] + 1e-6
    curves = pd.read_csv(tmp_path / "profile.csv")
    assert len(curves) == 15
    assert (tmp_path / "profile.png").stat().st_size > 10_000


def test_compare_puts_densities_in_one_table(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    densities = ["--density", "exact", "--density", "twice"]
    twin = fokkerflow.density("exact", fokkerflow.OU())
    monkeypatch.setattr("fokkerflow.cli.compare.find_density", lambda name, sde: (name, twin))
    result = RUN.invoke(app, ["compare", str(data), "-m", "ou", *densities, *SHORT, "--json"])
    assert result.exit_code == 0, result.output
    first, second = json.loads(result.stdout)["densities"]
    assert second["log_likelihood"] == first["log_likelihood"]
    assert second["shift"] == {"kappa": 0.0, "mean": 0.0, "sigma": 0.0}
    at = RUN.invoke(app, ["compare", str(data), "-m", "ou", *densities, "-p", "kappa=2,mean=0.5,sigma=0.3"])
    assert at.exit_code == 0, at.output
    expected = float(fokkerflow.log_likelihood(twin, ou_series(), {"kappa": 2, "mean": 0.5, "sigma": 0.3}))
    assert at.stdout.count(f"{expected:.4f}") == 2
    assert "sampling" not in at.stdout


def test_an_interrupted_run_goes_on_and_ends_in_the_same_draws(
    finished: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance, calls = chains._advance, []

    def interrupted(*args: object) -> object:
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return advance(*args)

    arguments = ["infer", str(data), "-m", "ou", "-o", str(tmp_path / "run"), *SHORT]
    with monkeypatch.context() as patch:
        patch.setattr(chains, "_advance", interrupted)
        patch.setattr(chains, "_MOST_CALLS", 1)
        stopped = RUN.invoke(app, arguments)
    assert stopped.exit_code == 1
    assert f"To go on: fokkerflow {' '.join(arguments[:2])}" in stopped.stderr.replace("\n", "")
    assert "Traceback" not in stopped.output
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "running"
    refused = RUN.invoke(app, arguments)
    assert refused.exit_code == 2
    assert "a run that did not finish. Add --resume" in refused.stderr
    other = RUN.invoke(app, [*arguments, "--resume", "--seed", "9"])
    assert other.exit_code == 2
    assert "belongs to another run (seed: 0 there, 9 here)" in other.stderr
    resumed = RUN.invoke(app, [*arguments, "--resume"])
    assert resumed.exit_code == 0, resumed.output
    one, two = (
        arviz.from_netcdf(str(run / "posterior.nc"), engine="h5netcdf").posterior for run in (finished, tmp_path / "run")
    )
    np.testing.assert_array_equal(one["kappa"], two["kappa"])


@pytest.mark.slow
def test_kill_9_loses_nothing_that_was_kept(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-c",
        "from fokkerflow.cli import app; app()",
        "infer",
        str(data),
        "-m",
        "ou",
        "-o",
        str(out),
        "--draws",
        "100000",
        "--json",
    ]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    waited = time.monotonic()
    while not (out / "sampling.checkpoint").exists() and time.monotonic() - waited < 120:
        time.sleep(0.1)
    time.sleep(15)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert sorted(file.name for file in out.iterdir() if not file.name.startswith(".")) == ["run.json", "sampling.checkpoint"]
    resumed = subprocess.run([*command[:-2], "200", "--json", "--resume"], capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stderr
    assert (out / "report.html").exists()


def test_calibrate_keeps_ranks_and_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With draws of the prior as posteriors, which are calibrated, if useless: this is about files and words."""
    rng = np.random.default_rng(0)
    draws = {"kappa": (1, 3), "mean": (0, 1), "sigma": (0.2, 0.4)}
    prior_draws = lambda *_: {name: rng.uniform(*ends, (1, 99)) for name, ends in draws.items()}  # noqa: E731
    monkeypatch.setattr("fokkerflow.inference.calibration.posterior_sampler", lambda *_, **__: prior_draws)
    priors = [word for name, (low, high) in draws.items() for word in ("--prior", f"{name}=Uniform({low}, {high})")]
    arguments = ["calibrate", "-m", "ou", "-o", str(tmp_path), *priors, "-n", "12", "--simulations", "20"]
    result = RUN.invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found == json.loads((tmp_path / "calibration.json").read_text())
    assert found["quantities"] == ["kappa", "mean", "sigma", "log likelihood"]
    assert np.shape(found["ranks"]) == (20, 4)
    assert found["command"].startswith("fokkerflow calibrate --model ou")
    assert (tmp_path / "calibration.png").stat().st_size > 10_000
    assert sorted(file.name for file in tmp_path.iterdir()) == ["calibration.json", "calibration.png"]
    again = RUN.invoke(app, arguments)
    assert again.exit_code == 2
    assert "calibration.json is there. Choose another folder, or add --overwrite" in again.stderr.replace("\n", " ")

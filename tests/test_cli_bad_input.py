"""Bad input and faults of the commands of inference: a message that helps, an exit code, and nothing half written."""

import fcntl
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fokkerflow.cli import app
from fokkerflow.densities import Surrogate
from fokkerflow.inference.results import artifact
from fokkerflow.report.run import Settings
from fokkerflow.training import Law, Uniform
from tests.report.posteriors import ou_idata, ou_series
from tests.training.trainings import OU_LAW, untrained

RUN = CliRunner()
GOOD = "t,v,y\n0,0.1,0\n0.5,0.12,0.1\n1,0.09,0.05\n"
MY_SDE = """
import fokkerflow as ff
MINE = ff.from_functions(lambda x, p: -p.k * x, lambda x, p: p.s**2, states={"x": "real"}, parameters={"k": 1.0, "s": 0.3})
"""


@pytest.fixture(scope="module")
def densities(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained densities, made once: for gaps that are too short, good, and damaged."""
    made = tmp_path_factory.mktemp("densities")
    Surrogate(untrained(OU_LAW, dt_max=0.1)).save(made / "short.fkf")
    Surrogate(untrained(OU_LAW)).save(made / "ou.fkf")
    (made / "broken.fkf").write_bytes((made / "ou.fkf").read_bytes()[:-40])
    return made


@pytest.fixture
def folder(densities: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(densities, tmp_path, dirs_exist_ok=True)
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "my_sde.py").write_text(MY_SDE)
    ou_series().to_csv(tmp_path / "ou.csv")
    return tmp_path


def infer(*arguments: str, model: str = "heston", data: str = "good.csv") -> Any:
    return RUN.invoke(app, ["infer", data, "--model", model, "--out", "out", *arguments])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,v\n0,0.1\n0.5,0.12\n", "data.csv has no column 'y'; its columns are 't', 'v'"),
        ("time,v,y\n0,0.1,0\n", "data.csv has no column 't'; its columns are 'time', 'v', 'y'"),
        ("t,v,y\n0,0.1,0\n0.5,abc,0\n", "data.csv, line 3, column 'v': got 'abc', expected a number"),
        ("t,v,y\n0,0.1,0\n0.5,nan,0\n", "v is nan in row 1 (line 3 of data.csv), expected a finite number"),
        ("t,v,y\n0,0.1,0\n0.5,,0\n", "data.csv, line 3, column 'v': got '', expected a number"),
        ("t,v,y\n0,0.1,0\n0.5,-0.02,0\n", "data.csv: Heston: v = -0.02 in row 1 (time 0.5), expected a value in (0, inf)"),
        ("t,v,y\n2024-01-02,0.1,0\n2024-01-02,0.1,0\n", "time 0 in row 1 (line 3 of data.csv) repeats the time before it"),
        ("t,v,y\n2024-01-02,0.1,0\n2023-01-02,0.1,0\n", "in row 1 (line 3 of data.csv) is earlier than the time before it"),
        ("t,v,y\n2024-01-02,0.1,0\n2,0.1,0\n", "got '2', expected an ISO date like the first one, '2024-01-02'"),
        ("t,v,y\n0,0.1,0\n", "data.csv: a likelihood needs at least one transition: got 1 row, expected 2 or more"),
        ("t,v,y\n", "Series: got no rows, expected at least one observation"),
        ("", "data.csv: the file is empty, expected a header line"),
        ("t,v,y\n0,0.1,0\n0.5,0.1\n", "data.csv, line 3: got 2 cells, expected 3 as in the header"),
    ],
)
def test_bad_data_are_refused_by_line(text: str, message: str, folder: Path) -> None:
    Path("data.csv").write_text(text)
    result = infer(data="data.csv")
    assert result.exit_code == 2, result.output
    assert message in result.stderr.replace("\n", " ")
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv", "-m", "heston"], "none.csv: cannot be read (No such file or directory)"),
        (["good.csv", "-m", "hesston"], "Got model 'hesston', expected one of ou"),
        (["good.csv", "-m", "heston", "--columns", "w=v"], "Got the state 'w' in --columns; those of Heston are v, y"),
        (["good.csv", "-m", "heston", "--columns", "v"], "Got 'v' in --columns, expected state=column"),
        (["good.csv", "-m", "heston", "--columns", "v=variance"], "good.csv has no column 'variance'"),
        (["good.csv", "-m", "heston", "--density", "exct"], "Got the density 'exct': no file, and no density of Heston"),
        (["good.csv", "-m", "heston", "--density", "ou.fkf"], "ou.fkf"),
        (["ou.csv", "-m", "ou", "--density", "broken.fkf"], "broken.fkf: the file is truncated: its checksum does not fit"),
        (["ou.csv", "-m", "ou", "--density", "short.fkf"], "got dt = 0.25, this density is for gaps up to 0.1"),
        (["ou.csv", "-m", "ou", "--density", "ou.fkf", "--prior", "kappa=Uniform(50, 60)"], "kappa lies outside the law"),
        (["ou.csv", "-m", "ou", "--prior", "kappa=Gaussian(1, 2)"], "expected parameter=Distribution(numbers)"),
        (["ou.csv", "-m", "ou", "--prior", "kappa=Normal(1, -2)"], "Got 'kappa=Normal(1, -2)' in --prior"),
        (["ou.csv", "-m", "ou", "--prior", "kappa=__import__('os')"], "expected parameter=Distribution(numbers)"),
        (["ou.csv", "-m", "ou", "--prior", "kapa=Normal(1, 2)"], "got a prior of 'kapa', expected some of kappa, mean, sigma"),
        (["ou.csv", "-m", "ou", "--truth", "kappa=2"], "missing parameter 'mean'"),
        (["ou.csv", "-m", "ou", "--truth", "kappa"], "expected name=number"),
        (["ou.csv", "-m", "ou", "--sampler", "gibbs"], "Got sampler 'gibbs', expected one of 'nuts', 'slice'"),
        (["ou.csv", "-m", "ou", "--chains", "0"], "Got chains = 0, expected a whole number, 1 or more"),
        (["ou.csv", "-m", "ou", "--time", "none", "--dt", "-1"], "Got --dt -1, expected a positive number"),
        (["ou.csv", "-m", "my_sde.py:MINE"], "has no exact density and no trained one comes with the package. Train one with"),
    ],
)  # fmt: skip
def test_bad_requests_are_refused_and_leave_no_results(arguments: list[str], message: str, folder: Path) -> None:
    result = RUN.invoke(app, ["infer", *arguments, "--out", "out"])
    assert result.exit_code == 2, result.output
    assert message in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.output
    assert not list(Path().glob("out/*.nc"))
    assert not list(Path().glob("out/*.html"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "nowhere"], "nowhere is not the folder of a run: there is no run.json in it"),
        (["check", "nowhere"], "nowhere is not the folder of a run"),
        (["compare", "ou.csv", "-m", "ou", "--density", "exact"], "Got exact to compare, expected at least two densities"),
        (["calibrate", "-m", "ou", "-o", "out"], "the prior of 'kappa' is flat and unbounded"),
        (["calibrate", "-m", "ou", "-o", "out", "--simulations", "3"], "expected at least 20 simulations"),
        (["profile", "ou.csv", "-m", "ou", "--points", "1"], "Got points = 1, expected at least 3"),
    ],
)
def test_the_other_commands_refuse_too(arguments: list[str], message: str, folder: Path) -> None:
    result = RUN.invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr.replace("\n", " ")


def test_a_folder_that_another_run_writes_to_is_refused(folder: Path) -> None:
    Path("out").mkdir()
    handle = os.open("out", os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        result = infer("--density", "ou.fkf", model="ou", data="ou.csv")
    finally:
        os.close(handle)
    assert result.exit_code == 2
    assert "Another run is writing to out" in result.stderr
    assert not list(Path("out").iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_noticed_before_anything_is_computed(folder: Path) -> None:
    Path("out").mkdir(mode=0o555)
    result = infer(model="ou", data="ou.csv")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_a_folder_that_refuses_writes_is_noticed_before_anything_is_computed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root, permissions refuse nothing; this stands in for a read-only folder."""

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", "out/run.json")

    monkeypatch.setattr("fokkerflow._files.tempfile.mkstemp", refuse)
    monkeypatch.setattr("fokkerflow.report.run.Posterior.sample", lambda *_, **__: pytest.fail("sampled"))
    result = infer(model="ou", data="ou.csv")
    assert result.exit_code == 2
    assert "out/run.json: cannot be written (Permission denied)" in result.stderr


def test_a_full_disk_is_a_failed_run_that_can_go_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fokkerflow.report.folder import Folder

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "out/posterior.nc")

    monkeypatch.setattr(Folder, "write_posterior", full)
    result = infer("--draws", "100", "--warmup", "100", "--chains", "2", model="ou", data="ou.csv")
    assert result.exit_code == 1
    words = " ".join(result.stderr.split())
    assert "out/posterior.nc: No space left on device. What is done is kept. To go on: fokkerflow infer" in words
    assert sorted(os.listdir("out")) == ["run.json", "sampling.checkpoint"]
    assert json.loads(Path("out/run.json").read_text())["status"] == "running"


def test_columns_by_name_dates_and_several_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reaches the sampler is what the files say: 365.25 days are a year."""
    Path("a.csv").write_text("day,price,variance\n2020-01-01,1.0,0.1\n2020-01-31,1.1,0.12\n2021-01-01,1.2,0.11\n")
    Path("b.csv").write_text("day,price,variance\n2022-01-01,1.0,0.1\n2023-01-01,1.1,0.12\n")
    seen: dict[str, Any] = {}

    def run(_: Any, posterior: Any, settings: Settings, record: Any, **__: Any) -> None:
        seen.update(series=posterior.series, settings=settings, record=record)
        raise ValueError("enough")

    monkeypatch.setattr("fokkerflow.report.run.run", run)
    arguments = ["infer", "a.csv", "b.csv", "-m", "heston", "-o", "out", "--time", "day", "--columns", "v=variance,y=price"]
    assert RUN.invoke(app, [*arguments, "--seed", "5"]).exit_code == 2
    first, second = seen["series"]
    assert first.names == ("v", "y")
    np.testing.assert_allclose(first.times, np.array([0, 30, 366]) / 365.25)
    np.testing.assert_array_equal(first.states[1], [0.12, 1.1])
    assert (first.origin, second.origin) == ("2020-01-01", "2022-01-01")
    assert seen["settings"] == Settings(seed=5)
    assert [file["path"] for file in seen["record"]["data"]] == ["a.csv", "b.csv"]


def test_a_file_without_times_has_equal_gaps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("fokkerflow.report.run.run", lambda _, posterior, *__, **___: seen.append(posterior.series[0]))
    infer("--time", "none", "--dt", "0.25")
    np.testing.assert_array_equal(seen[0].times, [0, 0.25, 0.5])


def test_a_model_and_a_density_of_ones_own_are_found_again_from_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fokkerflow.cli.arguments import find_model
    from fokkerflow.cli.reports import _read
    from fokkerflow.report.folder import Folder

    sde = find_model("my_sde.py:MINE")
    law = Law(sde, {"x": Uniform(-1, 1)}, {"k": Uniform(0.5, 4), "s": Uniform(0.1, 0.5)})
    Surrogate(untrained(law)).save("mine.fkf")

    def run(out: Folder, posterior: Any, _: Settings, record: Any, **__: Any) -> None:
        assert posterior.density.sde == sde
        out.write_record(record)
        idata = ou_idata(draws=4)
        idata.posterior.attrs["artifact"] = artifact(posterior.density)
        out.write_posterior(idata)
        raise ValueError("enough")

    monkeypatch.setattr("fokkerflow.report.run.run", run)
    infer("--density", "mine.fkf", model="my_sde.py:MINE", data="ou.csv")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    finished = _read(folder / "out")
    assert finished.density.sde == sde
    assert finished.series == [ou_series()]
    Surrogate(untrained(law, dt_max=0.7)).save(folder / "mine.fkf")
    with pytest.raises(ValueError, match="its file has been replaced"):
        _read(folder / "out")

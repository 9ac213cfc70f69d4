"""The folder of a run: whole files, one writer, and nothing replaced by accident."""

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fokkerflow.report.folder import Folder, FolderError
from fokkerflow.report.stored import stored_series
from fokkerflow.sde import CIR, OU
from tests.report.posteriors import ou_idata, ou_series


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    found = Folder(tmp_path / "run")
    with found.claimed():
        found.write_posterior(ou_idata(draws=10))
        found.write_record({"again": {}})
    return found


def test_draws_and_data_come_back_as_they_were(folder: Folder) -> None:
    before, after = ou_idata(draws=10), folder.read_posterior()
    for name in OU.parameters:
        np.testing.assert_array_equal(after.posterior[name], before.posterior[name])
    assert after.posterior.attrs["seed"] == 1
    assert stored_series(OU(), after, {"data": [{"origin": None}]}) == [ou_series()]
    with pytest.raises(FolderError, match="The draws are not of CIR: there are no observations of v"):
        stored_series(CIR(), after, {})


def test_a_finished_run_is_not_replaced_by_accident(folder: Folder) -> None:
    with (
        pytest.raises(FolderError, match=r"holds a finished run\. Choose another folder, or add --overwrite"),
        folder.claimed(),
    ):
        pass
    with folder.claimed(overwrite=True):
        pass


def test_an_unfinished_run_is_not_lost_by_accident(folder: Folder) -> None:
    folder.checkpoint.write_text("half of it")
    with pytest.raises(FolderError, match=r"a run that did not finish\. Add --resume to go on"), folder.claimed():
        pass
    with folder.claimed(resume=True):
        assert folder.checkpoint.exists()
    with folder.claimed(overwrite=True):
        assert not folder.checkpoint.exists()


def _hold(path: Path, ready: Any, done: Any) -> None:
    with Folder(path).claimed(overwrite=True):
        ready.set()
        done.wait(60)


def test_two_runs_do_not_write_into_one_folder(folder: Folder) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(folder.path, ready, done))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(FolderError, match="Another run is writing to"), folder.claimed(overwrite=True):
            pass
        other.kill()  # the lock does not outlive its owner
        other.join(60)
        with folder.claimed(overwrite=True):
            pass
    finally:
        other.kill()
        other.join()


@pytest.mark.parametrize("what", ["posterior", "record", "report"])
def test_a_file_that_cannot_be_written_leaves_the_old_one(folder: Folder, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write_text(folder.report, "old")
    before = {file.name: file.read_bytes() for file in folder.path.iterdir()}

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    writes: dict[str, Any] = {
        "posterior": lambda: folder.write_posterior(ou_idata(draws=12)),
        "record": lambda: folder.write_record({"again": {"model": "cir"}}),
        "report": lambda: folder.write_text(folder.report, "new"),
    }
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space left"):
        writes[what]()
    assert {file.name: file.read_bytes() for file in folder.path.iterdir()} == before


def test_what_is_no_run_is_refused(folder: Folder, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"is not the folder of a run: there is no run\.json"):
        Folder(tmp_path).read_record()
    folder.posterior.write_bytes(folder.posterior.read_bytes()[:2000])
    with pytest.raises(FolderError, match=r"posterior\.nc: cannot be read"):
        folder.read_posterior()
    folder.record.write_text("{")
    with pytest.raises(FolderError, match=r"run\.json: cannot be read"):
        folder.read_record()
    folder.posterior.unlink()
    folder.write_record({"again": {}})
    with pytest.raises(FolderError, match=r"did not finish: there is no posterior\.nc"):
        folder.read_record()

"""The folder of a run: which files it has, that each is whole, and that two runs never write into it at once."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fokkerflow._files import replacing

FINISHED, RUNNING = "finished", "running"


class FolderError(ValueError):
    """A folder that a run cannot use; the message says why and what to do."""


class Folder:
    """The results of one run: ``posterior.nc``, ``summary.csv``, ``report.html``, and ``run.json``, which is about the others.

    Each file is written under another name and moved into place, so that whoever reads sees all of it or what was there before.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.posterior, self.summary = path / "posterior.nc", path / "summary.csv"
        self.report, self.record = path / "report.html", path / "run.json"
        self.checkpoint = path / "sampling.checkpoint"

    @contextlib.contextmanager
    def claimed(self, *, resume: bool = False, overwrite: bool = False) -> Iterator[None]:
        """Make the folder if need be, and keep other runs out of it.

        **Raises:** FolderError if another run is writing to it, or if there are results or an unfinished run that nothing was
        said about; OSError if it cannot be written to.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with self.locked():
            self._refuse_what_is_there(resume, overwrite)
            if not resume:
                self.checkpoint.unlink(missing_ok=True)
            yield

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others out. The operating system lets go of the lock when the process ends, however that happens."""
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            yield
            return
        handle = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise FolderError(f"Another run is writing to {self.path}. Wait until it ends, or choose another folder.") from None
        try:
            yield
        finally:
            os.close(handle)

    def _refuse_what_is_there(self, resume: bool, overwrite: bool) -> None:
        if self.checkpoint.exists() and not (resume or overwrite):
            raise FolderError(
                f"{self.path} holds a run that did not finish. Add --resume to go on, --overwrite to start afresh."
            )
        if self.posterior.exists() and not self.checkpoint.exists() and not overwrite:
            raise FolderError(f"{self.path} holds a finished run. Choose another folder, or add --overwrite to replace it.")

    def write_text(self, path: Path, text: str) -> None:
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def write_record(self, record: Mapping[str, Any]) -> None:
        self.write_text(self.record, json.dumps(record, indent=2, ensure_ascii=False) + "\n")

    def write_posterior(self, idata: Any) -> None:
        with replacing(self.posterior) as temporary:
            idata.to_netcdf(str(temporary), engine="h5netcdf")

    def read_record(self) -> dict[str, Any]:
        """What the run says about itself."""
        if not self.record.exists():
            raise FolderError(f"{self.path} is not the folder of a run: there is no {self.record.name} in it.")
        try:
            found = json.loads(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FolderError(f"{self.record}: cannot be read ({error}).") from None
        if not isinstance(found, dict) or "again" not in found:
            raise FolderError(f"{self.record}: this is not the record of a run.")
        if not self.posterior.exists():
            raise FolderError(f"{self.path} holds a run that did not finish: there is no {self.posterior.name} in it.")
        return found

    def read_posterior(self) -> Any:
        """The draws, in memory."""
        from fokkerflow.inference._arviz import arviz

        try:
            with arviz.rc_context({"data.load": "eager"}):
                return arviz.from_netcdf(str(self.posterior), engine="h5netcdf")
        except (OSError, ValueError, KeyError) as error:
            raise FolderError(f"{self.posterior}: cannot be read ({error}).") from None

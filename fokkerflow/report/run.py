"""A run from a posterior to a folder of results: sample, check, write. What `fokkerflow infer` does."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fokkerflow.inference.chains import Progress
from fokkerflow.inference.posterior import Posterior
from fokkerflow.report.build import report_html, report_verdict
from fokkerflow.report.checks import run_checks
from fokkerflow.report.contents import Contents
from fokkerflow.report.folder import FINISHED, RUNNING, Folder
from fokkerflow.report.verdict import Verdict

if TYPE_CHECKING:
    from fokkerflow.densities.density import Density


@dataclass(frozen=True)
class Settings:
    """Of the sampler; those of `Posterior.sample`."""

    sampler: str = "nuts"
    draws: int = 1000
    warmup: int = 1000
    chains: int = 4
    seed: int = 0


def run(
    folder: Folder,
    posterior: Posterior,
    settings: Settings,
    record: Mapping[str, Any],
    *,
    truth: Mapping[str, float] | None = None,
    progress: Callable[[Progress], None] | None = None,
    stage: Callable[[str], None] = lambda _: None,
) -> Contents:
    """Sample a posterior, check it, and write posterior, summary, record and report into a folder that has been claimed.

    **Arguments:**

    - `record`: what ``run.json`` says about model, density, data and command; ``density`` is the density's name.
    - `progress`: called while sampling. `stage`: called with the name of each stage as it begins.

    The checkpoint of the sampling is removed at the very end, when everything is in place: until then a run can go on.
    """
    begun = {**record, "status": RUNNING, "settings": asdict(settings), "started": _now()}
    folder.write_record(begun)
    stage("sampling")
    idata = posterior.sample(**asdict(settings), checkpoint=folder.checkpoint, progress=progress)
    folder.write_posterior(idata)
    contents = finish(folder, posterior.density, posterior.series, idata, begun, truth=truth, stage=stage)
    folder.checkpoint.unlink(missing_ok=True)
    return contents


def finish(
    folder: Folder,
    density: Density,
    series: Any,
    idata: Any,
    record: Mapping[str, Any],
    *,
    reference: tuple[str, Density] | None = None,
    truth: Mapping[str, float] | None = None,
    stage: Callable[[str], None] = lambda _: None,
) -> Contents:
    """Check draws that are there, and write all files but the draws."""
    clocks = {"sampling": float(idata.posterior.attrs["seconds"])}
    stage("checks")
    started = time.monotonic()
    checks = run_checks(density, series, idata, seed=int(idata.posterior.attrs["seed"]), reference=reference)
    clocks["checks"] = time.monotonic() - started
    stage("report")
    started = time.monotonic()
    contents = Contents(
        density, series, idata, str(record["density"]), checks, dict(truth or {}), {**record, "seconds": clocks}
    )
    folder.write_text(folder.summary, summary_csv(contents))
    folder.write_text(folder.report, report_html(contents))
    clocks["report"] = time.monotonic() - started
    folder.write_record(
        {
            **contents.record,
            "status": FINISHED,
            "finished": _now(),
            "truth": dict(truth or {}),
            "against": None if reference is None else reference[0],
            "verdict": verdict_dict(report_verdict(contents)),
            "checks": checks.to_dict(),
        }
    )
    return contents


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    """Plain data."""
    answers = [{**asdict(answer), "level": answer.level.value} for answer in verdict.answers]
    return {"level": verdict.level.value, "headline": verdict.headline, "answers": answers}


def summary_csv(contents: Contents) -> str:
    """One line for each parameter, in full precision."""
    rows = contents.summary
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

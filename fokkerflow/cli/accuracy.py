"""`fokkerflow compare` without data: accuracy against cost of every density of a model."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fokkerflow.cli.accuracy_table import Settings, show
from fokkerflow.cli.app import stop
from fokkerflow.cli.arguments import find_law
from fokkerflow.cli.commands import print_json, without_infinities
from fokkerflow.cli.densities import find_density

if TYPE_CHECKING:
    from fokkerflow.densities import Density
    from fokkerflow.report.accuracy import Accuracy
    from fokkerflow.sde import SDE
    from fokkerflow.training import Law

BEST = ("exact", "fourier")
"""Methods that can be the reference of others, the best first."""

_TEST_LAW = "paper-test"


def best_first(names: Sequence[str]) -> list[str]:
    """With the methods that can be a reference at the front."""
    return [*(name for name in BEST if name in names), *(name for name in names if name not in BEST)]


def run(
    sde: SDE,
    names: Sequence[str] | None,
    gaps: Sequence[float],
    settings: Settings,
    params: Mapping[str, float],
    *,
    out: Path | None,
    as_json: bool,
    command: str,
) -> None:
    """Measure, print, and write."""
    from rich.console import Console

    from fokkerflow.cli.progress import shown
    from fokkerflow.report.accuracy import Progress, measure
    from fokkerflow.report.accuracy_trials import trials

    if not settings.budget >= 0:
        stop(f"Got --budget {settings.budget:g}, expected seconds, 0 or more.")
    reference, makes = _densities(sde, names, settings.reference)
    law_name, law = _law(sde, settings.law)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    design = {"n": settings.n, "trajectories": settings.trajectories, "draws": settings.draws, "seed": settings.seed}
    with shown(Console(stderr=True), lambda p: f"{100 * p.share:.0f} % done", to_stderr=True) as update:
        update(Progress("simulating trajectories", 0.0, 0.0, math.inf))
        every = [trials(sde, dt, law, params={**sde.typical, **params}, **design) for dt in dict.fromkeys(gaps)]
        rows = _ranked(measure(reference, makes, every, budget=settings.budget, progress=update))
    record = {"command": command, "model": sde.label, "reference": reference[0], "law": law_name, **design}
    record["densities"] = [asdict(row) for row in rows]
    if out is not None:
        _write(out, rows, record)
    if as_json:
        print_json(record)
    else:
        show(sde.label, rows, settings, law_name)
        if out is not None:
            typer.echo(f"Written to {out}: accuracy.png, accuracy.csv, accuracy.json")


def _densities(
    sde: SDE, names: Sequence[str] | None, reference: str
) -> tuple[tuple[str, Callable[[], Density]], dict[str, Callable[[], Density]]]:
    """What makes the reference and the others, by name; names that nobody knows are refused here."""
    from fokkerflow.densities import methods
    from fokkerflow.densities.registry import every_method

    best = reference or next((name for name in BEST if name in methods(sde)), "")
    if not best:
        stop(
            f"{sde.label} has no exact density to compare with. Name another reference, such as a trained one: "
            f"--reference FILE.fkf. Or a method: --reference {' or '.join(methods(sde))}"
        )
    if best not in methods(sde):
        find_density(best, sde)
    chosen = best_first(list(dict.fromkeys(names or every_method())))
    others = {name: _make(name, sde) for name in chosen if name != best}
    return (best, partial(_reference, best, sde)), others


def _make(name: str, sde: SDE) -> Callable[[], Density]:
    """A method may turn out not to apply, and is one row then; a file has to be there."""
    from fokkerflow.densities import density
    from fokkerflow.densities.registry import every_method

    if name in every_method():
        return partial(density, name, sde)
    find_density(name, sde)
    return partial(_reference, name, sde)


def _reference(name: str, sde: SDE) -> Density:
    return find_density(name, sde)[1]


def _law(sde: SDE, text: str) -> tuple[str, Law | None]:
    """The law that is named, else the test law, else that of the shipped density, else the first that ships, else none."""
    from fokkerflow.densities import Surrogate, density, methods
    from fokkerflow.training import laws

    if text:
        law = find_law(text, sde)
        return text, laws.shipped(law, sde) if isinstance(law, str) else law
    if _TEST_LAW in laws.names(sde):
        return _TEST_LAW, laws.shipped(_TEST_LAW, sde)
    trained = density("surrogate", sde) if "surrogate" in methods(sde) else None
    if isinstance(trained, Surrogate):
        return "that of the trained density", trained.trained.law
    shipped = next(iter(laws.names(sde)), "")
    return shipped, laws.shipped(shipped, sde) if shipped else None


def _ranked(rows: Sequence[Accuracy]) -> list[Accuracy]:
    """For each gap the reference, then the others by their error at mu*, then those that do not apply."""
    gaps = list(dict.fromkeys(row.dt for row in rows))

    def rank(row: Accuracy) -> tuple[int, bool, bool, float]:
        return gaps.index(row.dt), bool(row.reason), not row.is_reference, row.at_star.median if row.at_star else 0.0

    return sorted(rows, key=rank)


def _write(out: Path, rows: Sequence[Accuracy], record: Mapping[str, Any]) -> None:
    from fokkerflow._files import replacing
    from fokkerflow.report.accuracy_figure import accuracy_figure

    title = f"{record['model']}: accuracy against cost, compared with '{record['reference']}'"
    with replacing(out / "accuracy.png") as temporary:
        accuracy_figure(rows, title).savefig(temporary, format="png")
    with replacing(out / "accuracy.json") as temporary:
        temporary.write_text(json.dumps(without_infinities(record), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    lines = [_flat(row) for row in rows]
    with replacing(out / "accuracy.csv") as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for line in lines for key in line)), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def _flat(row: Accuracy) -> dict[str, Any]:
    """One line of the CSV file; what there is no number for stays empty."""
    flat: dict[str, Any] = {}
    for key, value in asdict(row).items():
        flat |= {f"{key}_{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value}
    return {
        key: "" if value is None or (isinstance(value, float) and math.isnan(value)) else value for key, value in flat.items()
    }

"""`fokkerflow profile`: maximum likelihood, standard errors, and the likelihood along each parameter."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fokkerflow.cli.app import app
from fokkerflow.cli.arguments import find_model, parse_params
from fokkerflow.cli.commands import JSON, ending_well, print_json
from fokkerflow.cli.data import COLUMNS, FILES, STEP, TIME, read
from fokkerflow.cli.densities import DENSITY, find_density
from fokkerflow.cli.infer import MODEL

if TYPE_CHECKING:
    from fokkerflow.inference.estimate import Estimate
    from fokkerflow.inference.profile import Profile


@app.command()
def profile(
    files: FILES,
    model: MODEL,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder for profile.csv and profile.png.")] = None,
    density: DENSITY = "",
    time: TIME = "t",
    columns: COLUMNS = "",
    step: STEP = 1.0,
    points: Annotated[int, typer.Option(help="Points along each parameter.")] = 15,
    truth: Annotated[str, typer.Option(help="Known parameters of simulated data, to mark in the picture.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of the starting points.")] = 0,
    as_json: JSON = False,
) -> None:
    """Maximise the likelihood, and profile it: along each parameter, maximised over all others.

    Example: [bold]fokkerflow profile data.csv --model heston --out out/profile[/bold]
    """
    from fokkerflow.inference import Posterior

    sde = find_model(model)
    with ending_well():
        known = parse_params(truth)
        series, _ = read(sde, files, time, columns, step)
        name, found = find_density(density, sde)
        posterior = Posterior(found, series)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        best, profiles = posterior.maximum(seed=seed), posterior.profile(points=points, seed=seed)
        if out is not None:
            _write(out, profiles, known)
    if as_json:
        print_json(_plain(name, best, profiles))
    else:
        _print(name, best, profiles)


def _write(out: Path, profiles: list[Profile], known: dict[str, float]) -> None:
    from fokkerflow._files import replacing
    from fokkerflow.report.profile_figure import profile_figure

    with replacing(out / "profile.csv") as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["parameter", "value", "log_likelihood", *(f"at_{p.parameter}" for p in profiles)])
        for p in profiles:
            for value, height, others in zip(p.values, p.log_likelihood, p.others, strict=True):
                writer.writerow([p.parameter, float(value), float(height), *map(float, others)])
    with replacing(out / "profile.png") as temporary:
        profile_figure(profiles, known).savefig(temporary, format="png")


def _plain(name: str, best: Estimate, profiles: list[Profile]) -> dict[str, Any]:
    errors = best.standard_errors
    parameters = {
        p.parameter: {
            "estimate": best.values[p.parameter],
            "standard_error": errors[p.parameter],
            "profile_95": list(p.interval()),
            "values": p.values.tolist(),
            "log_likelihood": p.log_likelihood.tolist(),
        }
        for p in profiles
    }
    return {
        "density": name,
        "log_likelihood": best.log_likelihood,
        "converged": best.converged,
        "at_end": list(best.at_end),
        "parameters": parameters,
    }


def _print(name: str, best: Estimate, profiles: list[Profile]) -> None:
    from rich.console import Console
    from rich.table import Table

    from fokkerflow.report.words import to_precision, two_digits

    title = f"Maximum likelihood, density '{name}': log likelihood {best.log_likelihood:.4f}"
    table = Table("parameter", "estimate", "standard error", "95 % by profile")
    errors = best.standard_errors
    for p in profiles:
        error = errors[p.parameter]
        low, high = (to_precision(end, error) for end in p.interval())
        table.add_row(p.parameter, to_precision(best.values[p.parameter], error), two_digits(error), f"{low} to {high}")
    console = Console()
    console.print(title, highlight=False)
    console.print(table)
    if best.at_end:
        console.print(f"At the end of its range, without a standard error: {', '.join(best.at_end)}.")
    if not best.converged:
        console.print("The maximum was not reached to full accuracy: look at the profiles before you use these numbers.")

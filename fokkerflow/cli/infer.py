"""`fokkerflow infer`: from a CSV file to a posterior and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fokkerflow.cli.app import app
from fokkerflow.cli.arguments import MODEL_HELP, find_model, parse_params
from fokkerflow.cli.commands import JSON, anywhere, command_line, ending_well, print_json
from fokkerflow.cli.data import COLUMNS, FILES, STEP, TIME, described, read
from fokkerflow.cli.densities import DENSITY, find_density
from fokkerflow.cli.priors import PRIOR, find_prior

if TYPE_CHECKING:
    from fokkerflow.report.contents import Contents
    from fokkerflow.report.folder import Folder

MODEL = Annotated[str, typer.Option("--model", "-m", help=MODEL_HELP)]


@app.command()
def infer(
    context: typer.Context,
    files: FILES,
    model: MODEL,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the results.")],
    density: DENSITY = "",
    prior: PRIOR = None,
    time: TIME = "t",
    columns: COLUMNS = "",
    step: STEP = 1.0,
    sampler: Annotated[str, typer.Option(help="'nuts', or 'slice', the paper's.")] = "nuts",
    draws: Annotated[int, typer.Option(help="Draws of each chain.")] = 1000,
    warmup: Annotated[int, typer.Option(help="Steps of each chain before its draws.")] = 1000,
    chains: Annotated[int, typer.Option(help="Chains, which run in parallel.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    truth: Annotated[
        str, typer.Option(help="Known parameters of simulated data, such as 'kappa=2,mean=0.5', to mark in the report.")
    ] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that did not finish.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    as_json: JSON = False,
) -> None:
    """Sample the posterior of a model's parameters given data, check it, and write a report.

    Leaves in the folder: posterior.nc (ArviZ), summary.csv, report.html, run.json. If it is interrupted, --resume goes on.

    Example: [bold]fokkerflow infer data.csv --model heston --out out/heston[/bold]
    """
    from rich.console import Console

    from fokkerflow.cli.progress import divergences, shown
    from fokkerflow.inference import Posterior
    from fokkerflow.report.folder import Folder
    from fokkerflow.report.run import Settings, run

    sde, folder, command = find_model(model), Folder(out), command_line(context)
    console = Console(stderr=True)
    with ending_well(f"What is done is kept. To go on: {command} --resume"):
        known = _known(sde, truth)
        series, sources = read(sde, files, time, columns, step)
        name, found = find_density(density, sde)
        posterior = Posterior(found, series, find_prior(sde, prior))
        record = {
            "command": command,
            "model": model,
            "density": name,
            "again": {"model": anywhere(model), "density": anywhere(density or name)},
            "data": described(sources, series),
            "prior": posterior.prior.words,
        }
        with folder.claimed(resume=resume, overwrite=overwrite):
            if not as_json:
                console.print(f"{sde.label}, density '{name}'. Prior: {posterior.prior.words}", highlight=False)
                console.print("Sampling. The first steps take longest: they are compiled.", highlight=False)
            with shown(console, divergences, to_stderr=True) as progress:
                settings = Settings(sampler, draws, warmup, chains, seed)
                contents = run(folder, posterior, settings, record, truth=known, progress=progress)
        show(folder, contents, as_json)


def _known(sde: Any, text: str) -> dict[str, float] | None:
    from fokkerflow.sde.validation import check_parameters, parameter_vector

    if not text:
        return None
    values = parse_params(text)
    check_parameters(sde, parameter_vector(sde, values))
    return values


def show(folder: Folder, contents: Contents, as_json: bool) -> None:
    """The results on standard output."""
    from fokkerflow.report.build import report_verdict
    from fokkerflow.report.run import verdict_dict

    verdict, files = report_verdict(contents), (folder.report, folder.posterior, folder.summary, folder.record)
    if as_json:
        parameters = {row["parameter"]: {k: v for k, v in row.items() if k != "parameter"} for row in contents.summary}
        print_json(
            {
                "model": contents.sde.label,
                "density": contents.name,
                "parameters": parameters,
                "verdict": verdict_dict(verdict),
                "seconds": contents.record["seconds"],
                "files": {file.name: str(file) for file in files},
            }
        )
        return
    _print_tables(contents)
    typer.echo(f"Read {folder.report}; the draws are in {folder.posterior}.")


_MARKS = {"good": ("green", "✓"), "open": ("dim", "?"), "care": ("yellow", "!"), "bad": ("red", "✕")}


def _print_tables(contents: Contents) -> None:
    from rich.console import Console
    from rich.table import Table

    from fokkerflow.report.build import report_verdict
    from fokkerflow.report.sections.posterior import estimates

    console, found, verdict = Console(), estimates(contents), report_verdict(contents)
    table = Table(*found.header, "R-hat", "ESS")
    for row, numbers in zip(found.rows, contents.summary, strict=True):
        table.add_row(*row, f"{numbers['r_hat']:.3f}", f"{numbers['ess_bulk']:.0f}")
    console.print(f"{found.caption}:", highlight=False)
    console.print(table)
    for answer in verdict.answers:
        colour, mark = _MARKS[answer.level.value]
        console.print(f"[{colour}]{mark}[/{colour}] [bold]{answer.question}[/bold] ", end="")
        console.print(answer.answer, highlight=False, markup=False)
    console.print(f"[bold]{verdict.headline}[/bold]", highlight=False)

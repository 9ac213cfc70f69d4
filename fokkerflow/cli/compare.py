"""`fokkerflow compare`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from fokkerflow.cli.app import app, stop
from fokkerflow.cli.arguments import find_model, parse_params
from fokkerflow.cli.commands import JSON, ending_well, print_json
from fokkerflow.cli.data import COLUMNS, FILES, STEP, TIME, read
from fokkerflow.cli.densities import find_density
from fokkerflow.cli.infer import MODEL
from fokkerflow.cli.priors import PRIOR, find_prior

if TYPE_CHECKING:
    from fokkerflow.report.comparison import Compared


@app.command()
def compare(
    files: FILES,
    model: MODEL,
    density: Annotated[
        list[str] | None,
        typer.Option(
            help="A density to compare, by method, shipped name or file; may be repeated, and the first is what the others are "
            "compared with. All methods of the model if left out."
        ),
    ] = None,
    prior: PRIOR = None,
    time: TIME = "t",
    columns: COLUMNS = "",
    step: STEP = 1.0,
    params: Annotated[
        str,
        typer.Option("--params", "-p", help="Evaluate the likelihood here, such as 'kappa=2,mean=0.5', and sample nothing."),
    ] = "",
    draws: Annotated[int, typer.Option(help="Draws of each chain, of each posterior.")] = 500,
    warmup: Annotated[int, typer.Option(help="Steps of each chain before its draws.")] = 500,
    chains: Annotated[int, typer.Option(help="Chains, which run in parallel.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    as_json: JSON = False,
) -> None:
    """Compare transition densities on the same data: log likelihood, time, and how far the posterior moves.

    Example: [bold]fokkerflow compare data.csv --model heston --density exact --density mine.fkf[/bold]
    """
    from rich.console import Console

    from fokkerflow.cli.progress import divergences, shown
    from fokkerflow.densities import methods
    from fokkerflow.report.comparison import compare as run
    from fokkerflow.report.words import listed

    sde = find_model(model)
    with ending_well():
        series, _ = read(sde, files, time, columns, step)
        names = list(dict.fromkeys(density or methods(sde)))
        if len(names) < 2:
            stop(f"Got {listed(names)} to compare, expected at least two densities: --density exact --density mine.fkf")
        densities = dict(find_density(name, sde) for name in names)
        at = parse_params(params) if params else None
        with shown(Console(stderr=True), divergences, to_stderr=True) as update:
            rows = run(
                densities,
                series,
                prior=find_prior(sde, prior),
                at=at,
                progress=lambda name, p: update(p._replace(where=f"{name}: {p.where}")),
                draws=draws,
                warmup=warmup,
                chains=chains,
                seed=seed,
            )
    if as_json:
        print_json({"densities": [asdict(row) for row in rows]})
    else:
        _print(rows)


def _print(rows: list[Compared]) -> None:
    """One column for each density, so that any number of parameters fits on a screen."""
    from rich.console import Console
    from rich.table import Table

    table = Table("", *(row.name for row in rows))
    table.add_row("log likelihood", *(f"{row.log_likelihood:.4f}" for row in rows))
    table.add_row("relative error", "-", *(f"{row.relative_error:.1e}" for row in rows[1:]))
    table.add_row("one evaluation", *(f"{1e3 * row.seconds:.3g} ms" for row in rows))
    if rows[0].sampling_seconds is not None:
        table.add_row("sampling", *(f"{row.sampling_seconds:.1f} s" for row in rows))
    for name in rows[0].shift:
        table.add_row(f"{name}: shift, width", "-", *(f"{row.shift[name]:+.3f}, {row.width[name]:.3f}" for row in rows[1:]))
    console = Console()
    console.print(table)
    console.print(f"Compared with '{rows[0].name}'.", highlight=False)
    if rows[0].shift:
        console.print(
            "Shift: of the posterior mean, in its standard deviations. Width: ratio of the standard deviations.",
            highlight=False,
        )

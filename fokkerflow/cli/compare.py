"""`fokkerflow compare`: densities on data, or, without data, their accuracy against their cost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fokkerflow.cli import accuracy
from fokkerflow.cli.accuracy_table import Settings
from fokkerflow.cli.app import app, stop
from fokkerflow.cli.arguments import LAW_HELP, find_model, parse_params
from fokkerflow.cli.commands import JSON, command_line, ending_well, print_json
from fokkerflow.cli.data import COLUMNS, TIME, read
from fokkerflow.cli.densities import find_density
from fokkerflow.cli.infer import MODEL
from fokkerflow.cli.priors import PRIOR, find_prior

if TYPE_CHECKING:
    from fokkerflow.report.comparison import Compared
    from fokkerflow.sde import SDE

_WITH_FILES = ("prior", "time", "columns", "warmup", "chains")
_WITHOUT_FILES = ("reference", "law", "n", "trajectories", "budget", "out")
"""Options of one of the two uses only."""

_BY_DEFAULT = (*accuracy.BEST, "surrogate")
"""Compared on data if none is named: the posteriors of approximations are for those who ask for them."""

_DRAWS = {"files": 500, "law": 100}


@app.command()
def compare(
    context: typer.Context,
    model: MODEL,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DATA.csv]...", help="CSV files with a header line; several are independent series, and pooled."
        ),
    ] = None,
    density: Annotated[
        list[str] | None,
        typer.Option(
            help="A density to compare, by method, shipped name or file; may be repeated. With data the first is what the "
            "others are compared with. If left out: with data the exact and the shipped trained one, without data all methods."
        ),
    ] = None,
    step: Annotated[
        list[float] | None,
        typer.Option(
            "--dt", help="Without data: the time between observations; may be repeated. With data without times: between rows."
        ),
    ] = None,
    params: Annotated[
        str,
        typer.Option(
            "--params",
            "-p",
            help="Parameters, such as 'kappa=2,mean=0.5'. With data: evaluate the likelihood here, and sample nothing. "
            "Without: simulate with these, in place of the model's typical ones.",
        ),
    ] = "",
    draws: Annotated[
        int | None, typer.Option(help="With data: of each chain (500). Without: of the test law (100).", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    as_json: JSON = False,
    reference: Annotated[
        str,
        typer.Option(
            help="What the others are compared with: a method, shipped name or file. 'exact' or 'fourier' if left out.",
            rich_help_panel="Without data",
        ),
    ] = "",
    law: Annotated[
        str,
        typer.Option(
            help=f"{LAW_HELP} If left out: 'paper-test', else that of the trained density that ships.",
            rich_help_panel="Without data",
        ),
    ] = "",
    n: Annotated[int, typer.Option("--n", "-n", help="Observations of a trajectory.", rich_help_panel="Without data")] = 350,
    trajectories: Annotated[int, typer.Option(help="Simulated, at mu*.", rich_help_panel="Without data")] = 5,
    budget: Annotated[
        float,
        typer.Option(
            help="Seconds for each density on the test law. A slow one sees fewer draws, and the output says how many.",
            rich_help_panel="Without data",
        ),
    ] = 20.0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A folder for accuracy.png, .csv and .json.", rich_help_panel="Without data"),
    ] = None,
    prior: PRIOR = None,
    time: TIME = "t",
    columns: COLUMNS = "",
    warmup: Annotated[int, typer.Option(help="Steps of each chain before its draws.", rich_help_panel="With data")] = 500,
    chains: Annotated[int, typer.Option(help="Chains, which run in parallel.", rich_help_panel="With data")] = 4,
) -> None:
    """Compare transition densities: accuracy against cost, or log likelihood and posterior on the same data.

    [bold]Without data[/bold]: errors against a reference, at mu* on simulated trajectories and over a test law, microseconds a
    transition, set-up time and failures, in a table and a figure. A density that does not apply says why.

    Example: [bold]fokkerflow compare --model heston --dt 0.5 --out out/compare[/bold]

    [bold]With data[/bold]: log likelihood, time, and how far the posterior moves.

    Example: [bold]fokkerflow compare data.csv --model heston --density exact --density mine.fkf[/bold]
    """
    _refuse_mixtures(context, files, step, time)
    sde = find_model(model)
    with ending_well():
        if files:
            gap = step[0] if step else 1.0
            rows = _on_data(
                sde,
                read(sde, files, time, columns, gap)[0],
                density,
                prior=find_prior(sde, prior),
                at=parse_params(params) if params else None,
                options={
                    "draws": _DRAWS["files"] if draws is None else draws,
                    "warmup": warmup,
                    "chains": chains,
                    "seed": seed,
                },
            )
        else:
            settings = Settings(reference, law, n, trajectories, _DRAWS["law"] if draws is None else draws, budget, seed)
            accuracy.run(
                sde,
                density,
                step or [],
                settings,
                parse_params(params),
                out=out,
                as_json=as_json,
                command=command_line(context),
            )
            return
    if as_json:
        print_json({"densities": [asdict(row) for row in rows]})
    else:
        _print(rows)


def _refuse_mixtures(context: typer.Context, files: list[Path] | None, step: list[float] | None, time: str) -> None:
    """One of the two uses, and only its options: an option without effect is a misunderstanding."""
    given = {p.name: p.opts[0] for p in context.command.params if _is_given(context, str(p.name))}
    if not files and not step:
        stop(
            "Got neither data files nor --dt. Give files to compare densities on data, or --dt 0.5 for their accuracy against "
            "their cost."
        )
    if files and step and time.lower() != "none":
        stop("Got data files and --dt: the times are in the files. Leave one out; for files without times add --time none.")
    if files and step and len(step) > 1:
        stop("Got --dt more than once with data files, expected one time between rows.")
    wrong = [given[name] for name in (_WITHOUT_FILES if files else _WITH_FILES) if name in given]
    if wrong:
        where = "without data files" if files else "with data files"
        stop(f"Got {', '.join(wrong)}, which is for a comparison {where}: see fokkerflow compare --help.")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _on_data(
    sde: SDE, series: Any, names: list[str] | None, *, prior: Any, at: dict[str, float] | None, options: dict[str, int]
) -> list[Compared]:
    from rich.console import Console

    from fokkerflow.cli.progress import divergences, shown
    from fokkerflow.densities import methods
    from fokkerflow.report.comparison import compare as run
    from fokkerflow.report.words import listed

    names = list(dict.fromkeys(names or [name for name in _BY_DEFAULT if name in methods(sde)]))
    if len(names) < 2:
        stop(f"Got {listed(names)} to compare, expected at least two densities: --density exact --density mine.fkf")
    densities = dict(find_density(name, sde) for name in names)
    with shown(Console(stderr=True), divergences, to_stderr=True) as update:
        return run(
            densities,
            series,
            prior=prior,
            at=at,
            progress=lambda name, p: update(p._replace(where=f"{name}: {p.where}")),
            **options,
        )


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

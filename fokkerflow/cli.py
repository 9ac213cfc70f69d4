"""The command `fokkerflow`. Commands import what they need when they run, so that ``--help`` answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fokkerflow._version import __version__

app = typer.Typer(
    help="Bayesian inference for stochastic differential equations observed at discrete times.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

BAD_INPUT = 2


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fokkerflow {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Bayesian inference for stochastic differential equations observed at discrete times.

    Start with [bold]fokkerflow models[/bold], or see everything at work with [bold]fokkerflow demo[/bold].
    """


@app.command()
def models() -> None:
    """List the models that come with the package: states, parameters, constraints, densities.

    Example: [bold]fokkerflow models[/bold]
    """
    from rich.console import Console
    from rich.table import Table

    from fokkerflow.densities import methods
    from fokkerflow.sde import MODELS

    table = Table("model", "states", "parameters", "constraints", "densities", title="Models", title_justify="left")
    for name, model in MODELS.items():
        sde = model()
        table.add_row(
            f"[bold]{name}[/bold]",
            "\n".join(f"{state} in {domain}" for state, domain in sde.states.items()),
            ", ".join(sde.parameters),
            "\n".join(constraint.text for constraint in sde.constraints),
            ", ".join(methods(sde)) or "-",
        )
    Console().print(table)


@app.command()
def simulate(
    model: Annotated[str, typer.Argument(help="A model's name, as listed by 'fokkerflow models'.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV file to write.")],
    dt: Annotated[float, typer.Option(help="Time between observations.")] = 0.5,
    n: Annotated[int, typer.Option("--n", "-n", help="Number of observations.")] = 350,
    params: Annotated[
        str,
        typer.Option(
            "--params", "-p", help="Parameters by name, such as 'kappa=2,mean=0.5'. The model's typical ones if left out."
        ),
    ] = "",
    substeps: Annotated[int, typer.Option(help="Euler-Maruyama steps between observations.")] = 100,
    burn_in: Annotated[int, typer.Option(help="Observations to drop at the start.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
) -> None:
    """Simulate a model by Euler-Maruyama with sub-steps, as in the paper, and write a CSV file.

    Example: [bold]fokkerflow simulate heston -o heston.csv --dt 0.5 -n 350 --burn-in 350 -p sigma=0.3[/bold]
    """
    from fokkerflow.sde import MODELS
    from fokkerflow.sde import simulate as run
    from fokkerflow.sde.simulate import SimulationError

    if model not in MODELS:
        _refuse(f"Got model {model!r}, expected one of {', '.join(MODELS)}.")
    sde = MODELS[model]()
    try:
        series = run(sde, {**sde.typical, **_parse_params(params)}, dt=dt, n=n, substeps=substeps, burn_in=burn_in, seed=seed)
        series.to_csv(out)
    except (ValueError, TypeError, OSError, SimulationError) as error:
        _refuse(str(error))
    typer.echo(f"{n} observations of {', '.join(sde.states)} written to {out}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the data and the picture.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 1,
) -> None:
    """Simulate the Heston model, evaluate its exact likelihood along each parameter, draw a picture.

    Example: [bold]fokkerflow demo --out out/demo[/bold]
    """
    from fokkerflow.report.demo import run

    try:
        run(out, seed)
    except OSError as error:
        _refuse(str(error))


def _parse_params(text: str) -> dict[str, float]:
    """``"a=1,b=2"`` as a dict."""
    values = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, number = item.partition("=")
        try:
            if not equals:
                raise ValueError
            values[name.strip()] = float(number)
        except ValueError:
            raise ValueError(f"Got {item!r} in --params, expected name=number.") from None
    return values


def _refuse(message: str) -> None:
    """Say what is wrong and leave with the exit code of bad input."""
    typer.secho(message, err=True, fg=typer.colors.RED)
    raise typer.Exit(BAD_INPUT)

"""`fokkerflow models` and `fokkerflow simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fokkerflow.cli.app import app, stop
from fokkerflow.cli.arguments import MODEL_HELP, find_model, parse_params


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
    model: Annotated[str, typer.Argument(help=MODEL_HELP)],
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
    from fokkerflow.sde import simulate as run
    from fokkerflow.sde.simulate import SimulationError

    sde = find_model(model)
    try:
        series = run(sde, {**sde.typical, **parse_params(params)}, dt=dt, n=n, substeps=substeps, burn_in=burn_in, seed=seed)
        series.to_csv(out)
    except (ValueError, TypeError, OSError, SimulationError) as error:
        stop(str(error))
    typer.echo(f"{n} observations of {', '.join(sde.states)} written to {out}")

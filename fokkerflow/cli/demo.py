"""`fokkerflow demo`: the main job, on data that come with the package."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from fokkerflow.cli.app import app


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the results.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 1,
) -> None:
    """Infer the parameters of the Heston model from data that come with the package, and write a report.

    The data are simulated by the paper's recipe. This prints the command that it runs, and runs it.

    Example: [bold]fokkerflow demo --out out/demo[/bold]
    """
    from typer.main import get_command

    from fokkerflow.sde import Heston

    data = Path(str(resources.files("fokkerflow"))) / "data" / "heston.csv"
    truth = ",".join(f"{name}={value:g}" for name, value in Heston.typical.items())
    given = ["--model", "heston", "--out", str(out), "--seed", str(seed), "--truth", truth]
    words = ["infer", str(data), *given, "--overwrite"]
    typer.echo(shlex.join(["fokkerflow", *words]))
    code = get_command(app)(words, prog_name="fokkerflow", standalone_mode=False)
    raise typer.Exit(code or 0)

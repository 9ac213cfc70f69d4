"""`fokkerflow demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fokkerflow.cli.app import app, stop


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
        stop(str(error))

"""`fokkerflow benchmark`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from fokkerflow.cli.app import app, stop


@app.command()
def benchmark(
    name: Annotated[str, typer.Argument(help="Which one: 'accuracy', 'training', ...; without it they are listed.")] = "",
    record: Annotated[bool, typer.Option("--record", help="Keep the answer in benchmarks/results.")] = False,
) -> None:
    """Measure on this machine what the documentation states: accuracy, training time, speed. Needs a checkout.

    Example: [bold]fokkerflow benchmark accuracy[/bold]
    """
    folder = Path(__file__).parents[2] / "benchmarks"
    scripts = {file.stem: file for file in sorted(folder.glob("*.py")) if "__main__" in file.read_text()}
    if not scripts:
        stop(f"There is no folder {folder}: benchmarks are part of the repository, not of the installed package.")
    if not name:
        for each, file in scripts.items():
            typer.echo(f"{each}: {file.read_text().splitlines()[0].strip(chr(34))}")
        return
    if name not in scripts:
        stop(f"Got the benchmark {name!r}, expected one of {', '.join(scripts)}.")
    arguments = [sys.executable, str(scripts[name]), *(["--record"] if record else [])]
    raise typer.Exit(subprocess.run(arguments, check=False).returncode)

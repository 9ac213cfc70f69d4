"""The application that all commands belong to, and how a command refuses or fails."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from fokkerflow._version import __version__

app = typer.Typer(
    help="Bayesian inference for stochastic differential equations observed at discrete times.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

FAILED, BAD_INPUT = 1, 2
"""Exit codes."""


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


def stop(message: str, code: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong and leave with an exit code: that of bad input unless another one is given."""
    typer.secho(message, err=True, fg=typer.colors.RED)
    raise typer.Exit(code)

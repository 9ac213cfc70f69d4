"""`fokkerflow report` and `fokkerflow check`: on the folder of a run that is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from fokkerflow.cli.app import app
from fokkerflow.cli.arguments import find_model
from fokkerflow.cli.commands import JSON, ending_well, print_json
from fokkerflow.cli.densities import find_density

if TYPE_CHECKING:
    from fokkerflow.densities import Density
    from fokkerflow.report.folder import Folder

FOLDER = Annotated[Path, typer.Argument(metavar="DIR", help="The folder that 'fokkerflow infer' wrote.")]


class _Finished(NamedTuple):
    """A finished run, read again."""

    folder: Folder
    record: dict[str, Any]
    density: Density
    series: list[Any]
    idata: Any


@app.command()
def report(path: FOLDER, as_json: JSON = False) -> None:
    """Write the report of a run again, from its draws, for instance with a newer version.

    Example: [bold]fokkerflow report out/heston[/bold]
    """
    with ending_well():
        finished = _read(path)
        against = finished.record.get("against")
        reference = find_density(against, finished.density.sde) if against else None
        _finish(finished, reference, as_json)


@app.command()
def check(
    path: FOLDER,
    against: Annotated[str, typer.Option(help="The reference: a method such as 'exact', a shipped name, or a file.")] = "exact",
    as_json: JSON = False,
) -> None:
    """Compare the posterior of a run with the one that another density would give, and add that to its report.

    Draws are weighted by the ratio of the two likelihoods (Pareto-smoothed importance sampling): k-hat says whether
    that can be trusted, and the corrected means how much the posterior would move.

    Example: [bold]fokkerflow check out/heston --against exact[/bold]
    """
    with ending_well():
        finished = _read(path)
        _finish(finished, find_density(against, finished.density.sde), as_json, of_check=True)


def _read(path: Path) -> _Finished:
    from fokkerflow.report.folder import Folder
    from fokkerflow.report.stored import check_density, stored_series

    folder = Folder(path)
    record, idata = folder.read_record(), folder.read_posterior()
    sde = find_model(record["again"]["model"])
    _, density = find_density(record["again"]["density"], sde)
    check_density(density, idata)
    return _Finished(folder, record, density, stored_series(sde, idata, record), idata)


def _finish(finished: _Finished, reference: tuple[str, Density] | None, as_json: bool, *, of_check: bool = False) -> None:
    from fokkerflow.cli.infer import show
    from fokkerflow.report.run import finish

    folder, record, density, series, idata = finished
    with folder.locked():
        contents = finish(folder, density, series, idata, record, reference=reference, truth=record.get("truth"))
    if of_check and contents.checks.reference is not None:
        _show_check(folder, contents.checks.reference[1], as_json)
    else:
        show(folder, contents, as_json)


def _show_check(folder: Folder, found: Any, as_json: bool) -> None:
    if as_json:
        print_json(found.to_dict())
        return
    typer.echo(found.message())
    typer.echo(f"Added to {folder.report}")

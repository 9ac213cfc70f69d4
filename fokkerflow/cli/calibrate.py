"""`fokkerflow calibrate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fokkerflow.cli.app import app, stop
from fokkerflow.cli.arguments import find_model
from fokkerflow.cli.commands import JSON, command_line, ending_well, print_json
from fokkerflow.cli.data import COLUMNS, TIME, read
from fokkerflow.cli.densities import DENSITY, find_density
from fokkerflow.cli.infer import MODEL
from fokkerflow.cli.priors import PRIOR, find_prior

if TYPE_CHECKING:
    from fokkerflow.inference.ranks import Calibration
    from fokkerflow.report.folder import Folder


@app.command()
def calibrate(
    context: typer.Context,
    model: MODEL,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for calibration.json and calibration.png.")],
    density: DENSITY = "",
    prior: PRIOR = None,
    data: Annotated[
        Path | None, typer.Option(help="A CSV file whose times and first state the simulations have, in place of --dt and -n.")
    ] = None,
    time: TIME = "t",
    columns: COLUMNS = "",
    step: Annotated[float, typer.Option("--dt", help="The time between observations.")] = 0.5,
    n: Annotated[int, typer.Option("--n", "-n", help="The number of observations.")] = 100,
    simulations: Annotated[int, typer.Option(help="How many; 100 notice an sd that is a third too small, 1000 a tenth.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a calibration that did not finish.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    as_json: JSON = False,
) -> None:
    """Simulation-based calibration: do posteriors hold the truth as often as they say?

    Parameters are drawn from the prior, data simulated, posteriors sampled, and the truth ranked among their draws. The prior
    must be proper: that of a trained density is, otherwise give --prior for parameters without two ends.

    Example: [bold]fokkerflow calibrate --model heston --dt 0.5 -n 350 --simulations 100 --out out/calibration[/bold]
    """
    from rich.console import Console

    from fokkerflow.cli.progress import shown
    from fokkerflow.inference.calibration import calibrate as run
    from fokkerflow.report.folder import Folder

    sde, folder = find_model(model), Folder(out)
    folder.checkpoint, results = out / "calibration.checkpoint", out / "calibration.json"
    with ending_well(f"What is done is kept. To go on: {command_line(context)} --resume"):
        design: dict[str, Any] = {"dt": step, "n": n}
        if data is not None:
            series = read(sde, [data], time, columns, step)[0][0]
            design = {"dt": series.gaps, "n": len(series), "x0": series.states[0], "t0": float(series.times[0])}
        name, found = find_density(density, sde)
        with folder.claimed(resume=resume, overwrite=overwrite):
            if results.exists() and not (overwrite or folder.checkpoint.exists()):
                stop(f"{results} is there. Choose another folder, or add --overwrite to replace it.")
            with shown(Console(stderr=True), lambda _: "", to_stderr=True) as progress:
                calibration = run(
                    found,
                    find_prior(sde, prior),
                    **design,
                    simulations=simulations,
                    seed=seed,
                    checkpoint=folder.checkpoint,
                    progress=progress,
                )
            record = {"command": command_line(context), "model": model, "density": name, **calibration.to_dict()}
            _write(folder, results, record, calibration)
    if as_json:
        print_json(record)
    else:
        typer.echo(calibration.message())
        typer.echo(f"Written to {results} and {results.with_suffix('.png')}")


def _write(folder: Folder, results: Path, record: dict[str, Any], calibration: Calibration) -> None:
    from fokkerflow._files import replacing
    from fokkerflow.report.calibration_figure import calibration_figure

    with replacing(results.with_suffix(".png")) as temporary:
        calibration_figure(calibration).savefig(temporary, format="png")
    folder.write_text(results, json.dumps(record, indent=2) + "\n")
    folder.checkpoint.unlink(missing_ok=True)

"""`fokkerflow train` and `fokkerflow certify`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fokkerflow.cli.app import FAILED, app, stop
from fokkerflow.cli.arguments import LAW_HELP, MODEL_HELP, find_law, find_model, parse_settings

if TYPE_CHECKING:
    from fokkerflow.training import Certificate


@app.command()
def train(
    model: Annotated[str, typer.Argument(help=MODEL_HELP)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")],
    law: Annotated[str, typer.Option(help=LAW_HELP)] = "paper",
    dt_max: Annotated[float, typer.Option(help="The longest time between observations.")] = 1.0,
    method: Annotated[
        str, typer.Option(help="The trainer: 'gauss-newton', 'neural-galerkin' or 'simulation'.")
    ] = "gauss-newton",
    preset: Annotated[
        str,
        typer.Option(help="Its settings: 'fast', 'default', 'accurate'; of Neural Galerkin 'anchored', 'reduced', 'paper'."),
    ] = "default",
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting to change, such as 'components=8'; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the first weights and of the points.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint of a run that did not finish.")] = False,
) -> None:
    """Train the transition density of a model, for all gaps up to --dt-max, and write it to a file.

    A checkpoint is kept beside the file while the training runs.

    Example: [bold]fokkerflow train heston --law paper --dt-max 0.5 -o heston.fkf[/bold]
    """
    from rich.console import Console

    from fokkerflow.cli.progress import duration, shown
    from fokkerflow.training import TrainingError, artifact, fit

    sde, checkpoint = find_model(model), out.with_name(out.name + ".checkpoint")
    if not out.parent.is_dir():
        stop(f"There is no folder {out.parent} to write {out.name} to.")
    if checkpoint.exists() and not resume:
        stop(f"{checkpoint} is there from a run that did not finish. Add --resume to go on, or delete it to start afresh.")
    options = [
        *("--law", law),
        *("--dt-max", f"{dt_max:g}"),
        *("--method", method),
        *("--preset", preset),
        *("--seed", str(seed)),
    ]
    command = shlex.join(
        ["fokkerflow", "train", model, *options, *(a for s in setting or () for a in ("--set", s)), "-o", str(out)]
    )
    try:
        with shown(Console()) as progress:
            trained = fit(
                sde,
                find_law(law, sde),
                dt_max,
                method=method,
                preset=preset,
                seed=seed,
                checkpoint=checkpoint,
                progress=progress,
                **parse_settings(setting or ()),
            )
        artifact.save(out, trained.with_record(command=command))
    except KeyboardInterrupt:
        stop(f"Interrupted. To go on: {command} --resume", FAILED)
    except TrainingError as error:
        stop(str(error), FAILED)
    except (ValueError, TypeError, OSError) as error:
        stop(str(error))
    checkpoint.unlink(missing_ok=True)
    record = trained.record
    typer.echo(f"{out}: {sde.label}, gaps up to {dt_max:g}, residual {record.history[-1]:.2e}, {duration(record.seconds)}")


@app.command()
def certify(
    name: Annotated[
        str, typer.Argument(metavar="ARTIFACT", help="A file that 'fokkerflow train' wrote, or the name of a shipped density.")
    ],
    model: Annotated[str, typer.Option(help="The model, if it is your own: 'my_sde.py:MySDE'.")] = "",
    conditions: Annotated[int, typer.Option(help="Draws of the training law to look at.")] = 128,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    store: Annotated[bool, typer.Option(help="Write the certificate into the file.")] = True,
) -> None:
    """Bound the L1 error of a trained density over its training law, and store the result in its file.

    Example: [bold]fokkerflow certify heston.fkf[/bold]
    """
    import jax

    from fokkerflow.densities import load, pretrained
    from fokkerflow.training import artifact
    from fokkerflow.training import certify as compute

    try:
        trained = load(name, find_model(model) if model else None).trained
        certificate = compute(jax.random.key(seed), trained, conditions=conditions)
        _print(certificate)
        if store and name not in pretrained():
            artifact.save(name, trained.with_record(certificate=certificate.to_dict()))
    except (ValueError, TypeError, OSError) as error:
        stop(str(error))
    if certificate.unusable:
        stop(f"The residual was not finite at {certificate.unusable} points: nothing is certified.", FAILED)


def _print(certificate: Certificate) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    title = f"Bound on the L1 error, which lies between 0 and 2, over {certificate.conditions} draws of the training law"
    table = Table("gap", *certificate.quantiles[0], title=title, title_justify="left")
    for dt, quantiles in zip(certificate.dt, certificate.quantiles, strict=True):
        table.add_row(f"{dt:.3g}", *(f"{value:.2e}" for value in quantiles.values()))
    console.print(table)
    table = Table(
        "input", "third", "median", "90 %", title=f"The same at the longest gap, {certificate.dt[-1]:g}", title_justify="left"
    )
    for name, thirds in certificate.regions.items():
        for label, quantiles in thirds.items():
            table.add_row(name, label, *(f"{value:.2e}" for value in quantiles.values()))
    console.print(table)
    console.print(f"Standard error from sampling: at most {certificate.relative_error:.1%} of a bound.")

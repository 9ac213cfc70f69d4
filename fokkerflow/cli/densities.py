"""Densities on the command line: by method, by name, or as a file; and which one is taken if none is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fokkerflow.cli.app import stop

if TYPE_CHECKING:
    from fokkerflow.densities import Density
    from fokkerflow.sde import SDE

DENSITY = Annotated[
    str,
    typer.Option(
        help="The transition density: a method such as 'exact' ('fokkerflow models' lists them), the name of a shipped trained "
        "one, or a file that 'fokkerflow train' wrote. If left out: the exact one of a model "
        "with one state, which is as quick; else the shipped trained one; else 'exact' or 'fourier'."
    ),
]

_ACCURATE = ("exact", "fourier")


def find_density(text: str, sde: SDE) -> tuple[str, Density]:
    """A density of the model and what to call it."""
    from fokkerflow.densities import density, load, methods, pretrained

    name = text or _default(sde)
    try:
        if name in methods(sde):
            return name, density(name, sde)
        if name in pretrained() or Path(name).exists():
            found = load(name, sde)
            return (name if name in pretrained() else Path(name).name), found
    except (ValueError, TypeError, OSError) as error:
        stop(str(error))
    stop(
        f"Got the density {name!r}: no file, and no density of {sde.label}. There is {', '.join(methods(sde)) or 'none'}. "
        f"To train one: fokkerflow train MODEL -o FILE.fkf"
    )


def _default(sde: SDE) -> str:
    from fokkerflow.densities import methods, pretrained
    from fokkerflow.sde import MODELS

    shipped = [name for name in pretrained() if type(sde) is MODELS.get(name)]
    known = [name for name in methods(sde) if name in _ACCURATE]  # an approximation is for those who ask for it
    found = [*known, *shipped] if sde.dimension == 1 and "exact" in known else [*shipped, *known]
    if not found:
        stop(
            f"{sde.label} has no exact density and no trained one comes with the package. Train one with "
            "'fokkerflow train MODEL --law LAW -o FILE.fkf' and pass it: --density FILE.fkf. "
            f"Or choose an approximation: --density {' or '.join(methods(sde))}"
        )
    return found[0]

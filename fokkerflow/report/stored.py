"""The data of a run, back from the file of its draws."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from fokkerflow.densities.density import Density
from fokkerflow.report.folder import FolderError
from fokkerflow.sde.model import SDE
from fokkerflow.sde.series import Series


def stored_series(sde: SDE, idata: Any, record: Mapping[str, Any]) -> list[Series]:
    """The series that the draws were made from; the files that they came from are not read again."""
    observed, files = idata.observed_data, record.get("data", [])
    missing = [name for name in sde.states if name not in observed]
    if missing:
        raise FolderError(f"The draws are not of {sde.label}: there are no observations of {', '.join(missing)} with them.")
    which = observed["series"].values if "series" in observed.coords else np.zeros(observed.sizes["time"], int)
    times, states = observed["time"].values, np.column_stack([observed[name].values for name in sde.states])
    origins = [file.get("origin") for file in files] or [None] * (int(which.max()) + 1)
    return [
        Series(times[which == k], states[which == k], tuple(sde.states), origin=origin).check(sde)
        for k, origin in enumerate(origins)
    ]


def check_density(density: Density, idata: Any) -> None:
    """Raise FolderError if a trained density is not the one that the draws were made with."""
    from fokkerflow.inference.results import artifact

    stored = json.loads(idata.posterior.attrs.get("artifact") or "{}")
    found = json.loads(artifact(density) or "{}")
    if stored.get("digest") != found.get("digest"):
        raise FolderError(
            "The density is not the one that the draws were made with: its file has been replaced. "
            "Run 'fokkerflow infer' again."
        )

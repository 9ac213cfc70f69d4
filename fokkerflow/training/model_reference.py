"""Which model a file is about: stored by name and by values of its formulas, never as code, and checked where it is read."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow._precision import in_float64
from fokkerflow.sde.functions import FunctionSDE
from fokkerflow.sde.model import SDE
from fokkerflow.sde.models import MODELS
from fokkerflow.sde.probing import sample_parameters, sample_states

_PROBES = 16
_TIMES = 2.0
_TOLERANCE = 1e-9  # relative to the largest entry; formulas may be rearranged, and libraries round differently


class ModelMismatchError(ValueError):
    """A model that is not the one a file was made for."""


def reference(sde: SDE) -> dict[str, Any]:
    """The model's name, where it is defined, and what its states and parameters are called."""
    return {
        "name": sde.name,
        "shipped": is_shipped(sde),
        "defined": None if is_shipped(sde) else _defined_in(sde),
        "states": {name: [_finite(domain.lower), _finite(domain.upper)] for name, domain in sde.states.items()},
        "parameters": list(sde.parameters),
        "constraints": [constraint.text for constraint in sde.constraints],
    }


def probes(sde: SDE) -> dict[str, np.ndarray]:
    """Times, states and parameters around the model's typical ones, and its drift and covariance there."""
    points = {
        "t": np.linspace(0.0, _TIMES, _PROBES),
        "x": sample_states(sde, _PROBES),
        "p": sample_parameters(sde, _PROBES),
    }
    return {**points, **_formulas(sde, points)}


def find_model(stored: Mapping[str, Any]) -> SDE:
    """A shipped model by its name; a user's own cannot be found, since that would mean running code that a file names."""
    if stored["shipped"] and stored["name"] in MODELS:
        return MODELS[stored["name"]]()
    if stored["shipped"]:
        raise ModelMismatchError(f"The model {stored['name']!r} is not one of this fokkerflow's: {', '.join(MODELS)}.")
    raise ModelMismatchError(
        f"The model {stored['name']!r} ({stored['defined']}) is not part of fokkerflow. "
        "Import it yourself and pass it: sde=..., or --model on the command line."
    )


def verify(sde: SDE, stored: Mapping[str, Any], at: Mapping[str, np.ndarray]) -> None:
    """Raise ModelMismatchError, saying what differs and where, unless `sde` is the model of the file."""
    if not isinstance(sde, SDE):
        raise TypeError(f"Got {sde!r} as the model, expected an SDE such as fokkerflow.Heston().")
    now = reference(sde)
    for what in ("states", "parameters"):
        if now[what] != stored[what]:
            raise ModelMismatchError(f"{sde.label} has the {what} {now[what]}, the file was made for {stored[what]}.")
    formulas = _formulas(sde, at)
    for what, values in formulas.items():
        error = np.abs(values - at[what]).reshape(len(values), -1).max(axis=1)
        scale = np.abs(at[what]).reshape(len(values), -1).max(axis=1)
        bad = np.flatnonzero(~(error <= _TOLERANCE * scale))
        if bad.size:
            k = bad[0]
            raise ModelMismatchError(
                f"{sde.label} is not the model that the file was made for: at t={at['t'][k]:.4g}, x={at['x'][k]}, "
                f"p={at['p'][k]} its {what} is {values[k].tolist()}, that of the file {at[what][k].tolist()}. "
                "Use the model as it was, or train again."
            )


def is_shipped(sde: SDE) -> bool:
    return type(sde) in MODELS.values()


@in_float64
def _formulas(sde: SDE, at: Mapping[str, Any]) -> dict[str, np.ndarray]:
    points = [jnp.asarray(at[name]) for name in ("t", "x", "p")]
    return {what: np.asarray(jax.vmap(getattr(sde, what))(*points)) for what in ("drift", "covariance")}


def _defined_in(sde: SDE) -> str:
    """``module:name``, or ``file.py:name`` for a model that was run as a script or loaded from a file."""
    home: Any = sde.drift_function if isinstance(sde, FunctionSDE) else type(sde)
    name = sde.name if isinstance(sde, FunctionSDE) else type(sde).__qualname__
    module = inspect.getmodule(home)
    if module is not None and module.__name__ != "__main__":
        return f"{module.__name__}:{name}"
    try:
        return f"{Path(inspect.getfile(home)).name}:{name}"
    except (TypeError, OSError):  # typed in a notebook or a console
        return name


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

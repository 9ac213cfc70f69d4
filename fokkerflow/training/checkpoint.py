"""Checkpoints: all that a training needs to go on as if it had never stopped, in one file that is always whole."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow.sde.model import SDE
from fokkerflow.training import container
from fokkerflow.training.container import FileError
from fokkerflow.training.model_reference import ModelMismatchError, probes, reference, verify

_KIND = "checkpoint"


class Checkpoint(NamedTuple):
    """A trainer's state (a tree of arrays and numbers), the points drawn so far, the residuals so far, and seconds spent."""

    state: Any
    drawn: int
    history: tuple[float, ...]
    seconds: float


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Equal for equal settings, given as plain data."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, allow_nan=False).encode()).hexdigest()


def save(path: str | os.PathLike[str], checkpoint: Checkpoint, settings: Mapping[str, Any], sde: SDE) -> None:
    """Replace the file at `path`, in one go."""
    leaves = jax.tree.leaves(checkpoint.state)
    header = {
        "kind": _KIND,
        "fingerprint": fingerprint(settings),
        "settings": settings,
        "model": reference(sde),
        "drawn": checkpoint.drawn,
        "seconds": checkpoint.seconds,
    }
    arrays = {f"leaf {i}": leaf for i, leaf in enumerate(leaves)} | {"history": np.asarray(checkpoint.history, np.float64)}
    container.write(path, header, {**arrays, **{f"probe {name}": value for name, value in probes(sde).items()}})


def load(path: str | os.PathLike[str], template: Any, settings: Mapping[str, Any], sde: SDE) -> Checkpoint:
    """The checkpoint of a training with these settings.

    **Arguments:**

    - `template`: a state of the same trainer, for the structure of the tree and the types of its leaves.

    **Raises:** FileError if the file is damaged, or belongs to other settings or another model; it says what differs.
    """
    header, arrays = container.read(path, _KIND)
    if header["fingerprint"] != fingerprint(settings):
        differing = "; ".join(_differences(header["settings"], json.loads(json.dumps(settings))))
        raise FileError(
            f"{path}: the checkpoint belongs to a training with other settings ({differing}). "
            "Go on with the settings that it was started with, or delete the file to start afresh."
        )
    try:
        verify(
            sde, header["model"], {name.removeprefix("probe "): a for name, a in arrays.items() if name.startswith("probe ")}
        )
    except ModelMismatchError as error:
        raise FileError(f"{path}: {error} Or delete the file to start afresh.") from None
    leaves, structure = jax.tree.flatten(template)
    state = jax.tree.unflatten(structure, [_like(leaf, arrays[f"leaf {i}"]) for i, leaf in enumerate(leaves)])
    return Checkpoint(state, header["drawn"], tuple(arrays["history"].tolist()), header["seconds"])


def _like(leaf: Any, stored: np.ndarray) -> Any:
    """A stored leaf as the type that the template has in its place."""
    if isinstance(leaf, (bool, int, float)):
        return type(leaf)(stored.item())
    return jnp.asarray(stored, leaf.dtype) if isinstance(leaf, jax.Array) else stored.astype(leaf.dtype)


def _differences(stored: Any, given: Any, where: str = "") -> list[str]:
    """Every place where two trees of plain data differ, in words."""
    if isinstance(stored, dict) and isinstance(given, dict):
        keys = list(dict.fromkeys([*stored, *given]))
        return [line for key in keys for line in _differences(stored.get(key), given.get(key), f"{where}.{key}".lstrip("."))]
    return [] if stored == given else [f"{where}: {stored} there, {given} here"]

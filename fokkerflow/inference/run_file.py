"""Checkpoints of sampling: the state of all chains and the draws so far, in one file that is always whole."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow.training import container
from fokkerflow.training.checkpoint import fingerprint
from fokkerflow.training.container import FileError

_KIND = "sampling checkpoint"


class Saved(NamedTuple):
    """State of the chains, draws by name with axes chain and draw, steps done, divergences in warm-up, and seconds."""

    state: Any
    draws: dict[str, np.ndarray]
    done: int
    warmup_divergences: int
    seconds: float


def save(path: Path, saved: Saved, settings: Mapping[str, Any]) -> None:
    """Replace the file at `path`, in one go."""
    header = {
        "kind": _KIND,
        "fingerprint": fingerprint(settings),
        "settings": settings,
        "done": saved.done,
        "warmup_divergences": saved.warmup_divergences,
        "seconds": saved.seconds,
    }
    leaves = {f"leaf {i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(saved.state))}
    container.write(path, header, leaves | {f"draws {name}": values for name, values in saved.draws.items()})


def load(path: Path, like: Any, settings: Mapping[str, Any]) -> Saved:
    """The checkpoint of a run with these settings.

    **Arguments:**

    - `like`: a state, or its shapes and types as `jax.eval_shape` gives them.

    **Raises:** FileError if the file is damaged, or belongs to other data, settings, prior or density; it says what differs.
    """
    header, arrays = container.read(path, _KIND)
    check_same(path, header, settings, "run")
    leaves, structure = jax.tree.flatten(like)
    state = jax.tree.unflatten(structure, [jnp.asarray(arrays[f"leaf {i}"], leaf.dtype) for i, leaf in enumerate(leaves)])
    draws = {name.removeprefix("draws "): values for name, values in arrays.items() if name.startswith("draws ")}
    return Saved(state, draws, header["done"], header["warmup_divergences"], header["seconds"])


def digest(tree: Any) -> str:
    """Of all numbers in a tree, and of the types in it: equal densities and equal data have equal ones."""
    hashed = hashlib.sha256(str(jax.tree.structure(jax.tree.map(lambda _: 0, tree))).encode())
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, (jax.Array, np.ndarray, float, int)):
            array = np.ascontiguousarray(leaf)
            hashed.update(str((array.dtype, array.shape)).encode() + array.tobytes())
    return hashed.hexdigest()[:16]


def check_same(path: Path, header: Mapping[str, Any], settings: Mapping[str, Any], what: str) -> None:
    """Raise FileError, saying what differs, if a checkpoint was written with other settings."""
    if header["fingerprint"] != fingerprint(settings):
        stored = header["settings"]
        differing = "; ".join(f"{k}: {stored.get(k)} there, {v} here" for k, v in settings.items() if stored.get(k) != v)
        raise FileError(
            f"{path}: the checkpoint belongs to another {what} ({differing}). "
            "Go on with what it was started with, or delete the file to start afresh."
        )

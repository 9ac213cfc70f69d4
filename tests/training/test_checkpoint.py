"""Checkpoints: a state comes back exactly as it was, and only into the training that it belongs to."""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fokkerflow.training import FileError, checkpoint
from fokkerflow.training.checkpoint import Checkpoint
from tests.training.trainings import reverting

SDE = reverting()
SETTINGS = {"method": "m", "trainer": {"points": 100, "spreads": (1.0, 4.0)}, "seed": 0}


class State(NamedTuple):
    """Every kind of leaf that a trainer may have."""

    theta: jax.Array
    nested: tuple[np.ndarray, None]
    damping: float
    iteration: int
    accepted: bool


TEMPLATE = State(jnp.zeros(3), (np.zeros((0, 2)), None), 0.0, 0, False)


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, Checkpoint]:
    state = State(jnp.array([1e-300, np.pi, -0.1]), (np.arange(6.0).reshape(3, 2) / 7, None), 0.1 + 0.2, 7, True)
    at = Checkpoint(state, 4096, (0.3, float("nan"), 0.1), 12.5)
    checkpoint.save(tmp_path / "run.ckpt", at, SETTINGS, SDE)
    return tmp_path / "run.ckpt", at


def test_a_state_comes_back_as_it_was(written: tuple[Path, Checkpoint]) -> None:
    path, at = written
    back = checkpoint.load(path, TEMPLATE, SETTINGS, SDE)
    assert jax.tree.structure(back.state) == jax.tree.structure(at.state)
    for a, b in zip(jax.tree.leaves(back.state), jax.tree.leaves(at.state), strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)
    assert (back.drawn, back.seconds) == (4096, 12.5)
    np.testing.assert_array_equal(back.history, at.history)


def test_other_settings_are_refused_and_named(written: tuple[Path, Checkpoint]) -> None:
    other = {**SETTINGS, "seed": 1, "trainer": {"points": 200, "spreads": (1.0, 4.0)}}
    with pytest.raises(FileError, match=r"other settings \(seed: 0 there, 1 here; trainer\.points: 100 there, 200 here\)"):
        checkpoint.load(written[0], TEMPLATE, other, SDE)


def test_another_model_is_refused(written: tuple[Path, Checkpoint]) -> None:
    with pytest.raises(FileError, match="reverting is not the model that the file was made for"):
        checkpoint.load(written[0], TEMPLATE, SETTINGS, reverting(speed=2.0))


def test_a_damaged_checkpoint_is_refused(written: tuple[Path, Checkpoint]) -> None:
    path, _ = written
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileError, match="is truncated"):
        checkpoint.load(path, TEMPLATE, SETTINGS, SDE)

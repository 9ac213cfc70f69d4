"""Artifacts: what goes in comes out, nothing is executed, and a file that is not whole is refused."""

import hashlib
import json
import pickle
import struct
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fokkerflow.flow import weights
from fokkerflow.sde.models import CIR, OU, SeasonalOU
from fokkerflow.training import FileError, ModelMismatchError, Trained, artifact, container
from tests.training.trainings import OU_LAW, law_of, reverting, untrained

TRAINED = untrained(OU_LAW)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("artifacts") / "ou.fkf"
    artifact.save(path, TRAINED)
    return path


def same(a: Trained, b: Trained) -> bool:
    return bool(eqx.tree_equal(a, b, typematch=True))  # weights to the last bit; law, gaps and record as static parts


def test_what_goes_in_comes_out(stored: Path, tmp_path: Path) -> None:
    assert same(artifact.load(stored), TRAINED)
    seasonal = untrained(law_of(SeasonalOU()))
    artifact.save(tmp_path / "seasonal.fkf", seasonal)
    assert same(artifact.load(tmp_path / "seasonal.fkf"), seasonal)


def test_the_header_says_how_it_was_made(stored: Path) -> None:
    header, _ = container.read(stored, "artifact")
    record = header["record"]
    assert header["model"]["name"] == "ou"
    assert header["law"]["x0"]["x"] == {"kind": "uniform", "low": -1, "high": 1}
    assert (header["gaps"]["shortest"], header["gaps"]["longest"]) == (1e-3, 1.0)
    assert record["settings"] == {"points": 100}
    assert (record["history"], record["seconds"], record["seed"]) == ([0.1, 0.05], 1.5, 0)
    assert record["versions"]["jax"] == jax.__version__


def test_numbers_are_little_endian_doubles(stored: Path) -> None:
    """Read with nothing but the description of the format."""
    data = stored.read_bytes()
    magic, version, length, header_length = struct.unpack("<8sIQQ", data[:28])
    assert (magic, version, length) == (b"FKFLOW\r\n", 1, len(data))
    header = json.loads(data[28 : 28 + header_length])
    name, kind, (count,) = header["arrays"][0]
    assert (name, kind) == ("theta", "<f8")
    theta = struct.unpack(f"<{count}d", data[28 + header_length : 28 + header_length + 8 * count])
    np.testing.assert_array_equal(theta, weights(TRAINED.flow)[0])
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]


@settings(deadline=None, max_examples=300, derandomize=True)
@given(data=st.data())
def test_any_altered_byte_is_noticed(stored: Path, data: st.DataObject) -> None:
    whole = stored.read_bytes()
    position = data.draw(st.one_of(st.integers(0, 60), st.integers(0, len(whole) - 1)))
    damaged = bytearray(whole)
    damaged[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(FileError, match=r"was altered|is truncated|not a fokkerflow file"):
        _load_bytes(stored, bytes(damaged))


@settings(deadline=None, max_examples=200, derandomize=True)
@given(share=st.floats(0, 1, exclude_max=True))
def test_any_truncation_is_noticed(stored: Path, share: float) -> None:
    whole = stored.read_bytes()
    with pytest.raises(FileError, match=r"is truncated|not a fokkerflow file"):
        _load_bytes(stored, whole[: int(share * len(whole))])


def test_something_behind_the_end_is_noticed(stored: Path) -> None:
    with pytest.raises(FileError, match="was altered"):
        _load_bytes(stored, stored.read_bytes() + b"x")


def _load_bytes(stored: Path, data: bytes) -> Trained:
    path = stored.with_name("damaged.fkf")
    path.write_bytes(data)
    return artifact.load(path)


def test_a_newer_format_asks_for_an_upgrade(stored: Path) -> None:
    body = bytearray(stored.read_bytes()[:-32])
    body[8:12] = struct.pack("<I", container.FORMAT_VERSION + 1)
    with pytest.raises(FileError, match=r"has format 2, this fokkerflow reads formats up to 1\. Upgrade"):
        _load_bytes(stored, bytes(body) + hashlib.sha256(body).digest())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 a zip file", pickle.dumps({"theta": 1})])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(FileError, match="not a fokkerflow file"):
        artifact.load(tmp_path / "other")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"nowhere\.fkf: cannot be read"):
        artifact.load(tmp_path / "nowhere.fkf")


def test_a_whole_file_with_other_contents_is_refused(stored: Path, tmp_path: Path) -> None:
    header, arrays = container.read(stored, "artifact")
    container.write(tmp_path / "short.fkf", header, {**arrays, "theta": arrays["theta"][:-1]})
    with pytest.raises(FileError, match=r"short\.fkf: the file is whole, but .* 49 weights for a flow of 50"):
        artifact.load(tmp_path / "short.fkf")
    container.write(tmp_path / "kind.fkf", {**header, "kind": "checkpoint"}, arrays)
    with pytest.raises(FileError, match="this is a fokkerflow checkpoint, expected an artifact"):
        artifact.load(tmp_path / "kind.fkf")


def test_a_failed_write_leaves_the_old_file(stored: Path) -> None:
    before = stored.read_bytes()
    with pytest.raises(ValueError, match="Out of range float"):
        container.write(stored, {"kind": "artifact", "seconds": float("nan")}, {})
    with pytest.raises(TypeError, match="cannot be stored exactly"):
        container.write(stored, {"kind": "artifact"}, {"theta": np.array([1j])})
    assert stored.read_bytes() == before
    assert not list(stored.parent.glob(".*"))


def test_a_model_of_a_users_own_has_to_be_passed_and_is_compared(tmp_path: Path) -> None:
    path, mine = tmp_path / "mine.fkf", reverting()
    trained = untrained(law_of(mine))
    artifact.save(path, trained)
    with pytest.raises(
        ModelMismatchError, match=r"mine\.fkf: The model 'reverting' \(tests\.training\.trainings:reverting\) is not"
    ):
        artifact.load(path)
    assert eqx.tree_equal(artifact.load(path, sde=mine).flow, trained.flow)
    again = reverting()  # the same formulas, made anew
    assert artifact.load(path, sde=again).flow.sde is again
    with pytest.raises(ModelMismatchError, match=r"reverting is not the model .* its drift is"):
        artifact.load(path, sde=reverting(speed=1.001))
    with pytest.raises(ModelMismatchError, match=r"CIR has the states .*'v'.* the file was made for .*'x'"):
        artifact.load(path, sde=CIR())
    with pytest.raises(TypeError):
        artifact.load(path, sde="reverting")


def test_a_shipped_model_is_verified_too(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OU, "drift", lambda self, t, x, p: p[0] * (p[1] - 1.01 * x))
    with pytest.raises(ModelMismatchError, match="OU is not the model that the file was made for"):
        artifact.load(stored)

"""The file format of artifacts and checkpoints: a JSON header and arrays, without pickle, with a checksum over every byte.

    magic (8) | format version (u4) | length of file (u8) | length of header (u8) | header, UTF-8 JSON | arrays | SHA-256

All numbers are little-endian; arrays are float64 or int64, in the order that the header lists. Every future version keeps
magic, version, file length and checksum where they are, so that an older program can tell a newer file from a damaged one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fokkerflow._files import replacing

FORMAT_VERSION = 1

_MAGIC = b"FKFLOW\r\n"  # the line end is there so that a transfer as text is noticed
_PREAMBLE = struct.Struct("<8sIQQ")
_CHECKSUM = 32


class FileError(ValueError):
    """A file that is not an artifact or checkpoint, is damaged, or was written by a newer version."""


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write the file under a temporary name and move it into place: whoever reads sees the old file or the new one, whole."""
    data = _encode(header, arrays)
    with replacing(Path(path)) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # on the disk before it takes the place of an older one


def read(path: str | os.PathLike[str], what: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a file; FileError, naming the file, if it is not whole and unaltered.

    **Arguments:**

    - `what`: the kind of file expected, as its header states it: ``"artifact"`` or ``"checkpoint"``.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror}).") from None
    _check_whole(data, path)
    header_end = _PREAMBLE.size + _PREAMBLE.unpack_from(data)[3]
    header = json.loads(data[_PREAMBLE.size : header_end].decode())
    if header["kind"] != what:
        raise FileError(f"{path}: this is a fokkerflow {header['kind']}, expected {_article(what)}.")
    arrays, position = {}, header_end
    for name, dtype, shape in header.pop("arrays"):
        count = math.prod(shape)
        arrays[name] = np.frombuffer(data, np.dtype(dtype), count, position).reshape(shape).astype(dtype[1:])
        position += 8 * count
    return header, arrays


def _encode(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    parts = {name: _as_stored(name, value) for name, value in arrays.items()}
    listed = [(name, array.dtype.str, array.shape) for name, array in parts.items()]
    text = json.dumps({**header, "arrays": listed}, allow_nan=False, sort_keys=True).encode()
    body = text + b"".join(array.tobytes() for array in parts.values())
    length = _PREAMBLE.size + len(body) + _CHECKSUM
    data = _PREAMBLE.pack(_MAGIC, FORMAT_VERSION, length, len(text)) + body
    return data + hashlib.sha256(data).digest()


def _as_stored(name: str, value: Any) -> np.ndarray:
    array = np.asarray(value)
    stored = next((t for t in ("<i8", "<f8") if np.can_cast(array.dtype, t)), None)
    if stored is None:
        raise TypeError(f"Array {name!r} of type {array.dtype} cannot be stored exactly, expected floating point or integer.")
    return array.astype(stored)


def _check_whole(data: bytes, path: Any) -> None:
    """The checksum first, then the version: a damaged version number must not send anyone looking for an upgrade."""
    if not data.startswith(_MAGIC):
        start = "is empty" if not data else "does not begin like one"
        raise FileError(f"{path}: this is not a fokkerflow file (it {start}).")
    stated = _PREAMBLE.unpack_from(data)[2] if len(data) >= _PREAMBLE.size else math.inf
    whole = len(data) > _PREAMBLE.size + _CHECKSUM
    if not whole or hashlib.sha256(data[:-_CHECKSUM]).digest() != data[-_CHECKSUM:]:
        damage = "is truncated" if len(data) < stated else "was altered"
        raise FileError(f"{path}: the file {damage}: its checksum does not fit. Take a fresh copy, or make it again.")
    version = _PREAMBLE.unpack_from(data)[1]
    if version > FORMAT_VERSION:
        raise FileError(
            f"{path}: the file has format {version}, this fokkerflow reads formats up to {FORMAT_VERSION}. "
            "Upgrade: pip install --upgrade fokkerflow"
        )


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"

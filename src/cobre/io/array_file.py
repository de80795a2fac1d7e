"""Named arrays and some facts in one file, with a checksum: what a checkpoint is made of.

    header     magic, version, bytes of the directory
    directory  JSON: facts, and name, dtype and shape of each array in order
    arrays     one after the other, little-endian
    trailer    SHA-256 of everything before it

Nothing in such a file is ever executed.
"""

import hashlib
import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.errors import CobreError
from cobre.io.atomic import replacing_file
from cobre.io.stored_json import parse_stored

MAGIC = b"COBREARR"
VERSION = 1
_HEADER = struct.Struct("<8sIQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_DTYPES = ("<f8", "<i4", "<i8", "|i1", "|u1")


@dataclass(frozen=True, slots=True)
class StreamedArray:
    """An array that is made piece by piece while it is written, and never whole in memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    pieces: Callable[[], Iterator[NDArray[Any]]]


Arrays = Mapping[str, NDArray[Any] | StreamedArray]


class ArrayFileError(CobreError):
    """A file that is not a whole and sound file of arrays: the message says which and why."""


def write_arrays(path: Path, facts: Mapping[str, Any], arrays: Arrays) -> None:
    """Write everything under a name, or nothing. Raises WriteError."""
    entries = [
        {"name": name, "dtype": array.dtype.newbyteorder("<").str, "shape": array.shape}
        for name, array in arrays.items()
    ]
    directory = json.dumps({"facts": facts, "arrays": entries}, separators=(",", ":")).encode()
    digest = hashlib.sha256()
    with replacing_file(path) as stream:
        for part in _parts(directory, arrays):
            digest.update(part)
            stream.write(part)
        stream.write(digest.digest())


def _parts(directory: bytes, arrays: Arrays) -> Iterator[bytes | memoryview]:
    """The bytes of the file except the trailer."""
    yield _HEADER.pack(MAGIC, VERSION, len(directory))
    yield directory
    for array in arrays.values():
        yield from _pieces(array)


def _pieces(array: NDArray[Any] | StreamedArray) -> Iterator[memoryview]:
    """Its bytes. Raises ValueError when the pieces of an array are not all of it."""
    left = math.prod(array.shape) * array.dtype.itemsize
    for piece in array.pieces() if isinstance(array, StreamedArray) else [array]:
        stored = _bytes(np.ascontiguousarray(piece, array.dtype.newbyteorder("<")))
        left -= stored.nbytes
        yield stored
    if left:
        raise ValueError(f"an array of shape {array.shape} lacks {left} bytes")


def parse_arrays(path: Path, content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays of a file's content; `path` is for messages."""
    if not content.startswith(MAGIC):
        raise ArrayFileError(f"{path} is not a checkpoint of this program")
    if len(content) < _HEADER.size + _DIGEST_BYTES:
        raise ArrayFileError(f"{path} is truncated: it has only {len(content)} bytes")
    _, version, length = _HEADER.unpack_from(content)
    if version != VERSION:
        raise ArrayFileError(f"{path} has format version {version}, but this program reads version {VERSION}")
    body = memoryview(content)[:-_DIGEST_BYTES]
    if hashlib.sha256(body).digest() != content[-_DIGEST_BYTES:]:
        raise ArrayFileError(f"{path} is truncated or damaged: its content does not match its checksum")
    try:
        directory = parse_stored(bytes(_piece(body, _HEADER.size, length)))
        return dict(directory["facts"]), _arrays(directory["arrays"], body[_HEADER.size + length :])
    except (ValueError, KeyError, TypeError) as error:
        raise ArrayFileError(f"{path} has a directory that this program does not know: {error!r}") from error


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _arrays(entries: list[dict[str, Any]], body: memoryview) -> dict[str, NDArray[Any]]:
    found, position = {}, 0
    for entry in entries:
        if entry["dtype"] not in _DTYPES:
            raise ValueError(f"dtype {entry['dtype']}")
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        if any(extent < 0 for extent in shape):
            raise ValueError(f"shape {shape}")
        size = math.prod(shape) * dtype.itemsize
        stored = np.frombuffer(_piece(body, position, size), dtype).reshape(shape)
        found[entry["name"]] = stored.astype(dtype.newbyteorder("="))
        position += size
    if position != len(body):
        raise ValueError(f"{len(body) - position} bytes follow the last array")
    return found


def _piece(body: memoryview, start: int, size: int) -> memoryview:
    if start + size > len(body):
        raise ValueError(f"{size} bytes at {start}, of {len(body)}")
    return body[start : start + size]

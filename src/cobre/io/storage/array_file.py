"""Named arrays and some facts in one file, with a checksum: what a checkpoint is made of.

    header     magic, version, bytes of the directory
    directory  JSON: facts, and name, dtype and shape of each array in order
    arrays     one after the other, little-endian
    trailer    SHA-256 of everything before it

Nothing in such a file is ever executed.
"""

import hashlib
import io
import json
import math
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cobre.errors import CobreError
from cobre.io.storage.atomic import replacing_file
from cobre.io.storage.confined import MAX_TABLE_BYTES, open_untrusted
from cobre.io.storage.stored_json import parse_stored
from cobre.records import dataclass

MAGIC = b"COBREARR"
VERSION = 1
_HEADER = struct.Struct("<8sIQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_PIECE_BYTES = 1 << 22
_DTYPES = ("<f8", "<i4", "<i8", "|i1", "|u1")


@dataclass(frozen=True, slots=True)
class StreamedArray:
    """An array that is produced piece by piece while it is written, and never completely in memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    pieces: Callable[[], Iterator[NDArray[Any]]]


Arrays = Mapping[str, NDArray[Any] | StreamedArray]


class ArrayFileError(CobreError):
    """A file that is not a complete, undamaged array file; the message says which and why."""


def write_arrays(path: Path, facts: Mapping[str, Any], arrays: Arrays) -> None:
    """Write facts and arrays to `path`, completely or not at all. Raises WriteError."""
    digest = hashlib.sha256()
    with replacing_file(path) as stream:
        for part in _parts(_directory(facts, arrays), arrays):
            digest.update(part)
            stream.write(part)
        stream.write(digest.digest())


def _directory(facts: Mapping[str, Any], arrays: Arrays) -> bytes:
    entries = [
        {"name": name, "dtype": array.dtype.newbyteorder("<").str, "shape": array.shape}
        for name, array in arrays.items()
    ]
    return json.dumps({"facts": facts, "arrays": entries}, separators=(",", ":")).encode()


def _parts(directory: bytes, arrays: Arrays) -> Iterator[bytes | memoryview]:
    """Yield the bytes of the file except the trailer."""
    yield _HEADER.pack(MAGIC, VERSION, len(directory))
    yield directory
    for array in arrays.values():
        yield from _pieces(array)


def _pieces(array: NDArray[Any] | StreamedArray) -> Iterator[memoryview]:
    """Yield the bytes of an array in pieces. Raises ValueError if streamed pieces do not fill its shape."""
    left = math.prod(array.shape) * array.dtype.itemsize
    for piece in array.pieces() if isinstance(array, StreamedArray) else [array]:
        stored = _bytes(np.ascontiguousarray(piece, array.dtype.newbyteorder("<")))
        left -= stored.nbytes
        yield stored
    if left:
        raise ValueError(f"an array of shape {array.shape} lacks {left} bytes")


class ArrayFile:
    """An open array file with a verified checksum: its facts, and its arrays, which are read on demand.

    The checksum is computed piece by piece, so that large arrays need never be in memory. Raises ArrayFileError for a
    damaged or incomplete file; `path` is for messages.
    """

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self.path = path
        self._stream = stream
        size = stream.seek(0, os.SEEK_END)
        self._body = size - _DIGEST_BYTES
        length = self._check_header(size)
        if self._checksum() != self._take(self._body, _DIGEST_BYTES):
            raise ArrayFileError(f"{path} is truncated or damaged: its content does not match its checksum")
        try:
            if _HEADER.size + length > self._body:
                raise ValueError(f"{length} bytes at {_HEADER.size}, of {self._body}")
            directory = parse_stored(self._take(_HEADER.size, length))
            self.facts = dict(directory["facts"])
            self._entries = _entries(directory["arrays"], _HEADER.size + length, self._body)
        except (ValueError, KeyError, TypeError) as error:
            raise ArrayFileError(f"{path} has a directory that this program does not know: {error!r}") from error

    @classmethod
    def open(cls, path: Path) -> "ArrayFile":
        """Open and check a file. Raises ArrayFileError and OSError."""
        stream = os.fdopen(open_untrusted(path, MAX_TABLE_BYTES), "rb", buffering=0)
        try:
            return cls(path, stream)
        except BaseException:
            stream.close()
            raise

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all arrays, in their order."""
        return tuple(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array."""
        return self._entries[name].shape

    def array(self, name: str) -> NDArray[Any]:
        """Read an array, in native byte order."""
        entry = self._entries[name]
        return self.part(name, 0, entry.count).reshape(entry.shape)

    def part(self, name: str, start: int, count: int) -> NDArray[Any]:
        """Read some consecutive numbers of an array, in the order of the file."""
        entry = self._entries[name]
        if not 0 <= start <= start + count <= entry.count:
            raise ValueError(f"{count} numbers at {start}, of {entry.count}")
        values = np.empty(count, entry.dtype)
        self._fill(entry.start + start * entry.dtype.itemsize, _bytes(values))
        return values.astype(entry.dtype.newbyteorder("="), copy=False)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _check_header(self, size: int) -> int:
        """Check the header; returns the number of bytes of the directory."""
        if self._take(0, min(size, len(MAGIC))) != MAGIC:
            raise ArrayFileError(f"{self.path} is not a checkpoint of this program")
        if self._body < _HEADER.size:
            raise ArrayFileError(f"{self.path} is truncated: it has only {size} bytes")
        _, version, length = _HEADER.unpack(self._take(0, _HEADER.size))
        if version != VERSION:
            raise ArrayFileError(f"{self.path} has format version {version}, but this program reads version {VERSION}")
        return int(length)

    def _checksum(self) -> bytes:
        digest, piece = hashlib.sha256(), bytearray(min(self._body, _PIECE_BYTES))
        for start in range(0, self._body, _PIECE_BYTES):
            part = memoryview(piece)[: min(_PIECE_BYTES, self._body - start)]
            self._fill(start, part)
            digest.update(part)
        return digest.digest()

    def _take(self, start: int, count: int) -> bytes:
        content = bytearray(count)
        self._fill(start, memoryview(content))
        return bytes(content)

    def _fill(self, start: int, target: memoryview) -> None:
        self._stream.seek(start)
        while target:
            done = self._stream.readinto(target)  # type: ignore[attr-defined]  # binary streams have it
            if not done:
                raise ArrayFileError(f"{self.path} became shorter while it was read")
            target = target[done:]


def parse_arrays(path: Path, content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return facts and arrays of a file's content; `path` is for messages."""
    file = ArrayFile(path, io.BytesIO(content))
    return file.facts, {name: file.array(name) for name in file.names}


def array_bytes(facts: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Return the content that `write_arrays` would write."""
    content = b"".join(_parts(_directory(facts, arrays), arrays))
    return content + hashlib.sha256(content).digest()


@dataclass(frozen=True, slots=True)
class _Entry:
    """Type, shape and offset of an array in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _entries(directory: list[dict[str, Any]], start: int, end: int) -> dict[str, _Entry]:
    """Return the entries of arrays between two offsets of a file, which they must fill. Raises ValueError."""
    entries = {}
    for item in directory:
        if item["dtype"] not in _DTYPES:
            raise ValueError(f"dtype {item['dtype']}")
        entry = _Entry(np.dtype(item["dtype"]), tuple(item["shape"]), start)
        if any(not isinstance(extent, int) or extent < 0 for extent in entry.shape):
            raise ValueError(f"shape {entry.shape}")
        size = entry.count * entry.dtype.itemsize
        if start + size > end:
            raise ValueError(f"{size} bytes at {start}, of {end}")
        entries[item["name"]], start = entry, start + size
    if start != end:
        raise ValueError(f"{end - start} bytes follow the last array")
    return entries

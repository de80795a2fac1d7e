"""Records of this package in one file with a checksum: dataclasses, arrays and plain values, shared parts once.

    magic      8 bytes
    checksum   CRC-32 of everything after it, 4 bytes
    length     of the header, 8 bytes
    header     JSON: strings and numbers, kinds of objects, dtype, shape and place of each array
    arrays     each at a multiple of 64 bytes; the first three say how objects are made of values

Nothing in such a file is executed: classes are looked up by name in modules of this package that define records, and
instances get their fields without a call of their own code. Arrays are read-only views of the mapped file.
"""

import hashlib
import importlib
import json
import math
import mmap
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from itertools import pairwise
from pathlib import Path
from types import MemberDescriptorType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.errors import CobreError
from cobre.io.storage.atomic import replacing_file
from cobre.records import field_setter

MAGIC = b"COBREREC"
PACKAGE = "cobre"
NATIVE = "cobre._native"
_CHECKSUM_BYTES = 4
_START = len(MAGIC) + _CHECKSUM_BYTES
_ALIGNMENT = 64
_ATOM, _ARRAY, _OBJECT = range(3)
_PLAIN = (type(None), bool, int, float, str)


class RecordFileError(CobreError):
    """A value that cannot be stored, or a file that is damaged or not of this program."""


def write_records(path: Path, value: object) -> int:
    """Write a value to `path`, completely or not at all; its size in bytes. Raises RecordFileError and WriteError."""
    header, arrays = _Encoder().encode(value)
    begin = _aligned(_START + 8 + len(header))
    parts = [len(header).to_bytes(8, "little"), header, bytes(begin - _START - 8 - len(header))]
    checksum = 0
    with replacing_file(path) as stream:
        stream.write(bytes(_START))
        for part in (*parts, *_padded(arrays)):
            checksum = zlib.crc32(part, checksum)
            stream.write(part)
        size = stream.tell()
        stream.seek(0)
        stream.write(MAGIC + checksum.to_bytes(_CHECKSUM_BYTES, "little"))
    return size


def read_records(path: Path) -> Any:
    """Return the value in a file of this user. Raises OSError, and RecordFileError for a damaged file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        facts = os.fstat(descriptor)
        if facts.st_uid != os.geteuid():
            raise RecordFileError(f"{path} belongs to another user")
        if facts.st_size < _START + 8:
            raise RecordFileError(f"{path} is truncated")
        mapped = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
    content = memoryview(mapped)
    checksum = int.from_bytes(content[len(MAGIC) : _START], "little")
    if content[: len(MAGIC)] != MAGIC or zlib.crc32(content[_START:]) != checksum:
        raise RecordFileError(f"{path} is truncated or damaged: its content does not match its checksum")
    try:
        return _decode(content)
    except (LookupError, ValueError, TypeError, AttributeError, ImportError) as error:
        raise RecordFileError(f"{path} holds something that this program does not know: {error!r}") from error


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def _padded(arrays: Sequence[NDArray[Any]]) -> Iterator[memoryview | bytes]:
    for array in arrays:
        yield array.reshape(-1, order="A").view(np.uint8).data if array.size else b""
        yield bytes(_aligned(array.nbytes) - array.nbytes)


class _Encoder:
    """Numbers all values: plain ones first, then arrays, then objects, each after its parts."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}  # by identity: 4 * number + class of value
        self._kept: list[object] = []  # so that no identity is used twice
        self._dates: dict[date, date] = {}
        self._atoms: dict[tuple[type, str], int] = {}
        self._arrays: dict[tuple[str, tuple[int, ...], str, bytes], int] = {}
        self._stored: list[NDArray[Any]] = []
        self._kinds: dict[tuple[str, ...], int] = {}
        self._objects: list[tuple[int, list[int]]] = []

    def encode(self, value: object) -> tuple[bytes, list[NDArray[Any]]]:
        root = self._number(value)
        first = np.array([0, len(self._atoms), len(self._atoms) + len(self._stored)])
        refs = np.array([ref for _, parts in self._objects for ref in [*parts]] + [root], np.int64)
        refs = first[refs % 4] + refs // 4
        starts = np.cumsum([0, *(len(parts) for _, parts in self._objects)], dtype=np.int64)
        arrays = [np.array([kind for kind, _ in self._objects], np.int64), starts, refs, *self._stored]
        header = {
            "atoms": [json.loads(text) for _, text in self._atoms],
            "kinds": [*self._kinds],
            "arrays": [[array.dtype.str, array.shape, _order(array)] for array in arrays],
        }
        return json.dumps(header, separators=(",", ":")).encode(), arrays

    def _number(self, value: object) -> int:
        if type(value) in _PLAIN:
            text = json.dumps(value)
            return 4 * self._atoms.setdefault((type(value), text), len(self._atoms)) + _ATOM
        if type(value) is date:  # a study has thousands, of a few hundred days
            value = self._dates.setdefault(value, value)
        if id(value) in self._known:
            if self._known[id(value)] < 0:
                raise RecordFileError(f"a {type(value).__name__} that contains itself cannot be stored")
            return self._known[id(value)]
        self._known[id(value)] = -1
        self._kept.append(value)
        self._known[id(value)] = number = self._store(value)
        return number

    def _store(self, value: object) -> int:
        if isinstance(value, np.ndarray):
            return self._store_array(value)
        kind, parts = _parts_of(value)
        numbers = [self._number(part) for part in parts]
        self._objects.append((self._kinds.setdefault(kind, len(self._kinds)), numbers))
        return 4 * (len(self._objects) - 1) + _OBJECT

    def _store_array(self, value: NDArray[Any]) -> int:
        if value.dtype.hasobject or type(value) is not np.ndarray:
            raise RecordFileError(f"an array of {value.dtype} cannot be stored")
        array = value if value.flags.c_contiguous or value.flags.f_contiguous else np.ascontiguousarray(value)
        content = array.reshape(-1, order="A").view(np.uint8).data if array.size else b""
        key = (array.dtype.str, array.shape, _order(array), hashlib.blake2b(content, digest_size=16).digest())
        if key not in self._arrays:
            self._arrays[key] = len(self._stored)
            self._stored.append(array)
        return 4 * self._arrays[key] + _ARRAY


def _order(array: NDArray[Any]) -> str:
    return "C" if array.flags.c_contiguous else "F"


_PARTS: dict[type, tuple[str, Callable[[Any], Sequence[object]]]] = {
    tuple: ("tuple", list),
    list: ("list", list),
    set: ("set", list),
    frozenset: ("frozenset", list),
    dict: ("dict", lambda value: [part for item in value.items() for part in item]),
    bytes: ("bytes", lambda value: [np.frombuffer(value, np.uint8)]),
    range: ("range", lambda value: [value.start, value.stop, value.step]),
    date: ("date", lambda value: [value.isoformat()]),
    type(Path()): ("path", lambda value: [str(value)]),
}


def _parts_of(value: object) -> tuple[tuple[str, ...], Sequence[object]]:
    """Return the kind of an object, and the values that it is made of."""
    kind: Any = type(value)
    if kind in _PARTS:
        name, split = _PARTS[kind]
        return (name,), split(value)
    if isinstance(value, np.generic):
        return ("scalar",), [np.asarray(value)]
    if not kind.__module__.startswith(f"{PACKAGE}.") or "<locals>" in kind.__qualname__:
        raise RecordFileError(f"a {kind.__module__}.{kind.__qualname__} cannot be stored")
    if isinstance(value, Enum):
        return ("enum", kind.__module__, kind.__qualname__), [value.name]
    if kind.__module__ == NATIVE:
        native_names: tuple[str, ...] = vars(kind).get("__match_args__", ())
        if not native_names:
            raise RecordFileError(f"a {kind.__module__}.{kind.__qualname__} cannot be stored")
        return ("native", NATIVE, kind.__qualname__, *native_names), [getattr(value, name) for name in native_names]
    if not is_dataclass(kind) and _slots(kind):
        raise RecordFileError(f"a {kind.__module__}.{kind.__qualname__} with slots cannot be stored")
    names = [item.name for item in fields(kind)] if is_dataclass(kind) else sorted(value.__dict__)
    return ("record", kind.__module__, kind.__qualname__, *names), [getattr(value, name) for name in names]


def _decode(content: memoryview) -> Any:
    length = int.from_bytes(content[_START : _START + 8], "little")
    header = json.loads(bytes(content[_START + 8 : _START + 8 + length]))
    arrays, offset = [], _aligned(_START + 8 + length)
    for dtype, shape, order in header["arrays"]:
        flat = np.frombuffer(content, dtype, math.prod(shape), offset)
        arrays.append(flat.reshape(shape, order=order))
        offset = _aligned(offset + flat.nbytes)
    kinds, starts, refs = (array.tolist() for array in arrays[:3])
    values: list[Any] = [*header["atoms"], *arrays[3:]]
    make = [_maker(*kind) for kind in header["kinds"]]
    value_of = values.__getitem__
    for kind, (begin, end) in zip(kinds, pairwise(starts), strict=True):
        values.append(make[kind](list(map(value_of, refs[begin:end]))))
    return values[refs[-1]]


_MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "list": list,
    "set": set,
    "frozenset": frozenset,
    "dict": lambda parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    "bytes": lambda parts: parts[0].tobytes(),
    "range": lambda parts: range(*parts),
    "date": lambda parts: date.fromisoformat(parts[0]),
    "path": lambda parts: Path(parts[0]),
    "scalar": lambda parts: parts[0][()],
}


def _maker(kind: str, module: str = "", name: str = "", *names: str) -> Callable[[list[Any]], Any]:
    """Return a function that makes an object of a kind of its parts."""
    if kind not in ("enum", "record", "native"):
        return _MAKERS[kind]
    if not module.startswith(f"{PACKAGE}."):
        raise ValueError(f"{module} is not a module of this package")
    cls: Any = importlib.import_module(module)
    for part in name.split("."):
        cls = vars(cls)[part]
    if not isinstance(cls, type) or cls.__module__ != module:
        raise ValueError(f"{module}.{name} is not a class of that module")
    if kind == "enum":
        return lambda parts: _members(cls)[parts[0]]
    if kind == "native" or module == NATIVE:
        return _native_maker(cls, names)
    if is_dataclass(cls) and [item.name for item in fields(cls)] != [*names]:
        raise ValueError(f"{module}.{name} has other fields now")
    return _record_maker(cls, names)


def _native_maker(cls: type, names: Sequence[str]) -> Callable[[list[Any]], Any]:
    """Return the constructor of a native record. Other native classes, which do more than hold values, are refused."""
    if cls.__module__ != NATIVE or not names or vars(cls).get("__match_args__") != tuple(names):
        raise ValueError(f"{cls.__module__}.{cls.__qualname__} is not a record with these fields")
    return lambda parts: cls(*parts)


def _members(cls: Any) -> Any:
    if not issubclass(cls, Enum):
        raise ValueError(f"{cls.__qualname__} is not an enumeration")
    return cls.__members__


def _record_maker(cls: type, names: Sequence[str]) -> Callable[[list[Any]], Any]:
    """Return a function that sets fields without `__init__` and `__post_init__`: they were checked at first."""
    setters = [field_setter(cls, name) for name in names]

    def with_dictionary(parts: list[Any]) -> Any:
        instance: Any = object.__new__(cls)
        instance.__dict__.update(zip(names, parts, strict=True))
        return instance

    def with_slots(parts: list[Any]) -> Any:
        instance: Any = object.__new__(cls)
        for set_field, part in zip(setters, parts, strict=True):
            set_field(instance, part)
        return instance

    return with_slots if _slots(cls) else with_dictionary


def _slots(cls: type) -> set[str]:
    """Return the fields that a class or its bases hold in slots; such a class may have a dictionary all the same."""
    return {name for base in cls.__mro__ for name, part in vars(base).items() if type(part) is MemberDescriptorType}

"""Reader of FlatBuffers tables, field by field.

A table begins with the distance back to its vtable: its bytes, the table's bytes, and for every field the distance
from the table, 0 when it is absent. Vectors and tables lie where an offset points. Everything is
little-endian. Offsets are checked: one outside of the content raises `FlatTableError`.
"""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.errors import CobreError
from cobre.records import dataclass

_OFFSET, _BACK, _SHORT = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")


class FlatTableError(CobreError, ValueError):
    """Bytes that are not a valid FlatBuffers table."""


@dataclass(frozen=True, slots=True)
class FlatTable:
    """A table at the offset `at` of the content; fields are identified by their numbers."""

    content: bytes
    at: int

    @classmethod
    def root(cls, content: bytes, identifier: bytes) -> "FlatTable":
        """The root table of a file with `identifier` in its bytes 4 to 7."""
        if content[4:8] != identifier:
            raise FlatTableError(f"it does not have the identifier {identifier.decode()}")
        return cls(content, _unpack(_OFFSET, content, 0))

    def integer(self, field: int, kind: str = "<i4", default: int = 0) -> int:
        """An integer of the NumPy type `kind`; `default` if it is absent."""
        return int(self._scalar(field, kind, default))

    def number(self, field: int) -> float | None:
        """A float64; None if it is absent."""
        return None if self._field_offset(field) is None else float(self._scalar(field, "<f8", 0.0))

    def vector(self, field: int, kind: str) -> NDArray[Any]:
        """A vector of numbers; empty if it is absent."""
        offset = self._field_offset(field)
        if offset is None:
            return np.zeros(0, kind)
        begin = offset + _unpack(_OFFSET, self.content, offset)
        return _numbers(self.content, kind, begin + 4, _unpack(_OFFSET, self.content, begin))

    def tables(self, field: int) -> list["FlatTable"]:
        """A vector of tables: each is stored as an offset relative to its own position."""
        offsets = self.vector(field, "<u4")
        if not len(offsets):
            return []
        offset = self._field_offset(field) or 0
        begin = offset + _unpack(_OFFSET, self.content, offset) + 4
        return [FlatTable(self.content, begin + 4 * index + int(offset)) for index, offset in enumerate(offsets)]

    def _scalar(self, field: int, kind: str, default: float) -> Any:
        offset = self._field_offset(field)
        return default if offset is None else _numbers(self.content, kind, offset, 1)[0]

    def _field_offset(self, field: int) -> int | None:
        vtable = self.at - _unpack(_BACK, self.content, self.at)
        if 4 + 2 * field >= _unpack(_SHORT, self.content, vtable):
            return None
        distance = _unpack(_SHORT, self.content, vtable + 4 + 2 * field)
        return self.at + distance if distance else None


def _numbers(content: bytes, kind: str, begin: int, count: int) -> NDArray[Any]:
    dtype = np.dtype(kind)
    if not 0 <= begin <= len(content) - count * dtype.itemsize:
        raise FlatTableError("an offset points outside the file")
    found: NDArray[Any] = np.frombuffer(content, dtype, count, begin)
    return found


def _unpack(form: struct.Struct, content: bytes, at: int) -> int:
    if not 0 <= at <= len(content) - form.size:
        raise FlatTableError("an offset points outside the file")
    return int(form.unpack_from(content, at)[0])

"""Tables of the FlatBuffers format, written field by field with the library; `io.policies.flat_table` reads them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import flatbuffers
import numpy as np
from numpy.typing import NDArray

IDENTIFIER = b"CBVF"


class Field(NamedTuple):
    """A value and its type: u1, i4, u4, u8, f8, bool, or `at`, the offset of something written before."""

    kind: str
    value: Any


class FlatWriter:
    """Writes one file. What a table refers to is written before it and referenced by its position."""

    def __init__(self, expected_bytes: int = 1024) -> None:
        self._builder: Any = flatbuffers.Builder(expected_bytes)
        self._builder.ForceDefaults(True)  # cobre-python reads an absent number as the mark of an older version

    def text(self, value: str) -> Field:
        """Write a string; returns its position."""
        return Field("at", self._builder.CreateString(value))

    def numbers(self, values: NDArray[Any] | Sequence[int], dtype: str) -> Field:
        """Write a vector of numbers; returns its position."""
        array = np.ascontiguousarray(values, np.dtype(dtype))
        if not len(array):
            self._builder.StartVector(array.itemsize, 0, array.itemsize)
            return Field("at", self._builder.EndVector())
        return Field("at", self._builder.CreateNumpyVector(array))

    def tables(self, positions: Sequence[Field]) -> Field:
        """Write a vector of tables, given by their positions; returns its position."""
        self._builder.StartVector(4, len(positions), 4)
        for position in reversed(positions):
            self._builder.PrependUOffsetTRelative(position.value)
        return Field("at", self._builder.EndVector())

    def table(self, fields: Mapping[int, Field]) -> Field:
        """A table; fields by their numbers in the schema."""
        prepend = {
            "u1": self._builder.PrependUint8Slot,
            "bool": self._builder.PrependBoolSlot,
            "i4": self._builder.PrependInt32Slot,
            "u4": self._builder.PrependUint32Slot,
            "u8": self._builder.PrependUint64Slot,
            "f8": self._builder.PrependFloat64Slot,
            "at": self._builder.PrependUOffsetTRelativeSlot,
        }
        self._builder.StartObject(max(fields) + 1)
        for number, (kind, value) in fields.items():
            prepend[kind](number, value, 0)
        return Field("at", self._builder.EndObject())

    def file(self, root: Field) -> bytes:
        """The complete file, with the identifier of cobre-python's policy files."""
        self._builder.Finish(root.value, file_identifier=IDENTIFIER)
        return bytes(self._builder.Output())

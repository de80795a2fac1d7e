"""Parquet files of one schema joined into one: row groups are copied as they are, and only the footers are read.

A footer is a Thrift structure (compact protocol) with the offset in the file of each column of each row group. Offsets
are increased by the bytes that precede the row group in the joined file; everything else is copied byte for byte.
Decoding and encoding the rows again would take as long as writing them did, and Arrow's own description of a file takes
about 1 kB for each column of each row group, ten times what it takes here.
"""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from cobre.errors import CobreError
from cobre.io.storage.confined import check_untrusted
from cobre.records import dataclass

MAGIC = b"PAR1"
COPIED_AT_ONCE = 1 << 20
_TAIL = struct.Struct("<I4s")  # bytes of the footer, magic
_BOOLEANS, _BYTE, _INTEGERS, _I64, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 6, 7, 8, (9, 10), 12
_LONG_LIST = 15

Plan = Mapping[
    int, "Plan | None"
]  # by field number: the plan of a nested structure; None: the field is an offset in the file
_META: Plan = {9: None, 10: None, 11: None, 14: None}  # data, index and dictionary pages, bloom filter
_COLUMN: Plan = {2: None, 3: _META, 4: None, 6: None}  # the chunk itself, its offset index and column index
_ROW_GROUP: Plan = {1: _COLUMN, 5: None}
_NUM_ROWS, _ROW_GROUPS = 3, 4


class ParquetJoinError(CobreError):
    """A file that cannot be joined with the others; the message says which."""


@dataclass(frozen=True, slots=True)
class _Field:
    """The byte range of a field's value in the footer."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Footer:
    content: bytes
    fields: Mapping[int, _Field]

    @property
    def num_rows(self) -> int:
        return _unzigzag(_varint(self.content, self.fields[_NUM_ROWS].start)[0])

    @property
    def row_groups(self) -> tuple[int, int]:
        """The number of row groups, and the position of the first."""
        _, count, at = _list_header(self.content, self.fields[_ROW_GROUPS].start)
        return count, at

    @property
    def schema(self) -> bytes:
        """Everything before the number of rows: version and schema."""
        return self.content[: self.fields[_NUM_ROWS].start]


def join_parquet(stream: BinaryIO, paths: Sequence[Path]) -> None:
    """Write one file with the rows of all others, in order, to a new stream. Raises ParquetJoinError."""
    stream.write(MAGIC)
    end, count, rows, groups = len(MAGIC), 0, 0, bytearray()
    first: _Footer | None = None
    for path in paths:
        with check_untrusted(path).open("rb") as source:
            footer, data_end = _read_footer(source, path)
            first = first or footer
            if footer.schema != first.schema:
                raise ParquetJoinError(f"{path} has other columns than {paths[0]}")
            source.seek(len(MAGIC))
            _copy(source, stream, data_end - len(MAGIC))
        num_groups, start = footer.row_groups
        groups += _moved(footer.content, start, num_groups, end - len(MAGIC))
        count, rows, end = count + num_groups, rows + footer.num_rows, end + data_end - len(MAGIC)
    if first is None:
        raise ValueError("there is no file to join")
    footer_bytes = _joined_footer(first, rows, count, bytes(groups))
    stream.write(footer_bytes)
    stream.write(_TAIL.pack(len(footer_bytes), MAGIC))


def _read_footer(source: BinaryIO, path: Path) -> tuple[_Footer, int]:
    """Return the bytes of the Parquet footer, and its offset in the file."""
    size = source.seek(0, 2)
    if size < len(MAGIC) + _TAIL.size:
        raise ParquetJoinError(f"{path} is truncated")
    source.seek(size - _TAIL.size)
    length, magic = _TAIL.unpack(source.read(_TAIL.size))
    start = size - _TAIL.size - length
    if magic != MAGIC or start < len(MAGIC):
        raise ParquetJoinError(f"{path} is not a complete Parquet file")
    source.seek(start)
    content = source.read(length)
    try:
        return _Footer(content, _fields(content)), start
    except (IndexError, KeyError, ValueError) as error:
        raise ParquetJoinError(f"{path} has a footer that this program does not know") from error


def _copy(source: BinaryIO, target: BinaryIO, count: int) -> None:
    """Copy the next `count` bytes, a piece at a time."""
    while count:
        content = source.read(min(count, COPIED_AT_ONCE))
        if not content:
            raise ParquetJoinError("a file became shorter while it was read")
        target.write(content)
        count -= len(content)


def _joined_footer(first: _Footer, rows: int, count: int, groups: bytes) -> bytes:
    content, num_rows, row_groups = first.content, first.fields[_NUM_ROWS], first.fields[_ROW_GROUPS]
    parts = (
        content[: num_rows.start],
        _to_varint(_zigzag(rows)),
        content[num_rows.end : row_groups.start],
        _to_list_header(count),
        groups,
        content[row_groups.end :],
    )
    return b"".join(parts)


def _fields(content: bytes) -> dict[int, _Field]:
    """Return the byte ranges of the fields of the outermost structure, by field number."""
    fields, at, number = {}, 0, 0
    while content[at]:
        kind, number, start = _field_header(content, at, number)
        at = _skip(content, kind, start, None, [])
        fields[number] = _Field(start, at)
    if at != len(content) - 1:
        raise ValueError("bytes follow the last field")
    return fields


def _moved(content: bytes, start: int, count: int, by: int) -> bytes:
    """Return the bytes of `count` row groups, with all offsets in the file increased by `by`."""
    ranges: list[tuple[int, int]] = []
    end = start
    for _ in range(count):
        end = _skip(content, _STRUCT, end, _ROW_GROUP, ranges)
    parts, at = [], start
    for first, last in ranges:
        value = _unzigzag(_varint(content, first)[0])
        parts += [content[at:first], _to_varint(_zigzag(value + by if value else 0))]  # 0: absent
        at = last
    return b"".join([*parts, content[at:end]])


def _skip(content: bytes, kind: int, at: int, plan: Plan | None, ranges: list[tuple[int, int]]) -> int:
    """Return the end of a value; byte ranges of the offsets that the plan names are added to `ranges`."""
    if kind in _BOOLEANS:
        return at  # the value is in the field's header
    if kind in _INTEGERS:
        return _varint_end(content, at)
    if kind == _BINARY:
        length, at = _varint(content, at)
        return at + length
    if kind == _STRUCT:
        return _skip_struct(content, at, plan, ranges)
    if kind in _LISTS:
        return _skip_list(content, at, plan, ranges)
    if kind in (_BYTE, _DOUBLE):
        return at + (1 if kind == _BYTE else 8)
    raise ValueError(f"type {kind}")


def _skip_struct(content: bytes, at: int, plan: Plan | None, ranges: list[tuple[int, int]]) -> int:
    number = 0
    while content[at]:
        kind, number, start = _field_header(content, at, number)
        is_known = plan is not None and number in plan
        inner = plan[number] if plan is not None and is_known else None
        at = _skip(content, kind, start, inner, ranges)
        if is_known and inner is None and kind == _I64:
            ranges.append((start, at))
    return at + 1


def _skip_list(content: bytes, at: int, plan: Plan | None, ranges: list[tuple[int, int]]) -> int:
    kind, count, at = _list_header(content, at)
    if kind in _BOOLEANS:
        return at + count
    for _ in range(count):
        at = _skip(content, kind, at, plan, ranges)
    return at


def _field_header(content: bytes, at: int, before: int) -> tuple[int, int, int]:
    """Return type and number of a field, and the position of its value."""
    head = content[at]
    if head >> 4:
        return head & 15, before + (head >> 4), at + 1
    number, at = _varint(content, at + 1)
    return head & 15, _unzigzag(number), at


def _list_header(content: bytes, at: int) -> tuple[int, int, int]:
    """Return type and number of the elements, and the position of the first."""
    head = content[at]
    if head >> 4 != _LONG_LIST:
        return head & 15, head >> 4, at + 1
    count, at = _varint(content, at + 1)
    return head & 15, count, at


def _to_list_header(count: int) -> bytes:
    if count < _LONG_LIST:
        return bytes([count << 4 | _STRUCT])
    return bytes([_LONG_LIST << 4 | _STRUCT]) + _to_varint(count)


def _varint_end(content: bytes, at: int) -> int:
    while content[at] & 0x80:
        at += 1
    return at + 1


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Decode an unsigned varint; returns the number and the offset after it."""
    value = shift = 0
    while (byte := content[at]) & 0x80:
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | byte << shift, at + 1


def _to_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _zigzag(value: int) -> int:
    return value << 1


def _unzigzag(value: int) -> int:
    return value >> 1 ^ -(value & 1)

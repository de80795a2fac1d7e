"""Conversion between Arrow columns and NumPy arrays, without importing pandas."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.io.storage.confined import UntrustedFileError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet
    from pyarrow._parquet import ParquetReader


MAX_UNPACKED_BYTES = 1 << 34
"""Bytes of the largest table in memory."""
MIN_SUSPICIOUS_BYTES = 1 << 28
MAX_UNPACKED_RATIO = 100
"""Largest size in memory, as a multiple of its file, of a table of more than `MIN_SUSPICIOUS_BYTES`.

That of numbers that differ is 4."""


def check_unpacked_size(file: "parquet.ParquetFile | ParquetReader", path: Path) -> None:
    """Raise UntrustedFileError for a table that takes much more memory than its file says. Call before reading it.

    A column of equal values takes next to nothing in a file: 1.6 MB may hold 6.5 GB.
    """
    metadata, stored = file.metadata, path.stat().st_size
    groups = [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]
    unpacked = max(sum(groups), 8 * metadata.num_rows * metadata.num_columns)
    if unpacked > MAX_UNPACKED_BYTES or unpacked > max(MIN_SUSPICIOUS_BYTES, MAX_UNPACKED_RATIO * stored):
        raise UntrustedFileError(
            f"its {metadata.num_rows:,} rows take {unpacked / 1e9:.1f} GB in memory, "
            f"{unpacked // max(1, stored):,} times the size of the file, and are not read"
        )


@contextmanager
def open_parquet(path: Path) -> "Iterator[ParquetReader]":
    """Open a Parquet file with Arrow's own reader, for tables without nesting.

    `pyarrow.parquet` loads file systems, those of clouds and their encryption among them: 10 MB, and 25 ms of CPU where
    reading all tables of a large case takes 30 ms. Where pyarrow has its reader elsewhere, that is what is used.
    """
    try:
        from pyarrow._parquet import ParquetReader  # noqa: PLC0415

        reader = ParquetReader()
        reader.open(str(path), pre_buffer=False)
    except ImportError:
        from pyarrow import parquet  # noqa: PLC0415

        reader = parquet.ParquetFile(path).reader
    try:
        yield reader
    finally:
        reader.close()


def read_columns(reader: "ParquetReader", names: Container[str]) -> "pa.Table":
    """Return the columns with these names, on this thread."""
    positions = [position for position, path in enumerate(reader.column_paths) if path[0] in names]
    return reader.read_all(column_indices=positions, use_threads=False)


def numbers_of(column: "pa.ChunkedArray") -> NDArray[Any]:
    """Return the numbers of a column, nulls as NaN.

    Integers and floats avoid `to_numpy`, which imports pandas if installed and takes half a second.
    """
    import pyarrow as pa  # noqa: PLC0415

    kind = column.type
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not is_plain:
        return np.asarray(column.to_numpy())
    combined = column.combine_chunks()
    if not column.null_count:
        return np.from_dlpack(combined)
    dtype = np.dtype(kind.to_pandas_dtype())
    values = np.frombuffer(combined.buffers()[1], dtype, len(combined), combined.offset * dtype.itemsize)
    return np.where(null_rows(combined), np.nan, values)


def column_of(
    values: NDArray[Any] | Sequence[Any], kind: "pa.DataType | None" = None, is_null: NDArray[np.bool_] | None = None
) -> "pa.Array":
    """Return a column of numbers or text; null where a value is None or `is_null` is set. An array's dtype is its kind.

    Not by `pyarrow.array`: it imports pandas if installed, even for a list of numbers. Raises OverflowError if a value
    does not fit into `kind`.
    """
    import pyarrow as pa  # noqa: PLC0415

    is_text = values.dtype.kind in "UO" if isinstance(values, np.ndarray) else kind == pa.string()
    if is_text:
        return _text_column(values)
    if not isinstance(values, np.ndarray):
        is_null = np.array([value is None for value in values], np.bool_)
        values = np.array([0 if value is None else value for value in values])
    return _number_column(values, kind or pa.from_numpy_dtype(values.dtype), _validity(is_null))


def table_of(columns: "Mapping[str, NDArray[Any] | pa.Array]") -> "pa.Table":
    """Return a table of arrays; contiguous ones are not copied."""
    import pyarrow as pa  # noqa: PLC0415

    return pa.table(
        {name: column_of(values) if isinstance(values, np.ndarray) else values for name, values in columns.items()}
    )


def _number_column(values: NDArray[Any], kind: "pa.DataType", validity: "pa.Buffer | None") -> "pa.Array":
    import pyarrow as pa  # noqa: PLC0415

    dtype = np.dtype(kind.to_pandas_dtype())
    stored = np.ascontiguousarray(values.astype(dtype, copy=False))
    if stored.dtype != values.dtype and not np.array_equal(stored, values, equal_nan=True):
        raise OverflowError(f"a value does not fit into {kind}")
    data = np.packbits(stored, bitorder="little") if dtype == np.bool_ else stored
    return pa.Array.from_buffers(kind, len(stored), [validity, pa.py_buffer(data)])


def _text_column(values: NDArray[Any] | Sequence[Any]) -> "pa.Array":
    import pyarrow as pa  # noqa: PLC0415

    encoded = [b"" if value is None else str(value).encode() for value in values]
    validity = _validity(np.array([value is None for value in values], np.bool_))
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def _validity(is_null: NDArray[np.bool_] | None) -> "pa.Buffer | None":
    """Return Arrow's validity bitmap; None if no value is null."""
    import pyarrow as pa  # noqa: PLC0415

    if is_null is None or not is_null.any():
        return None
    return pa.py_buffer(np.packbits(~is_null, bitorder="little"))


def null_rows(column: "pa.Array") -> NDArray[np.bool_]:
    """Return whether each row is null, from the bitmap: importing Arrow's compute functions takes 50 ms."""
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    bits = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")
    return np.equal(bits[column.offset : column.offset + len(column)], 0)


@contextmanager
def system_allocator() -> Iterator[None]:
    """Make Arrow use the allocator of the C library inside the `with` block.

    For tables that are converted to NumPy arrays immediately: Arrow's own allocator would keep their pages, 20 MB of a
    large deck.
    """
    import pyarrow as pa  # noqa: PLC0415

    default = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(default)

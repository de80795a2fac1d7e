"""Tables of results read piece by piece, because they may be larger than memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cobre.io.storage.untrusted_file import check_untrusted

if TYPE_CHECKING:
    import pyarrow as pa


def table_pieces(path: Path, columns: Sequence[str]) -> Iterator["pa.Table"]:
    """Some columns, row group by row group. Raises OSError and ValueError for a file that cannot be read."""
    from pyarrow import parquet  # noqa: PLC0415

    with parquet.ParquetFile(check_untrusted(path)) as file:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, columns=list(columns), use_threads=False)

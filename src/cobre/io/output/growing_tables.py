"""Tables larger than memory: written row group by row group, in segments that survive a crash of the writer.

A segment is a directory with a part of every table. When it is closed, its files are complete and on the disk, and
`record.json`, written last, describes it. At the end, the files of a single segment become the tables; row groups of
several segments are copied, without decoding, into one file for each table (`parquet_join.py`).

    folder/.unfinished/0000/hydros.parquet ... record.json
    folder/.unfinished/0001/...
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.io.output.parquet_join import join_parquet
from cobre.io.output.results import ResultTables, StoredRows, publish, write_table
from cobre.io.storage.atomic import flush_tree, write_file
from cobre.io.storage.confined import create_file, make_folder, remove_file, remove_tree
from cobre.io.storage.stored_json import read_stored_object
from cobre.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


UNFINISHED = ".unfinished"
RECORD = "record.json"
ROWS_PER_GROUP = 32_768
MIN_ROWS_PER_GROUP = ROWS_PER_GROUP * 3 // 4  # a piece that is nearly full is written without waiting for more rows
MAX_WAITING_BYTES = 1 << 20  # of all rows that wait to be written
MAX_COLUMN_CHUNKS = 512  # of a segment: Arrow keeps about 1 kB for each until the file is closed


@dataclass(frozen=True, slots=True)
class Segment:
    """A closed segment and its record."""

    folder: Path
    record: Mapping[str, Any]

    def rows(self, name: str) -> StoredRows:
        """Return the rows of a table, to be read in pieces."""
        return StoredRows(_path(self.folder, name))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its tables."""
        paths = self.folder.rglob("*.parquet")
        return tuple(sorted(path.relative_to(self.folder).as_posix().removesuffix(".parquet") for path in paths))


class GrowingTables:
    """Appends rows to tables; `publish` turns them into a results directory.

    folder: the results directory. identity: identifies the simulation; existing segments of the same identity are
    continued if `resume`, all others are removed.
    """

    def __init__(self, folder: Path, identity: str, *, resume: bool) -> None:
        self._folder = folder
        self._identity = identity
        self._unfinished = folder / UNFINISHED
        self.segments = _closed_segments(self._unfinished, identity) if resume else []
        self._remove_all_but_segments()
        self._writers: dict[str, _TableWriter] = {}

    @property
    def _current(self) -> Path:
        return self._unfinished / f"{len(self.segments):04d}"

    def append(self, name: str, rows: "pa.Table") -> None:
        """Append rows to a table."""
        if name not in self._writers:
            self._writers[name] = _TableWriter(_path(self._current, name), rows.schema)
        self._writers[name].append(rows)
        while sum(writer.waiting_bytes for writer in self._writers.values()) > MAX_WAITING_BYTES:
            max(self._writers.values(), key=lambda writer: writer.waiting_bytes).write()

    @property
    def exceeds_memory_limit(self) -> bool:
        """Whether the writers of the open segment hold at least `MAX_COLUMN_CHUNKS` column chunks in memory."""
        return sum(writer.column_chunks for writer in self._writers.values()) >= MAX_COLUMN_CHUNKS

    def close_segment(self, record: Mapping[str, Any]) -> None:
        """Close the segment: its rows are on the disk when this returns. record: facts about it, as JSON."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}
        flush_tree(self._current)
        content = json.dumps({"identity": self._identity, **record}) + "\n"
        write_file(self._current / RECORD, content.encode())
        self.segments.append(Segment(self._current, {}))  # the caller has the record already

    def publish(self, others: ResultTables, facts: Mapping[str, Any]) -> None:
        """Write the results to `folder`: these tables, `others`, and a manifest. All segments must be closed."""
        complete = self.segments[0].folder if len(self.segments) == 1 else self._merged()
        for name, table in others.items():
            write_table(complete, name, table)
        remove_file(complete / RECORD)
        flush_tree(complete)
        publish(self._folder, complete, facts)
        remove_tree(self._unfinished)

    def _merged(self) -> Path:
        target = self._unfinished / "complete"
        remove_tree(target)
        for name in sorted({name for segment in self.segments for name in segment.names}):
            path = _path(target, name)
            make_folder(path.parent)
            pieces = [_path(segment.folder, name) for segment in self.segments if name in segment.names]
            with create_file(path) as stream:
                join_parquet(stream, pieces)
        return target

    def abandon(self) -> None:
        """Clean up after a failure: only closed segments are kept, from which a run can resume."""
        for writer in self._writers.values():
            writer.abandon()
        self._remove_all_but_segments()
        if not self.segments:
            remove_tree(self._unfinished)

    def _remove_all_but_segments(self) -> None:
        closed = [segment.folder for segment in self.segments]
        for path in self._unfinished.glob("*"):
            if path not in closed:
                remove_tree(path)


class _TableWriter:
    """Writes one file; rows are collected until there are enough for a row group."""

    def __init__(self, path: Path, schema: "pa.Schema") -> None:
        from pyarrow import parquet  # noqa: PLC0415

        make_folder(path.parent)
        self._stream = create_file(path)
        self._writer: parquet.ParquetWriter = parquet.ParquetWriter(self._stream, schema, compression="zstd")
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self.column_chunks = 0  # written so far

    def append(self, rows: "pa.Table") -> None:
        self._waiting.append(rows)
        self._rows += rows.num_rows
        if self._rows >= MIN_ROWS_PER_GROUP:
            self.write()

    @property
    def waiting_bytes(self) -> int:
        return sum(rows.nbytes for rows in self._waiting)

    def write(self) -> None:
        import pyarrow as pa  # noqa: PLC0415

        if self._rows:
            rows = self._waiting[0] if len(self._waiting) == 1 else pa.concat_tables(self._waiting).combine_chunks()
            self._waiting = []
            self._writer.write_table(rows, row_group_size=self._rows)
            self.column_chunks += rows.num_columns
        self._waiting, self._rows = [], 0

    def close(self) -> None:
        self.write()
        self._writer.close()
        self._stream.close()

    def abandon(self) -> None:
        """Close the file without a footer."""
        self._writer.is_open = False  # else it would write a footer when garbage-collected
        self._stream.close()


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"


def _closed_segments(unfinished: Path, identity: str) -> list[Segment]:
    """Return closed segments in order, up to the first that is missing, damaged or of another simulation."""
    segments: list[Segment] = []
    while True:
        folder = unfinished / f"{len(segments):04d}"
        try:
            record = read_stored_object(folder / RECORD)
        except (OSError, ValueError):
            return segments
        if record.pop("identity", None) != identity:
            return segments
        segments.append(Segment(folder, record))

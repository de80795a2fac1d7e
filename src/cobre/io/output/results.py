"""Tables of results: a directory has a manifest only if its results are complete."""

import hashlib
import json
import os
import platform
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cobre import __version__
from cobre.core.file_names import MANIFEST_FILE
from cobre.errors import CobreError
from cobre.io.storage.arrow_columns import check_unpacked_size, numbers_of
from cobre.io.storage.atomic import flush_tree, scratch_directory, write_file
from cobre.io.storage.confined import (
    MAX_TABLE_BYTES,
    UntrustedFileError,
    check_untrusted,
    create_file,
    make_folder,
    move_file,
    named_inside,
    open_untrusted,
    remove_file,
)
from cobre.io.storage.stored_json import read_stored_object

if TYPE_CHECKING:
    import pyarrow as pa


# manifest.json: the tables of a results directory, and the software that wrote them. It is written last.

FORMAT_VERSION = 1
LIBRARIES = ("numpy", "pyarrow", "highspy")


class ResultsError(CobreError, OSError):
    """A directory without complete results; the message names the missing or damaged part."""


def describe_table(path: Path, file: str) -> dict[str, Any]:
    """Return the manifest entry of the table in `path`; `file` is its name in the results directory."""
    from pyarrow import parquet  # noqa: PLC0415

    with parquet.ParquetFile(path) as table:
        rows, schema = table.metadata.num_rows, table.schema_arrow
    return {
        "file": file,
        "rows": rows,
        "columns": [{"name": field.name, "type": str(field.type)} for field in schema],
        "bytes": path.stat().st_size,
        "sha256": digest_of(path),
    }


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with os.fdopen(open_untrusted(path, MAX_TABLE_BYTES), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def software_versions() -> dict[str, str]:
    """Return the versions of this program, Python and the installed libraries that it uses."""
    from importlib import metadata  # noqa: PLC0415 - it loads the parsers of mail and zip files

    versions = {"cobre": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def manifest_text(tables: Mapping[str, Mapping[str, Any]], facts: Mapping[str, Any]) -> str:
    """Return the text of the manifest, deterministic for equal content."""
    content = {
        "format_version": FORMAT_VERSION,
        "software": software_versions(),
        "run": dict(facts),
        "tables": dict(tables),
    }
    return json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a results directory. Raises ResultsError if missing, damaged or of another version."""
    path = folder / MANIFEST_FILE
    try:
        content = read_stored_object(path)
    except FileNotFoundError as error:
        message = f"{folder} has no complete results: {MANIFEST_FILE} is missing (the run did not finish)"
        raise ResultsError(message) from error
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read: {error}") from error
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        raise ResultsError(f"{path} has format version {version}, and this program reads {FORMAT_VERSION}")
    return dict(content)


# Tables of a simulation, scenario by scenario; no more than a few row groups are in memory at a time.

Columns = Mapping[str, NDArray[Any]]
ROWS_AT_ONCE = 32_768


class RowSource(Protocol):
    """A table that is read in pieces, each as large as a row group."""

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator["pa.Table"]:
        """Yield consecutive rows of some columns (default: all)."""


class StoredRows:
    """A Parquet file as a `RowSource`, read one row group at a time. Raises ResultsError if it cannot be read."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa  # noqa: PLC0415 - nothing heavy on import
        from pyarrow import parquet  # noqa: PLC0415

        try:
            self._file = parquet.ParquetFile(check_untrusted(path))
            self._path = path
        except (OSError, pa.ArrowException) as error:
            raise ResultsError(f"{path} cannot be read: {error}") from error

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""
        return self._file.schema_arrow

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._file.metadata.num_rows)

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator["pa.Table"]:
        """Yield the row groups of the file, with all columns or some."""
        names = None if columns is None else list(columns)
        for group in range(self._file.num_row_groups):
            yield self._file.read_row_group(group, columns=names, use_threads=False)

    def column(self, name: str, start: int, stop: int) -> "pa.ChunkedArray":
        """Return the rows from `start` to before `stop` of a column."""
        first, last = bisect_right(self._starts, start) - 1, bisect_left(self._starts, stop)
        values = self._file.read_row_groups(range(first, last), columns=[name], use_threads=False).column(0)
        return values.slice(start - self._starts[first], stop - start)

    @cached_property
    def _starts(self) -> list[int]:
        """The first row of each row group, and the end of the last."""
        groups = range(self._file.num_row_groups)
        return [0, *accumulate(self._file.metadata.row_group(group).num_rows for group in groups)]

    def whole(self) -> "pa.Table":
        """Return the complete table, for tables that are known to be small."""
        check_unpacked_size(self._file, self._path)
        return self._file.read(use_threads=False)


class RowsInMemory:
    """A table in memory as a `RowSource`."""

    def __init__(self, table: "pa.Table") -> None:
        self._table = table

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""
        return self._table.schema

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._table.num_rows)

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator["pa.Table"]:
        """Yield consecutive rows of some columns (default: all), without a copy."""
        chosen = self._table if columns is None else self._table.select(list(columns))
        for start in range(0, chosen.num_rows, ROWS_AT_ONCE):
            yield chosen.slice(start, ROWS_AT_ONCE)


def paired_pieces(
    a: RowSource, b: RowSource, column: str
) -> Iterator[tuple[int, "pa.ChunkedArray", "pa.ChunkedArray"]]:
    """Yield pieces of a column of two tables, up to the end of the shorter: first row, and as many values of each.

    Row groups of the two need not have the same size.
    """
    pieces_a, pieces_b = ((piece.column(0) for piece in source.pieces([column])) for source in (a, b))
    first, left, right = 0, next(pieces_a, None), next(pieces_b, None)
    while left is not None and right is not None:
        count = min(len(left), len(right))
        if count:
            yield first, left[:count], right[:count]
        first, left, right = first + count, left[count:], right[count:]
        left = left if len(left) else next(pieces_a, None)
        right = right if len(right) else next(pieces_b, None)


def scenario_rows(source: RowSource, columns: Sequence[str]) -> Iterator[tuple[int, Columns]]:
    """Yield the id and the rows of each scenario, in order of id. Raises ResultsError if rows are not in this order."""
    rest: Columns | None = None
    for piece in source.pieces(list(dict.fromkeys(["scenario_id", *columns]))):
        read = {name: numbers_of(piece[name]) for name in piece.column_names}
        rows = read if rest is None else {name: np.concatenate([rest[name], read[name]]) for name in read}
        ids = rows["scenario_id"]
        if np.any(np.diff(ids) < 0):
            raise ResultsError("the rows of a table of the simulation are not in the order of scenarios")
        starts = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist()]
        for start, stop in pairwise(starts):
            yield _scenario(rows, start, stop)
        rest = {name: values[starts[-1] :] for name, values in rows.items()}
    if rest is not None and len(rest["scenario_id"]):
        yield _scenario(rest, 0, len(rest["scenario_id"]))


def _scenario(rows: Columns, start: int, stop: int) -> tuple[int, Columns]:
    return int(rows["scenario_id"][start]), {name: values[start:stop] for name, values in rows.items()}


# By name, such as `hydros` or `training/convergence`.
ResultTables = Mapping[str, "pa.Table"]

TABLE_NAME = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)*")


def write_results(folder: Path, tables: ResultTables, manifest: Mapping[str, Any]) -> None:
    """Write each table to `folder/NAME.parquet`, then `folder/manifest.json` with the facts `manifest`.

    All tables are written before the first gets its name. An old manifest is removed first and the new one is written
    last: without a manifest, results are incomplete. Tables of an earlier manifest that are not written again are
    removed; other files in the directory are kept. Raises WriteError.
    """
    for name in tables:
        if not TABLE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a table name: lower-case letters, digits, `_` and `/` only")
    manifest_text({}, manifest)  # fails before anything is written if a fact is not JSON
    with scratch_directory(folder) as scratch:
        for name in sorted(tables):
            write_table(scratch, name, tables[name])
        flush_tree(scratch)
        publish(folder, scratch, manifest)


def publish(folder: Path, scratch: Path, manifest: Mapping[str, Any]) -> None:
    """Give all tables of `scratch` their names in `folder`, on the same disk, and describe them in its manifest."""
    paths = sorted(scratch.rglob("*.parquet"))
    names = {path.relative_to(scratch).as_posix(): path for path in paths}
    entries = {name.removesuffix(".parquet"): describe_table(path, name) for name, path in names.items()}
    former = _former_files(folder)
    text = manifest_text(entries, manifest)
    remove_file(folder / MANIFEST_FILE)
    for entry in entries.values():
        move_file(scratch / entry["file"], folder / entry["file"])
    for file in former - {entry["file"] for entry in entries.values()}:
        remove_file(folder / file)
    write_file(folder / MANIFEST_FILE, text.encode())


def write_table(folder: Path, name: str, table: "pa.Table") -> None:
    """Write one table to `folder/NAME.parquet`."""
    from pyarrow import parquet  # noqa: PLC0415

    path = folder / f"{name}.parquet"
    make_folder(path.parent)
    with create_file(path) as stream:
        parquet.write_table(table.replace_schema_metadata(None), stream, compression="zstd")


def _former_files(folder: Path) -> set[str]:
    """Return the files of an earlier run in the same directory, as listed by its manifest."""
    try:
        entries = read_manifest(folder)["tables"].values()
        return {
            str(entry["file"]) for entry in entries if TABLE_NAME.fullmatch(str(entry["file"]).removesuffix(".parquet"))
        }
    except (ResultsError, KeyError, TypeError, AttributeError):
        return set()


def read_results(folder: Path, only: Collection[str] | None = None) -> dict[str, "pa.Table"]:
    """Read all tables of a results directory, or those of `only` that it has.

    Raises ResultsError if a file is missing or differs from its manifest entry.
    """
    return {name: StoredRows(path).whole() for name, path in _checked(folder, only)}


def open_results(folder: Path) -> dict[str, StoredRows]:
    """Return the tables of a results directory, to be read in pieces, as they may be large. Raises ResultsError."""
    return {name: StoredRows(path) for name, path in _checked(folder, None)}


def _checked(folder: Path, only: Collection[str] | None) -> Iterator[tuple[str, Path]]:
    """Return names and files of the tables; raises ResultsError for a file that differs from its manifest entry."""
    for name, entry in read_manifest(folder)["tables"].items():
        if only is not None and name not in only:
            continue
        yield name, table_file(folder, name, entry)


def listed_file(folder: Path, name: str) -> Path:
    """Return the file of a table of a results directory, to be opened by its reader.

    Every table of a run is opened through this function or `table_file`: one flipped bit may turn a number into another
    one that nothing else would notice. Raises ResultsError if the manifest does not list the table, or its file is
    missing or differs from what the manifest says.
    """
    tables = read_manifest(folder).get("tables")
    if not isinstance(tables, Mapping) or name not in tables:
        raise ResultsError(f"{folder / MANIFEST_FILE} lists no table {name}")
    return table_file(folder, name, tables[name])


def table_file(folder: Path, name: str, entry: object) -> Path:
    """Return the file of a table by its manifest entry. Raises ResultsError if it is missing or differs."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("sha256"), str):
        raise ResultsError(f"the entry of {name} in {folder / MANIFEST_FILE} is damaged: it has no checksum")
    path = _named(folder, name, entry.get("file"))
    if _digest(path) != entry["sha256"]:
        raise ResultsError(f"{path} is not the file that the manifest describes: its checksum differs")
    return path


def _named(folder: Path, name: str, file: object) -> Path:
    try:
        return named_inside(folder, file, f"the file of {name} in {folder / MANIFEST_FILE}")
    except UntrustedFileError as error:
        raise ResultsError(str(error)) from error


def _digest(path: Path) -> str:
    try:
        return digest_of(path)
    except FileNotFoundError:
        raise ResultsError(f"{path} is missing, but the manifest lists it") from None
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error

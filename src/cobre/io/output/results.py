"""Tables of results: a directory has a manifest only if its results are complete."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.io.file_names import MANIFEST_FILE
from cobre.io.output.manifest import ResultsError, describe_table, digest_of, manifest_text, read_manifest
from cobre.io.output.scenario_rows import StoredRows
from cobre.io.storage.atomic import flush_tree, scratch_directory, write_file
from cobre.io.storage.confined import create_file, make_folder, move_file, remove_file
from cobre.io.storage.untrusted_file import UntrustedFileError, named_inside

if TYPE_CHECKING:
    import pyarrow as pa

# By name, such as `hydros` or `training/convergence`.
ResultTables = Mapping[str, "pa.Table"]

_NAME = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)*")


def write_results(folder: Path, tables: ResultTables, manifest: Mapping[str, Any]) -> None:
    """Write each table to `folder/NAME.parquet`, then `folder/manifest.json` with the facts `manifest`.

    All tables are written before the first gets its name. An old manifest is removed first and the new one is written
    last: without a manifest, results are incomplete. Tables of an earlier manifest that are not written again are
    removed; other files in the directory are left alone. Raises WriteError.
    """
    for name in tables:
        if not _NAME.fullmatch(name):
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
    entries = {_name_of(path, scratch): describe_table(path, path.relative_to(scratch).as_posix()) for path in paths}
    former = _former_files(folder)
    text = manifest_text(entries, manifest)
    remove_file(folder / MANIFEST_FILE)
    for entry in entries.values():
        move_file(scratch / entry["file"], folder / entry["file"])
    for file in former - {entry["file"] for entry in entries.values()}:
        remove_file(folder / file)
    write_file(folder / MANIFEST_FILE, text.encode())


def _name_of(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix().removesuffix(".parquet")


def write_table(folder: Path, name: str, table: "pa.Table") -> None:
    """Write one table to `folder/NAME.parquet`."""
    from pyarrow import parquet  # noqa: PLC0415

    path = folder / f"{name}.parquet"
    make_folder(path.parent)
    with create_file(path) as stream:
        parquet.write_table(table.replace_schema_metadata(None), stream, compression="zstd")


def _former_files(folder: Path) -> set[str]:
    """Files of an earlier run in the same directory, as listed by its manifest."""
    try:
        entries = read_manifest(folder)["tables"].values()
        return {str(entry["file"]) for entry in entries if _NAME.fullmatch(str(entry["file"]).removesuffix(".parquet"))}
    except (ResultsError, KeyError, TypeError, AttributeError):
        return set()


def read_results(folder: Path, only: Collection[str] | None = None) -> dict[str, "pa.Table"]:
    """All tables of a results directory, or those of `only` that it has.

    Raises ResultsError if a file is missing or differs from its manifest entry.
    """
    return {name: StoredRows(path).whole() for name, path in _checked(folder, only)}


def open_results(folder: Path) -> dict[str, StoredRows]:
    """The tables of a results directory, to be read in pieces: they may be larger than memory. Raises ResultsError."""
    return {name: StoredRows(path) for name, path in _checked(folder, None)}


def _checked(folder: Path, only: Collection[str] | None) -> Iterator[tuple[str, Path]]:
    """Names and files of the tables; raises ResultsError for a file that differs from its manifest entry."""
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
    """The file of a table, by its manifest entry; raises ResultsError if it is missing or differs from the entry."""
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

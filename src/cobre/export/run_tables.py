"""The tables of a run for exports: bounds, simulation, and tables of stages and entities."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.export.source import ExportError
from cobre.io.output.manifest import read_manifest
from cobre.io.output.results import table_file
from cobre.io.output.scenario_rows import RowsInMemory, RowSource, StoredRows
from cobre.records import dataclass
from cobre.runs.files import MANIFEST_FILE, SIMULATION, TRAINING
from cobre.runs.stored import stored_study
from cobre.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = (TRAINING, SIMULATION)
STAGES, ENTITIES = "stages", "entities"


@dataclass(frozen=True)
class RunTables:
    """`tables` by name, in the order in which they are written; `study` is the content of study.json."""

    folder: Path
    tables: Mapping[str, RowSource]
    study: Mapping[str, Any]

    def entity_names(self, column: str) -> dict[int, str]:
        """Names of entities by id, for an id column such as `hydro_id`."""
        kind = plural(column.removesuffix("_id"))
        found = self.study.get("entities", {}).get(kind, ())
        return {int(entity["id"]): str(entity["name"]) for entity in found}

    def stage_starts(self) -> dict[int, str]:
        """The first day of each stage, by stage id."""
        return {int(stage["id"]): str(stage["start_date"]) for stage in self.study.get("stages", ())}


def read_tables(folder: Path, only: Collection[str] = ()) -> RunTables:
    """All tables of a run, or those named in `only`.

    Raises ExportError for an unknown name or a run without results, ResultsError for damaged results.
    """
    stored = {name: path for part in PARTS for name, path in _paths(folder / part)}
    if not stored:
        raise ExportError(
            f"{folder} has no complete results: {TRAINING}/{MANIFEST_FILE} and {SIMULATION}/{MANIFEST_FILE} are missing"
        )
    study = stored_study(folder)
    tables: dict[str, RowSource] = {STAGES: RowsInMemory(_stages(study)), ENTITIES: RowsInMemory(_entities(study))}
    known = [*tables, *stored]
    if unknown := [name for name in only if name not in known]:
        raise ExportError(f"there is no table {', '.join(unknown)}; {folder} has {', '.join(known)}")
    tables |= {name: StoredRows(path) for name, path in stored.items() if not only or name in only}
    return RunTables(folder, {name: rows for name, rows in tables.items() if not only or name in only}, study)


def _paths(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names and files of the tables of a part; raises ResultsError where a file differs from the manifest."""
    if not (folder / MANIFEST_FILE).exists():
        return
    try:
        for name, entry in sorted(read_manifest(folder).get("tables", {}).items()):
            yield name.replace("/", "_"), table_file(folder, name, entry)
    except (KeyError, TypeError, AttributeError) as error:
        raise ExportError(f"{folder} has no complete results: {error}") from error


def _stages(study: Mapping[str, Any]) -> "pa.Table":
    import pyarrow as pa

    schema = pa.schema(
        [("stage_id", pa.int32()), ("start_date", pa.date32()), ("end_date", pa.date32()), ("hours", pa.float64())]
    )
    rows = [{"stage_id": stage["id"], **stage} for stage in study.get("stages", ())]
    return _dated(pa.Table.from_pylist(rows, _with_text(schema)), schema)


def _with_text(schema: "pa.Schema") -> "pa.Schema":
    import pyarrow as pa

    return pa.schema([(field.name, pa.string() if pa.types.is_date(field.type) else field.type) for field in schema])


def _dated(table: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    import pyarrow.compute as pc

    columns = [
        pc.cast(pc.strptime(table[field.name], format="%Y-%m-%d", unit="s"), field.type)
        if field.name.endswith("_date")
        else table[field.name]
        for field in schema
    ]
    return table.from_arrays(columns, schema=schema)


def _entities(study: Mapping[str, Any]) -> "pa.Table":
    import pyarrow as pa

    schema = pa.schema([("kind", pa.string()), ("entity_id", pa.int32()), ("name", pa.string())])
    kinds = study.get("entities", {})
    rows = [
        {"kind": kind, "entity_id": entity["id"], "name": entity["name"]} for kind in kinds for entity in kinds[kind]
    ]
    return pa.Table.from_pylist(rows, schema)

"""The tables of a run for exports: bounds, simulation, and tables of stages and entities."""

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.compat.stored_results import training_facts
from cobre.core.case import Case
from cobre.core.file_names import CONFIG_FILE, MANIFEST_FILE, SIMULATION, TRAINING
from cobre.errors import CobreError
from cobre.io.case import load_case
from cobre.io.output.results import RowsInMemory, RowSource, StoredRows, read_manifest, table_file
from cobre.records import dataclass
from cobre.runs.content import logged_run, stored_study
from cobre.runs.trained_case import case_of_run
from cobre.runs.view import RunView
from cobre.sddp.problem.problem import PreparedStudy
from cobre.study.preparation.prepare import prepare
from cobre.text import plural

if TYPE_CHECKING:
    import pyarrow as pa


_CLASSES = ("hydros", "thermals", "buses", "lines")


class ExportError(CobreError):
    """Raised if a run cannot be exported; the message gives the reason and the remedy."""

    remedy = "give the output directory of a finished run, and what the message names"


@dataclass(frozen=True)
class RunSource:
    """A run to export. `case_folder`: the directory of its case, if it was moved."""

    folder: Path
    case_folder: Path | None = None

    @cached_property
    def study(self) -> dict[str, Any]:
        """The content of study.json."""
        return stored_study(self.folder)

    @cached_property
    def log(self) -> RunView:
        """The run as its events.jsonl describes it."""
        return logged_run(self.folder)

    @cached_property
    def training(self) -> dict[str, Any]:
        """The metadata of training that cobre-python stores; raises ExportError for unfinished training."""
        metadata = training_facts(self.folder) if self.study else None
        if metadata is None:
            raise ExportError(f"{self.folder} has no finished training: export a finished run")
        return metadata

    @cached_property
    def case(self) -> Case:
        """The case of the run; raises ExportError if it is missing or has other stages or entities."""
        folder = self.case_folder or Path(self.study.get("case") or "")
        if not (folder / CONFIG_FILE).exists():
            is_known = str(folder) != "."
            reason = f"{folder} is not a case directory" if is_known else "the run was not started from a directory"
            raise ExportError(f"the case of {self.folder} is needed, and {reason}: give its directory with --case")
        case = load_case(folder, self.study.get("config_overrides") or None)
        _check_same_study(folder, case, self.study)
        return case

    @cached_property
    def prepared(self) -> PreparedStudy:
        """The problem that was trained; raises ExportError if the case now describes another one."""
        study = prepare(self.case)
        trained = case_of_run(self.folder)
        if trained is not None and self.study.get("problem", study.digest) != study.digest:
            changes = trained.changes_in_words(self.case_folder or trained.folder)
            raise ExportError(
                f"the case of {self.folder} has changed since the run ({changes}): restore it, or give the "
                "original with --case"
            )
        return study


def _check_same_study(folder: Path, case: Case, study: dict[str, Any]) -> None:
    """Raise ExportError if the case has other stages or entities than the run."""
    stages = [{"id": stage.id, "start_date": stage.start_date.isoformat()} for stage in case.horizon.stages]
    known = [{name: stage.get(name) for name in ("id", "start_date")} for stage in study.get("stages", ())]
    if stages != known:
        raise ExportError(f"{folder} has different stages: give the case of the run with --case")
    for kind in _CLASSES:
        here = [(entity.id, entity.name) for entity in getattr(case.system, kind)]
        there = [(entity.get("id"), entity.get("name")) for entity in study.get("entities", {}).get(kind, ())]
        if here != there:
            raise ExportError(f"{folder} has different {kind}: give the case of the run with --case")


PARTS = (TRAINING, SIMULATION)
STAGES, ENTITIES = "stages", "entities"


@dataclass(frozen=True)
class RunTables:
    """`tables` by name, in the order in which they are written; `study` is the content of study.json."""

    folder: Path
    tables: Mapping[str, RowSource]
    study: Mapping[str, Any]

    def entity_names(self, column: str) -> dict[int, str]:
        """Return names of entities by id, for an id column such as `hydro_id`."""
        kind = plural(column.removesuffix("_id"))
        records = self.study.get("entities", {}).get(kind, ())
        return {int(entity["id"]): str(entity["name"]) for entity in records}

    def stage_starts(self) -> dict[int, str]:
        """Return the first day of each stage, by stage id."""
        return {int(stage["id"]): str(stage["start_date"]) for stage in self.study.get("stages", ())}


def read_tables(folder: Path, only: Collection[str] = ()) -> RunTables:
    """Return all tables of a run, or those named in `only`.

    Raises ExportError for an unknown name or a run without results, ResultsError for damaged results.
    """
    stored = {name: path for part in PARTS for name, path in _paths(folder / part)}
    if not stored:
        raise ExportError(
            f"{folder} has no complete results: {TRAINING}/{MANIFEST_FILE} and {SIMULATION}/{MANIFEST_FILE} are missing"
        )
    study = stored_study(folder)
    tables: dict[str, RowSource] = {STAGES: RowsInMemory(_stages(study)), ENTITIES: RowsInMemory(_entities(study))}
    names = [*tables, *stored]
    if unknown := [name for name in only if name not in names]:
        raise ExportError(f"there is no table {', '.join(unknown)}; {folder} has {', '.join(names)}")
    tables |= {name: StoredRows(path) for name, path in stored.items() if not only or name in only}
    return RunTables(folder, {name: rows for name, rows in tables.items() if not only or name in only}, study)


def _paths(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield names and files of the tables of a part; raises ResultsError if a file differs from the manifest."""
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
    return _with_dates(pa.Table.from_pylist(rows, _with_text(schema)), schema)


def _with_text(schema: "pa.Schema") -> "pa.Schema":
    import pyarrow as pa

    return pa.schema([(field.name, pa.string() if pa.types.is_date(field.type) else field.type) for field in schema])


def _with_dates(table: "pa.Table", schema: "pa.Schema") -> "pa.Table":
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

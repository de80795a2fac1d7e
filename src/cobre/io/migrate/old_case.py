"""A case of the 0.5 format: JSON objects and Arrow tables, unchecked."""

import json
from collections.abc import Iterator, Mapping
from datetime import date
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from cobre.io.case_folder.case_files import FOLDERS, OPTIONAL_JSON, REQUIRED_JSON, check_files
from cobre.io.config.file import ConfigFile
from cobre.io.decoding.format_version import is_old_format
from cobre.io.decoding.json_documents import read_document
from cobre.io.decoding.json_files import JsonFile
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import CaseProblem, Layer, Problems
from cobre.io.findings.schema_messages import path_in_file
from cobre.io.input_files import correlation_file, entities, production_models, stages_file
from cobre.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


EXCHANGE_FACTORS = "constraints/exchange_factors.json"

GENERIC_CONSTRAINTS = "constraints/generic_constraints.json"

JSON_FILES = (*REQUIRED_JSON, *OPTIONAL_JSON, EXCHANGE_FACTORS)

Json = dict[str, Any]


@dataclass(slots=True)
class OldCase:
    """Files by name; the steps of a migration modify them."""

    documents: dict[str, Json]
    tables: dict[str, "pa.Table"]

    def entities(self, file: str, array: str) -> list[Json]:
        """The elements of an array at the root of a file; empty without the file."""
        elements: list[Json] = self.documents.get(file, {}).get(array) or []
        return elements

    @property
    def stages(self) -> list[Json]:
        """Stages of the study, in order of id."""
        return sorted(self.entities("stages.json", "stages"), key=lambda stage: stage["id"])

    @property
    def start_date(self) -> date:
        """The first day of the study."""
        return date.fromisoformat(self.stages[0]["start_date"])

    def has_rows(self, name: str) -> bool:
        """Whether a table exists and has rows."""
        table = self.tables.get(name)
        return table is not None and table.num_rows > 0

    @property
    def has_lags(self) -> bool:
        """Whether inflows depend on earlier ones."""
        lags = ("scenarios/inflow_ar_coefficients.parquet", "scenarios/inflow_annual_component.parquet")
        return any(self.has_rows(name) for name in (*lags, "scenarios/inflow_history.parquet"))


def read_old_case(folder: Path) -> OldCase:
    """All files of an old case; raises InvalidCaseError if it is not of the 0.5 format or cannot be read."""
    problems = Problems()
    if not check_files(folder, Problems()):  # files that moved later are expected here
        check_files(folder, problems)
    problems.raise_errors(str(folder))
    documents = {name: read_document(folder, name, problems, is_required=name in REQUIRED_JSON) for name in JSON_FILES}
    problems.raise_errors(str(folder))
    if not is_old_format(documents, Problems()):
        message = "this is not a case of format version 0.5"
        problems.error(
            Layer.STRUCTURE, "(the whole case)", "", "", message, "a case of the current format needs no migration"
        )
    tables = dict(_read_tables(folder, problems))
    _refuse_shapes({name: document.content for name, document in documents.items() if document}, problems)
    problems.raise_errors(str(folder))
    return OldCase({name: document.content for name, document in documents.items() if document}, tables)


def _refuse_shapes(contents: dict[str, Any], problems: Problems) -> None:
    """Add errors for what the steps rely on; everything else is checked when the new case is read."""
    for name, content in contents.items():
        if not isinstance(content, dict):
            problems.error(Layer.SCHEMA, name, "", "", "is not an object", "a JSON object")
    stages = contents.get("stages.json")
    if not isinstance(stages, dict) or not stages.get("stages"):
        problems.error(Layer.SCHEMA, "stages.json", "", "stages", "there is none", "at least one stage")


def _read_tables(folder: Path, problems: Problems) -> Iterator[tuple[str, "pa.Table"]]:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    for name in FOLDERS:
        for path in sorted((folder / name).glob("*.parquet")):
            file = path.relative_to(folder).as_posix()
            try:
                yield file, parquet.read_table(path, partitioning=None)
            except (pa.ArrowException, OSError) as error:
                reason = str(error).split("\n", maxsplit=1)[0]
                message = f"cannot be read as Parquet: {reason}"
                problems.error(Layer.STRUCTURE, file, "", "", message, "write the file again")


def other_files(folder: Path) -> list[str]:
    """JSON files in the folders of inputs that the old format does not have."""
    known = set(JSON_FILES)
    directories = (folder, *(folder / name for name in FOLDERS))
    found = [path for directory in directories for path in directory.glob("*.json")]
    return sorted(name for name in (path.relative_to(folder).as_posix() for path in found) if name not in known)


# Notes on what a migration converted, dropped or assumed.


class NoteKind(Enum):
    """The kind of a note."""

    CONVERTED = "converted"
    DROPPED = "dropped"
    GUESSED = "guessed"
    NOW_EFFECTIVE = "now effective"


@dataclass(frozen=True, slots=True)
class Note:
    """A note on one change; `file` is relative to the case.

    NOW_EFFECTIVE: the older program ignored it, so that costs may differ now.
    """

    kind: NoteKind
    file: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.file}: {self.text}"


class Notes:
    """Notes collected while a case is converted."""

    def __init__(self) -> None:
        self._notes: list[Note] = []

    def converted(self, file: str, text: str) -> None:
        """Note that something was converted without loss."""
        self._notes.append(Note(NoteKind.CONVERTED, file, text))

    def dropped(self, file: str, text: str) -> None:
        """Note that something was dropped, because the new format cannot express it."""
        self._notes.append(Note(NoteKind.DROPPED, file, text))

    def guessed(self, file: str, text: str) -> None:
        """Note an assumption about something that the old case does not define."""
        self._notes.append(Note(NoteKind.GUESSED, file, text))

    def now_effective(self, file: str, text: str) -> None:
        """Note that something has an effect now and had none before."""
        self._notes.append(Note(NoteKind.NOW_EFFECTIVE, file, text))

    def all(self) -> tuple[Note, ...]:
        """All notes, in the order in which they were made."""
        return tuple(self._notes)


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """The result of a migration: directories, notes, and the problems of the new case."""

    old: Path
    new: Path
    notes: tuple[Note, ...]
    problems: tuple[CaseProblem, ...]

    def __str__(self) -> str:
        lines = [f"{self.old} -> {self.new}", *(f"  {note}" for note in self.notes)]
        return "\n".join([*lines, *(f"  still to be looked at: {problem}" for problem in self.problems)])


# Arithmetic on calendar months.


def first_of_month(day: date) -> date:
    """The first day of the month of a day."""
    return day.replace(day=1)


def month_after(day: date) -> date:
    """The first day of the next month."""
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def is_month(start: date, end: date) -> bool:
    """Whether a period is exactly one calendar month."""
    return start.day == 1 and end == month_after(start)


# Remove keys that the new format refuses and the older program ignored.


UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")

RECORDS: Mapping[str, type[JsonFile]] = {
    CONFIG_FILE: ConfigFile,
    stages_file.FILE: stages_file.StagesFile,
    entities.CONDITIONS_FILE: entities.InitialConditionsFile,
    entities.PENALTIES_FILE: entities.PenaltiesFile,
    entities.BUSES: entities.BusesFile,
    entities.LINES: entities.LinesFile,
    entities.HYDROS: entities.HydrosFile,
    entities.THERMALS: entities.ThermalsFile,
    entities.SOURCES: entities.SourcesFile,
    entities.STATIONS: entities.StationsFile,
    entities.CONTRACTS: entities.ContractsFile,
    production_models.FILE: production_models.ProductionFile,
    stages_file.LOAD_FILE: stages_file.LoadFactorsFile,
    stages_file.SOURCE_FILE: stages_file.SourceFactorsFile,
    correlation_file.FILE: correlation_file.CorrelationFile,
}


def drop_unknown_keys(case: OldCase, notes: Notes) -> None:
    """Drop the keys that no record of the new format has, and note each."""
    for file, content in case.documents.items():
        content.pop("$schema", None)
        record = RECORDS.get(file)
        for path in _unknown(record, content) if record else ():
            _remove(content, path)
            notes.dropped(file, f"{_dotted(path)}, which is not a field of the format")


def _unknown(record: type[JsonFile], content: Any) -> list[tuple[str | int, ...]]:
    try:
        record.model_validate_json(json.dumps(content))
    except ValidationError as error:
        found = [details for details in error.errors(include_url=False) if details["type"] in UNKNOWN]
        return [path_in_file(content, details) for details in found]
    return []


def _remove(content: Any, path: tuple[str | int, ...]) -> None:
    node = content
    for part in path[:-1]:
        node = node[part]
    node.pop(path[-1], None)


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path)

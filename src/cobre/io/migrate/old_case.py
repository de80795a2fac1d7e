"""A case of the 0.5 format: JSON objects and Arrow tables, unchecked."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.io.case_folder.case_files import FOLDERS, OPTIONAL_JSON, REQUIRED_JSON, check_files
from cobre.io.case_folder.old_format import is_old_format
from cobre.io.decoding.json_documents import read_document
from cobre.io.findings.problems import Layer, Problems
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

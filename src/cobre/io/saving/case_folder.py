"""`save_case`: all files of a case, written whole or not at all."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cobre.core.case import Case
from cobre.io.atomic import new_directory
from cobre.io.case import read_case
from cobre.io.problems import Problems
from cobre.io.saving.config_document import config_document
from cobre.io.saving.constraint_documents import constraint_documents
from cobre.io.saving.scenario_documents import scenario_documents
from cobre.io.saving.study_documents import study_documents
from cobre.io.saving.tables import write_tables


def save_case(case: Case, folder: str | Path) -> Path:
    """Write a case to a new or empty directory, in the current format; `load_case` then gives an equal case.

    The name of a case is that of its directory. Raises WriteError when something is in the directory already, and
    InvalidCaseError with everything that is wrong when the case could not be loaded again; then nothing is written.
    """
    target = Path(folder)
    with new_directory(target) as place:
        for name, content in _documents(case):
            _write(place / name, content)
        write_tables(case, place)
        problems = Problems()
        read_case(place, problems)
        problems.raise_errors(str(target))
    return target


def _documents(case: Case) -> Iterator[tuple[str, Any]]:
    yield "config.json", config_document(case.config)
    yield from study_documents(case)
    yield from scenario_documents(case.scenarios)
    yield from constraint_documents(case.generic_constraints)


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")

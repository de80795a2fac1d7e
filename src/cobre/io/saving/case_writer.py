"""`save_case`: all files of a case, written completely or not at all."""

from pathlib import Path

from cobre.core.case import Case
from cobre.io.case import read_case
from cobre.io.findings.problems import Problems
from cobre.io.saving.checking import canonical_case
from cobre.io.saving.documents import case_documents
from cobre.io.saving.tables import write_tables
from cobre.io.storage.atomic import new_directory


def save_case(case: Case, folder: str | Path) -> Path:
    """Write a case to a new or empty directory, in the current format; `load_case` then gives an equal case.

    The name of a case is that of its directory. Raises WriteError if the directory is not empty, and
    InvalidCaseError with all errors if the case could not be loaded again; then nothing is written.
    """
    target = Path(folder)
    case = canonical_case(case, str(target))
    with new_directory(target) as staged:
        for name, text in case_documents(case):
            _write(staged / name, text)
        write_tables(case, staged)
        problems = Problems()
        read_case(staged, problems)
        problems.raise_errors(str(target))
    return target


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")

"""The functions of `cobre.io` for scripts: an overview of a case, and its problems as dictionaries."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cobre.core.system_overview import System, system_of
from cobre.errors import CaseIoError
from cobre.io.case import load_case as load_whole_case
from cobre.io.findings.problems import CaseProblem


def load_case(path: str | Path) -> System:
    """The counts and entities of a case; `cobre.load_case` returns all of it.

    Raises CaseIoError if there is no such directory, and ValidationError with all errors of the case.
    """
    check_folder(path)
    return system_of(load_whole_case(path))


def as_findings(problems: Iterable[CaseProblem]) -> dict[str, Any]:
    """Problems as dictionaries: kind, message, file, and entity and field (None for a problem of the file)."""
    found = list(problems)
    errors = [_finding(problem) for problem in found if not problem.is_warning]
    warnings = [_finding(problem) for problem in found if problem.is_warning]
    return {"valid": not errors, "errors": errors, "warnings": warnings}


def check_folder(path: str | Path) -> None:
    """Raise CaseIoError unless there is a directory."""
    if not Path(path).is_dir():
        what = "is not a directory" if Path(path).exists() else "does not exist"
        raise CaseIoError(f"case directory {what}: {path}")


def _finding(problem: CaseProblem) -> dict[str, Any]:
    return {
        "kind": problem.layer.value,
        "message": str(problem),
        "file": problem.file,
        "entity": problem.entity or None,
        "field": problem.field or None,
    }

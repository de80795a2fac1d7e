"""The functions of `cobre.io` for scripts: an overview of a case, and its findings as dictionaries."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cobre.core.system_overview import System, system_of
from cobre.errors import CaseIoError
from cobre.io.case import load_case as load_whole_case
from cobre.io.findings.finding import Finding


def load_case(path: str | Path) -> System:
    """Return the counts and entities of a case; `cobre.load_case` returns all of it.

    Raises CaseIoError if there is no such directory, and ValidationError with all errors of the case.
    """
    check_folder(path)
    return system_of(load_whole_case(path))


def as_findings(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return findings as dictionaries: kind (the layer), code, message, file, entity, field, value, expected, remedy.

    Entity and field are None for a finding on the file.
    """
    found = list(findings)
    errors = [_as_dict(finding) for finding in found if not finding.is_warning]
    warnings = [_as_dict(finding) for finding in found if finding.is_warning]
    return {"valid": not errors, "errors": errors, "warnings": warnings}


def check_folder(path: str | Path) -> None:
    """Raise CaseIoError unless there is a directory."""
    if not Path(path).is_dir():
        what = "is not a directory" if Path(path).exists() else "does not exist"
        raise CaseIoError(f"case directory {what}: {path}")


def _as_dict(finding: Finding) -> dict[str, Any]:
    plain = finding.as_dict()
    return {
        "kind": plain["layer"],
        "code": plain["code"],
        "message": str(finding),
        "file": finding.file,
        "entity": finding.entity or None,
        "field": finding.field or None,
        "value": plain["value"],
        "expected": plain["expected"],
        "remedy": plain["remedy"],
    }

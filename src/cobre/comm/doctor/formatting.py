"""Formats a diagnosis as text of 80 columns, or as JSON."""

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict

from cobre.comm.doctor.findings import BackendStatus, Diagnosis, Finding

COLUMNS = 80
INDENT = "  "
NAME_WIDTH = 13


def as_json(diagnosis: Diagnosis) -> str:
    """The diagnosis as a JSON object, for programs."""
    return json.dumps({"healthy": diagnosis.is_healthy, **asdict(diagnosis)}, indent=2)


def as_text(diagnosis: Diagnosis) -> str:
    """The diagnosis as text, with advice after an arrow."""
    return "\n".join(_lines(diagnosis))


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    yield "Backends"
    for status in diagnosis.backends:
        yield from _status(status)
    yield from ("", "Selected backend")
    yield from _finding(diagnosis.selection)
    for title, findings in diagnosis.sections.items():
        yield from ("", title)
        for finding in findings:
            yield from _finding(finding)


def _status(status: BackendStatus) -> Iterator[str]:
    usable = "usable" if status.is_usable else "not usable"
    yield from _entry(f"{status.backend:5}", f"{usable}: {status.reason}")
    yield from _advice(status.advice)


def _finding(finding: Finding) -> Iterator[str]:
    yield from _entry(finding.name, finding.text)
    yield from _advice(finding.advice)


def _entry(name: str, text: str) -> Iterator[str]:
    yield from _wrap(f"{INDENT}{name:{NAME_WIDTH}}", text)


def _advice(text: str) -> Iterator[str]:
    if text:
        yield from _wrap(INDENT + " " * NAME_WIDTH + "-> ", text)


def _wrap(head: str, text: str) -> list[str]:
    # Paths and commands are not broken, so that they can be copied.
    return textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )

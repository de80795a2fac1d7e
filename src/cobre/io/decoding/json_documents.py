"""JSON files of a case, parsed, and checked for invalid JSON, duplicate keys and numbers that are too large.

Light to import: the process that starts a run reads config.json before it loads anything else.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cobre.io.findings import Findings, Layer, about, error_code
from cobre.io.storage.confined import read_untrusted
from cobre.io.storage.stored_json import is_shallow
from cobre.records import dataclass

MISSING_FILE = error_code("missing-file", Layer.STRUCTURE, "the file is missing", remedy="every case needs it")
NOT_UTF8 = error_code("not-utf8", Layer.STRUCTURE, "is not UTF-8 text", remedy="save it as UTF-8")
UNREADABLE_FILE = error_code("unreadable-file", Layer.STRUCTURE, "cannot be read: {value}", expected="a readable file")

DIRECTORY_NOT_FILE = error_code(
    "directory-not-file", Layer.STRUCTURE, "is a directory, not a file", remedy="replace it by {needed}"
)

INVALID_JSON = error_code(
    "invalid-json", Layer.STRUCTURE, "is not valid JSON: {value}", expected="a complete JSON object"
)

TRUNCATED_JSON = error_code(
    "truncated-json",
    Layer.STRUCTURE,
    "the file ends before its JSON object is complete",
    expected="a complete JSON object",
)

EMPTY_FILE = error_code("empty-file", Layer.STRUCTURE, "the file is empty", expected="{needed}")

DEEP_JSON = error_code(
    "deep-json", Layer.STRUCTURE, "is nested too deeply", expected="a JSON object of the case format"
)

DUPLICATE_KEY = error_code(
    "duplicate-key", Layer.SCHEMA, "the key appears twice in one object", remedy="keep one of them"
)

MAX_DIGITS = 30
MAX_DOCUMENT_BYTES = 1 << 26
"""Largest JSON file of a case: it takes some 30 times its size in memory. The largest of official decks has 5 MB."""

MIN_SCANNED_CHARACTERS = 1 << 12
"""Shorter texts are checked in Python, so that small cases and launchers need no native code for them."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON file that could be parsed; `name` is relative to the case.

    is_ordinary: the text is known to have no duplicate keys, no deep nesting, no number of ten digits before the point
    or with a positive exponent, no infinity, and no key `..._date` without an ISO date. False: not known.
    """

    name: str
    content: Any
    text: str
    is_ordinary: bool = False


def read_document(folder: Path, name: str, findings: Findings, *, is_required: bool = False) -> Document | None:
    """Return the parsed file, or None if it is missing (an error if `is_required`) or not valid JSON."""
    path = folder / name
    if not path.exists():
        if is_required:
            findings.add(MISSING_FILE, name)
        return None
    text = _read_text(path, name, findings)
    return None if text is None else _parse(name, text, findings)


def rewritten(document: Document, content: Any) -> Document:
    """Return the same file with another content."""
    return Document(document.name, content, json.dumps(content))


def _read_text(path: Path, name: str, findings: Findings) -> str | None:
    try:
        return read_untrusted(path, MAX_DOCUMENT_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        findings.add(NOT_UTF8, name, about("byte", error.start))
    except OSError as error:
        report_unreadable(name, error, "a JSON file", findings)
    return None


def report_unreadable(name: str, error: OSError, needed: str, findings: Findings) -> None:
    """Add the error of a file that cannot be opened; needed: what should be in its place."""
    if isinstance(error, IsADirectoryError):
        findings.add(DIRECTORY_NOT_FILE, name, needed=needed)
    else:
        findings.add(UNREADABLE_FILE, name, value=error.strerror)


def _parse(name: str, text: str, findings: Findings) -> Document | None:
    duplicates: list[str] = []
    is_ordinary = _is_ordinary(text)
    try:
        if is_ordinary:
            return Document(name, json.loads(text), text, is_ordinary)
        content = json.loads(text, object_pairs_hook=_collecting(duplicates), parse_int=_parse_integer)
    except json.JSONDecodeError as error:
        where = about("line", error.lineno, "column", error.colno)
        if text[error.pos :].strip():
            reason = _trailing_comma(text, error.pos) or error.msg.lower()
            findings.add(INVALID_JSON, name, where, value=reason)
        elif text.strip():
            findings.add(TRUNCATED_JSON, name, where)
        else:
            findings.add(EMPTY_FILE, name, where, needed="a complete JSON object")
        return None
    except RecursionError:
        findings.add(DEEP_JSON, name)
        return None
    if not is_shallow(content):
        findings.add(DEEP_JSON, name)
        return None
    for key in duplicates:
        findings.add(DUPLICATE_KEY, name, (), key)
    return Document(name, content, text)


def _is_ordinary(text: str) -> bool:
    """Return whether native code has found nothing in a text that needs a closer look: a fifth of the time of one."""
    if len(text) < MIN_SCANNED_CHARACTERS:
        return False
    from cobre._native import is_ordinary_json  # noqa: PLC0415  (short texts do without)

    return is_ordinary_json(text)


def _trailing_comma(text: str, position: int) -> str:
    """Return the reason of the most frequent mistake in JSON, which the parser calls an unexpected character."""
    before = text[:position].rstrip()
    ends_list = text[position : position + 1] in ("]", "}")
    return "a comma before a closing bracket" if before.endswith(",") and ends_list else ""


def _parse_integer(digits: str) -> int | float:
    """Return an integer, or a float if it has more than `MAX_DIGITS` digits; refused later, by the field's name."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def _collecting(duplicates: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) < len(pairs):
            keys = [key for key, _ in pairs]
            duplicates.extend(sorted({key for key in keys if keys.count(key) > 1}))
        return built

    return build

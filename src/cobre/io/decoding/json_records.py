"""Documents of a case decoded into records, with every violation of their schema reported."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from math import inf
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.schema_errors import (
    INVALID_DATE,
    NUMBER_OUT_OF_RANGE,
    FileLocation,
    report_schema_errors,
)
from cobre.io.findings import Code, Findings
from cobre.limits import MAX_NUMBER

ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# What every text has in which a leaf may be wrong, and hardly any other: whole parts of ten digits, exponents above
# zero, infinities, a key of a date without an ISO date, and escapes, in which any of these may hide.
SUSPICIOUS = re.compile(
    r'(?<![.0-9])[0-9]{10}|[0-9][eE]\+?[0-9]|Infinity|\\u|_date"(?!\s*:\s*"[0-9]{4}-[0-9]{2}-[0-9]{2}")'
)
INT32_LIMIT = 2**31


class JsonFile(BaseModel):
    """Base of all file records: unknown keys are refused, types are strict, `$schema` is allowed at the root."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True, defer_build=True)
    schema_url: str | None = Field(default=None, alias="$schema")


AnyFile = TypeVar("AnyFile", bound=JsonFile)


def decode(document: Document | None, record: type[AnyFile], findings: Findings) -> AnyFile | None:
    """Return the file as a record, or None if it violates its schema; each violation is added to `findings`."""
    if document is None:
        return None
    start = len(findings.errors)
    is_suspicious = not document.is_ordinary and SUSPICIOUS.search(document.text) is not None
    wrong = _wrong_leaves(document.content) if is_suspicious else {}
    for path, (code, facts) in wrong.items():
        location = FileLocation.of(document.content, path)
        findings.add(code, document.name, location.subject, location.field, **facts)
    try:
        decoded = record.model_validate_json(_decodable(document) if is_suspicious else document.text)
    except ValidationError as error:
        report_schema_errors(document.name, document.content, error, record, findings, reported=wrong)
        return None
    return decoded if len(findings.errors) == start else None


def build_decoders() -> None:
    """Build all decoders now, instead of on first use, so that forked processes share them."""
    for record in JsonFile.__subclasses__():
        record.model_rebuild()


WrongLeaf = tuple[Code, dict[str, Any]]


def _wrong_leaves(content: Any) -> dict[tuple[str | int, ...], WrongLeaf]:
    """Return errors by path that the decoder misses: ids beyond 32 bits, huge numbers, dates not in ISO form."""
    leaves: dict[tuple[str | int, ...], WrongLeaf] = {}
    for path, value in _leaves(content, ()):
        key = next((part for part in reversed(path) if isinstance(part, str)), "")
        what = _wrong_leaf(key, value)
        if what:
            leaves[path] = what
    return leaves


def _decodable(document: Document) -> str:
    """Return the text for the decoder, with 0 for infinite numbers, which are reported already and would stop it."""
    too_large = [path for path, value in _leaves(document.content, ()) if value in (inf, -inf)]
    if not too_large:
        return document.text
    content = deepcopy(document.content)
    for path in too_large:
        holder = content
        for part in path[:-1]:
            holder = holder[part]
        holder[path[-1]] = 0
    return json.dumps(content)


def _wrong_leaf(key: str, value: Any) -> WrongLeaf | None:
    if key.endswith("_date") and isinstance(value, str) and not ISO_DATE.fullmatch(value):
        return INVALID_DATE, {"value": value, "shown": repr(value), "wanted": "a date like 2024-01-31"}
    is_id = key == "id" or key.endswith("_id")
    if is_id and type(value) is int and not -INT32_LIMIT < value < INT32_LIMIT:
        return NUMBER_OUT_OF_RANGE, {"value": value, "shown": str(value), "wanted": "an id of at most 32 bits"}
    if isinstance(value, (int, float)) and abs(value) > MAX_NUMBER:
        shown = "too large" if abs(value) == inf else f"{value:g}"
        expected = f"a number between -{MAX_NUMBER:g} and {MAX_NUMBER:g}"
        return NUMBER_OUT_OF_RANGE, {"value": shown, "shown": shown, "wanted": expected}
    return None


def _leaves(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield values other than objects and arrays, with their paths: a list of them takes a hundred times the file."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _leaves(value, (*path, index))
    else:
        yield path, node

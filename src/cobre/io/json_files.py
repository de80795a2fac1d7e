"""JSON files of a case: read as text, checked for what JSON itself forbids or hides, then decoded into records."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cobre.io.magnitudes import LARGEST_NUMBER
from cobre.io.problems import Layer, Problems
from cobre.io.schema_messages import Place, report_schema_errors
from cobre.io.untrusted_file import read_untrusted

ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
INT32_LIMIT = 2**31
MOST_DIGITS = 30


class JsonFile(BaseModel):
    """What all files share: unknown keys are refused, types are strict, `$schema` is allowed at the root."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True, defer_build=True)
    schema_url: str | None = Field(default=None, alias="$schema")


AnyFile = TypeVar("AnyFile", bound=JsonFile)


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON file that could be parsed; `name` is relative to the case."""

    name: str
    content: Any
    text: str


def read_document(folder: Path, name: str, problems: Problems, *, is_required: bool = False) -> Document | None:
    """The parsed file, or None when it is not there or not JSON. Only a required file must be there."""
    path = folder / name
    if not path.exists():
        if is_required:
            problems.error(Layer.STRUCTURE, name, "", "", "the file is missing", "every case needs it")
        return None
    text = _read_text(path, name, problems)
    return None if text is None else _parse(name, text, problems)


def decode(document: Document | None, record: type[AnyFile], problems: Problems) -> AnyFile | None:
    """The file as a record, or None when its schema is violated; every violation is reported."""
    if document is None:
        return None
    known = len(problems.errors)
    _check_numbers_and_dates(document, problems)
    try:
        decoded = record.model_validate_json(document.text)
    except ValidationError as error:
        report_schema_errors(document.name, document.content, error, record, problems)
        return None
    return decoded if len(problems.errors) == known else None


def build_decoders() -> None:
    """Build now what is otherwise built when a file of its kind is first decoded: for processes that will be forked."""
    for record in JsonFile.__subclasses__():
        record.model_rebuild()


def rewritten(document: Document, content: Any) -> Document:
    """The same file with another content."""
    return Document(document.name, content, json.dumps(content))


def _read_text(path: Path, name: str, problems: Problems) -> str | None:
    try:
        return read_untrusted(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problems.error(Layer.STRUCTURE, name, f"byte {error.start}", "", "is not UTF-8 text", "save it as UTF-8")
    except OSError as error:
        problems.error(Layer.STRUCTURE, name, "", "", f"cannot be read: {error.strerror}", "a readable file")
    return None


def _parse(name: str, text: str, problems: Problems) -> Document | None:
    duplicates: list[str] = []
    try:
        content = json.loads(text, object_pairs_hook=_collecting(duplicates), parse_int=_whole)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        ends = not text[error.pos :].strip()
        what = f"is not JSON: {error.msg.lower()}"
        if ends:
            what = "the file ends before its JSON object is complete" if text.strip() else "the file is empty"
        problems.error(Layer.STRUCTURE, name, where, "", what, "a whole JSON object")
        return None
    except RecursionError:
        problems.error(Layer.STRUCTURE, name, "", "", "is nested too deeply", "a JSON object of the case format")
        return None
    for key in duplicates:
        problems.error(Layer.SCHEMA, name, "", key, "the key appears twice in one object", "keep one of them")
    return Document(name, content, text)


def _whole(digits: str) -> int | float:
    """A number of more digits than anything has is as good as infinite: its size is refused by the field's name."""
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


def _collecting(duplicates: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) < len(pairs):
            keys = [key for key, _ in pairs]
            duplicates.extend(sorted({key for key in keys if keys.count(key) > 1}))
        return built

    return build


def _check_numbers_and_dates(document: Document, problems: Problems) -> None:
    """Ids have 32 bits; dates are written in one way (the decoder alone would take seconds since 1970 too)."""
    for path, value in _leaves(document.content, ()):
        key = next((part for part in reversed(path) if isinstance(part, str)), "")
        what = _wrong_leaf(key, value)
        if what:
            place = Place.of(document.content, path)
            problems.error(Layer.SCHEMA, document.name, place.entity, place.field, *what)


def _wrong_leaf(key: str, value: Any) -> tuple[str, str] | None:
    if key.endswith("_date") and isinstance(value, str) and not ISO_DATE.fullmatch(value):
        return f"is {value!r}", "a date like 2024-01-31"
    is_id = key == "id" or key.endswith("_id")
    if is_id and type(value) is int and not -INT32_LIMIT < value < INT32_LIMIT:
        return f"is {value}", "an id of at most 32 bits"
    if isinstance(value, (int, float)) and abs(value) > LARGEST_NUMBER:
        return f"is {value:g}", f"a number that means something: at most {LARGEST_NUMBER:g} in size"
    return None


def _leaves(node: Any, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], Any]]:
    if isinstance(node, dict):
        return [leaf for key, value in node.items() for leaf in _leaves(value, (*path, key))]
    if isinstance(node, list):
        return [leaf for index, value in enumerate(node) for leaf in _leaves(value, (*path, index))]
    return [(path, node)]

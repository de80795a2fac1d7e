"""Documents of a case decoded into records, with every violation of their schema reported."""

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cobre.io.json_documents import Document
from cobre.io.magnitudes import LARGEST_NUMBER
from cobre.io.problems import Layer, Problems
from cobre.io.schema_messages import FilePlace, report_schema_errors

ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
INT32_LIMIT = 2**31


class JsonFile(BaseModel):
    """What all files share: unknown keys are refused, types are strict, `$schema` is allowed at the root."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True, defer_build=True)
    schema_url: str | None = Field(default=None, alias="$schema")


AnyFile = TypeVar("AnyFile", bound=JsonFile)


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


def _check_numbers_and_dates(document: Document, problems: Problems) -> None:
    """Ids have 32 bits; dates are written in one way (the decoder alone would take seconds since 1970 too)."""
    for path, value in _leaves(document.content, ()):
        key = next((part for part in reversed(path) if isinstance(part, str)), "")
        what = _wrong_leaf(key, value)
        if what:
            place = FilePlace.of(document.content, path)
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

"""Messages for schema violations: entity, field, value found and value expected."""

from collections.abc import Container, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cobre.io.findings.field_names import enclosing_fields, known_fields
from cobre.io.findings.problems import Layer, Problems
from cobre.io.findings.renamed_fields import replacement_of
from cobre.records import dataclass

# Names of the elements of an array at the root of a file.
ENTITY_NAMES: Mapping[str, str] = {
    "buses": "bus",
    "lines": "line",
    "hydros": "hydro",
    "thermals": "thermal",
    "non_controllable_sources": "non-controllable source",
    "pumping_stations": "pumping station",
    "contracts": "contract",
    "stages": "stage",
    "pre_study_stages": "pre-study stage",
    "production_models": "production model of hydro",
    "storage": "storage of hydro",
    "filling_storage": "filling storage of hydro",
    "recent_observations": "observation of hydro",
    "load_factors": "load factors of bus",
    "non_controllable_factors": "factors of source",
    "constraints": "constraint",
    "scalar_parameters": "parameter",
}
ID_KEYS = ("id", "hydro_id", "bus_id", "ncs_id", "name")

UNITS: Mapping[str, str] = {
    "_mw": "a number (MW)",
    "_m3s": "a number (m3/s)",
    "_hm3": "a number (hm3)",
    "_mwh": "a number ($/MWh)",
    "_cost": "a number",
    "_hours": "a number of hours",
    "hours": "a number of hours",
    "_seconds": "a number of seconds",
    "_percent": "a number (percent)",
    "_date": "a date like 2024-01-31",
    "_id": "a whole number",
    "id": "a whole number",
    "name": "a string",
}


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A location in a file, for messages: an entity, and a field of it."""

    entity: str
    field: str

    @staticmethod
    def of(content: Any, path: tuple[str | int, ...]) -> "FileLocation":
        """The location of a path of keys and indices."""
        if len(path) >= 2 and isinstance(path[0], str) and isinstance(path[1], int):
            return FileLocation(_entity(content, path[0], path[1]), _dotted(path[2:]))
        return FileLocation("", _dotted(path))


def report_schema_errors(
    file: str,
    content: Any,
    error: ValidationError,
    record: type[BaseModel],
    problems: Problems,
    *,
    reported: Container[tuple[str | int, ...]] = (),
) -> None:
    """Add one error for each violation, except at paths that were reported before."""
    for details in error.errors(include_url=False):
        path = path_in_file(content, details)
        if path in reported:
            continue
        location = FileLocation.of(content, path)
        if not (location.entity or location.field):
            location = FileLocation("", "(the whole file)")
        message, remedy = _message(file, path, details, record)
        problems.error(Layer.SCHEMA, file, location.entity, location.field, message, remedy)


def _entity(content: Any, array: str, index: int) -> str:
    word = ENTITY_NAMES.get(array)
    element = content[array][index] if isinstance(content, dict) else None
    if word is None or not isinstance(element, dict):
        return f"{array}[{index}]"
    identity = next((element[key] for key in ID_KEYS if key in element), None)
    if identity is None:
        return f"{array}[{index}]"
    name = element.get("name")
    return f"{word} {identity} ({name})" if isinstance(name, str) and identity != name else f"{word} {identity}"


def _dotted(path: tuple[str | int, ...]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def path_in_file(content: Any, details: ErrorDetails) -> tuple[str | int, ...]:
    """The path of a violation in the file: its location without the names of union alternatives."""
    path: list[str | int] = []
    node, is_at_end = content, False
    names_a_key = details["type"] in ("missing", "extra_forbidden", "unexpected_keyword_argument")
    for position, part in enumerate(details["loc"]):
        is_at_end = position == len(details["loc"]) - 1
        if _leads_on(node, part):
            node = node[part]
        elif not (is_at_end and names_a_key):
            continue
        path.append(part)
    return tuple(path)


def _leads_on(node: Any, part: str | int) -> bool:
    if isinstance(node, list):
        return isinstance(part, int) and part < len(node)
    return isinstance(node, dict) and part in node


def _message(file: str, path: tuple[str | int, ...], details: ErrorDetails, record: type[BaseModel]) -> tuple[str, str]:
    """The message on a violation, and the remedy."""
    kind, value = details["type"], details["input"]
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    if kind == "missing":
        return "is missing", f"add {_expected_by_name(name)}"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return "is not a field of the format", _advice_on_unknown(file, path, name, record)
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _tag_message(details)
    return f"is {_formatted(value)}", _expected(kind, details.get("ctx", {}), name)


def _expected(kind: str, context: Mapping[str, Any], name: str) -> str:
    by_name = _expected_by_name(name)
    if kind == "float_type":
        return by_name if by_name.startswith("a number") else "a number"
    return EXPECTED[kind].format(**context).replace("'", "") if kind in EXPECTED else by_name


def _tag_message(details: ErrorDetails) -> tuple[str, str]:
    context = details.get("ctx", {})
    key = str(context.get("discriminator", "")).strip("'")
    choices = str(context.get("expected_tags", "")).replace("'", "")
    if details["type"] == "union_tag_not_found":
        return f"has no `{key}`", "add it; the reference of the case format lists its values"
    return f"`{key}` is {_formatted(context.get('tag'))}", f"one of {choices}"


def _expected_by_name(name: str) -> str:
    return next((expected for ending, expected in UNITS.items() if name.endswith(ending)), "a value of the right type")


def _advice_on_unknown(file: str, path: tuple[str | int, ...], name: str, record: type[BaseModel]) -> str:
    replacement = replacement_of(file, path)
    if replacement:
        return replacement
    *keys, _ = (part for part in path if isinstance(part, str))
    near = _nearest(name, enclosing_fields(record, tuple(keys))) or _nearest(name, known_fields(record))
    if near == name:
        return "it belongs to another object of this file: move or remove it"
    return f"did you mean `{near}`?" if near else "remove it"


def _nearest(name: str, known: tuple[str, ...]) -> str | None:
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.75)), None)


def _formatted(value: Any) -> str:
    """A JSON value for a message: objects and arrays by type, long values shortened to 60 characters."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# By kind of violation: the expected value; names in braces are filled in from the violation.
EXPECTED: Mapping[str, str] = {
    "int_type": "a whole number",
    "int_parsing_size": "a whole number of at most 64 bits",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a string",
    "date_type": "a date like 2024-01-31",
    "date_parsing": "a date of the calendar, like 2024-01-31",
    "date_from_datetime_parsing": "a date of the calendar, like 2024-01-31",
    "date_from_datetime_inexact": "a date without a time, like 2024-01-31",
    "tuple_type": "an array",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "literal_error": "{expected}",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "at most {le}",
    "too_short": "an array of at least {min_length}",
    "too_long": "an array of at most {max_length}",
}

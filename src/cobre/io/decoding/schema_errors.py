"""Findings on schema violations: subject, field, value found and value expected."""

import re
from collections import Counter
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from cobre.core.file_names import (
    CONDITIONS_FILE,
    CONFIG_FILE,
    HYDROS_FILE,
    PENALTIES_FILE,
    PRODUCTION_FILE,
    STAGES_FILE,
    THERMALS_FILE,
)
from cobre.core.setting_types import Choice
from cobre.io.findings import (
    THE_FILE,
    Code,
    Findings,
    Layer,
    Part,
    Subject,
    error_code,
    label,
)
from cobre.records import dataclass

# Names of the fields of records, to suggest corrections of misspelt ones.


@cache
def known_fields(record: type[BaseModel]) -> tuple[str, ...]:
    """Return names of the fields of a record and of the records in it, at any depth, as files spell them."""
    names: dict[str, None] = {}
    _collect(record, names, set())
    return tuple(names)


@cache
def enclosing_fields(record: type[BaseModel], keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of the fields of the record that keys lead to, of all its alternatives; none if unknown."""
    records = [record]
    for key in keys:
        hints = [hint for kind in records if (hint := _fields(kind).get(key)) is not None]
        records = [kind for hint in hints for kind in _records_in(hint)]
    return tuple(dict.fromkeys(name for kind in records for name in _fields(kind)))


def _collect(hint: Any, names: dict[str, None], visited: set[Any]) -> None:
    for record in _records_in(hint):
        if record in visited:
            continue
        visited.add(record)
        for name, inner in _fields(record).items():
            names[name] = None
            _collect(inner, names, visited)


def _records_in(hint: Any) -> Iterator[type[Any]]:
    """Yield the classes of records in a type hint: of a union all, of an array that of its elements."""
    if _is_record(hint):
        yield hint
        return
    for part in get_args(hint):
        if isinstance(part, Choice):
            yield from part.classes(get_args(hint)[0])
        yield from _records_in(part)


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and (issubclass(hint, BaseModel) or is_dataclass(hint))


def _fields(record: type[Any]) -> Mapping[str, Any]:
    """Return type hints of the fields of a record, by their names in files."""
    if issubclass(record, BaseModel):
        return {info.alias or name: info.annotation for name, info in record.model_fields.items()}
    hints = get_type_hints(record, include_extras=True)
    return {_alias(hints[item.name]) or item.name: hints[item.name] for item in fields(record)}


def _alias(hint: Any) -> str | None:
    return next((part.alias for part in get_args(hint) if isinstance(part, FieldInfo) and part.alias), None)


# Renamed and removed fields of older formats.

# By file and key: the replacement.
RENAMED: Mapping[tuple[str, str], str] = {
    (CONFIG_FILE, "forward_passes"): 'now training.selection: {"method": "sampled", "forward_passes": N}',
    (CONFIG_FILE, "forward_pass"): "no longer used: remove it",
    (CONFIG_FILE, "cut_formulation"): "no longer used: remove it",
    (CONFIG_FILE, "num_scenarios"): 'now simulation.selection: {"method": "sampled", "num_scenarios": N}',
    (CONFIG_FILE, "policy_type"): "no longer used: remove it",
    (CONFIG_FILE, "output_path"): "no longer used: remove it: the output directory is an argument of the run",
    (CONFIG_FILE, "output_mode"): "no longer used: remove it",
    (CONFIG_FILE, "penalty_cost"): "now hydro.inflow_nonnegativity_cost in penalties.json",
    (CONFIG_FILE, "source_stage"): "no longer used: remove it: the stage is found by its date",
    (CONFIG_FILE, "validate_compatibility"): "now `strict`",
    (STAGES_FILE, "num_scenarios"): "now `num_openings`",
    (STAGES_FILE, "scenario_source"): "now training.scenario_source in config.json",
    (PENALTIES_FILE, "fpha_turbined_cost"): "now `turbined_cost`, charged on every plant",
    (CONDITIONS_FILE, "past_inflows"): "now dated windows in `recent_observations`",
    (HYDROS_FILE, "bus_id"): "now in `unit_groups`, one group per bus",
    (HYDROS_FILE, "productivity_mw_per_m3s"): "now in system/hydro_production_models.json",
    (HYDROS_FILE, "filling_inflow_m3s"): "now `filling_min_rate_m3s`",
    (HYDROS_FILE, "fpha_turbined_cost"): "now `turbined_cost`, charged on every plant",
    (THERMALS_FILE, "gnl_config"): "now `anticipated_config`",
    (PRODUCTION_FILE, "productivity_override"): "now `productivity_mw_per_m3s`",
}


def replacement_of(file: str, path: tuple[str | int, ...]) -> str:
    """Return advice on a key of an older format; empty for other keys."""
    return RENAMED.get((file, str(path[-1])), "") if path else ""


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

# Codes of schema violations.

MISSING_FIELD = error_code("missing-field", Layer.SCHEMA, "is missing", remedy="add {needed}")
UNKNOWN_FIELD = error_code("unknown-field", Layer.SCHEMA, "is not a field of the format", remedy="{advice}")
WRONG_TYPE = error_code("wrong-type", Layer.SCHEMA, "is {shown}", expected="{wanted}")
NUMBER_OUT_OF_RANGE = error_code("number-out-of-range", Layer.SCHEMA, "is {shown}", expected="{wanted}")
WRONG_LENGTH = error_code("wrong-length", Layer.SCHEMA, "is {shown}", expected="{wanted}")
INVALID_DATE = error_code("invalid-date", Layer.SCHEMA, "is {shown}", expected="{wanted}")
UNKNOWN_CHOICE = error_code("unknown-choice", Layer.SCHEMA, "is {shown}", expected="{choices}")

MISSING_KIND = error_code(
    "missing-kind",
    Layer.SCHEMA,
    "has no `{key}`",
    remedy="add it; the reference of the case format lists its values",
)

UNKNOWN_KIND = error_code("unknown-kind", Layer.SCHEMA, "`{key}` is {shown}", expected="one of {choices}")
DUPLICATE_ID = error_code("duplicate-id", Layer.SCHEMA, "is used {value} times", expected="a different one for each")
DUPLICATE_ENTRY = error_code("duplicate-entry", Layer.SCHEMA, "appears {value} times", remedy="keep one of them")


class Choices(tuple[str, ...]):
    """Values that a field may have, shown as `a, b or c`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> "Choices":
        """Return the choices that pydantic lists, such as `'a', 'b' or 'c'`."""
        return cls(re.findall(r"'([^']*)'", text) or [text])

    def __str__(self) -> str:
        return f"{', '.join(self[:-1])} or {self[-1]}" if len(self) > 1 else "".join(self)

    def __format__(self, _: str) -> str:
        return str(self)


class KindChoices(Choices):
    """Kinds that an object may be of, shown as `a, b, c`."""

    __slots__ = ()

    def __str__(self) -> str:
        return ", ".join(self)


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A location in a file: what it is about, and a field of it."""

    subject: Subject
    field: str

    @staticmethod
    def of(content: Any, path: tuple[str | int, ...]) -> "FileLocation":
        """Return the location of a path of keys and indices."""
        if len(path) >= 2 and isinstance(path[0], str) and isinstance(path[1], int):
            return FileLocation(_subject(content, path[0], path[1]), _dotted(path[2:]))
        return FileLocation(THE_FILE, _dotted(path))


def report_schema_errors(
    file: str,
    content: Any,
    error: ValidationError,
    record: type[BaseModel],
    findings: Findings,
    *,
    reported: Container[tuple[str | int, ...]] = (),
) -> None:
    """Add one error for each violation, except at paths that were reported before."""
    for details in error.errors(include_url=False):
        path = path_in_file(content, details)
        if path in reported:
            continue
        location = FileLocation.of(content, path)
        if not (location.subject or location.field):
            location = FileLocation(THE_FILE, "(the whole file)")
        code, facts = _violation(file, path, details, record)
        findings.add(code, file, location.subject, location.field, **facts)


def report_duplicates(
    file: str,
    kinds: str | tuple[str, ...],
    keys: Sequence[Hashable],
    findings: Findings,
    field: str = "id",
    within: Subject = THE_FILE,
) -> None:
    """Add one error for each key that occurs more than once.

    kinds: what the key identifies, one for each part of it. within: the entity that the keys belong to.
    """
    for key, count in Counter(keys).items():
        if count > 1:
            parts = key if isinstance(key, tuple) else (key,)
            named_by = kinds if isinstance(kinds, tuple) else (kinds,)
            subject = (*within, *(Part(kind, part) for kind, part in zip(named_by, parts, strict=True)))
            code = DUPLICATE_ID if field == "id" else DUPLICATE_ENTRY
            findings.add(code, file, subject, field, value=count)


def _subject(content: Any, array: str, index: int) -> Subject:
    word = ENTITY_NAMES.get(array)
    element = content[array][index] if isinstance(content, dict) else None
    if word is None or not isinstance(element, dict):
        return label(f"{array}[{index}]")
    identity = next((element[key] for key in ID_KEYS if key in element), None)
    if identity is None:
        return label(f"{array}[{index}]")
    name = element.get("name")
    text = identity if type(identity) is int else str(identity)
    return (Part(word, text, name if isinstance(name, str) and identity != name else ""),)


def _dotted(path: tuple[str | int, ...]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def path_in_file(content: Any, details: ErrorDetails) -> tuple[str | int, ...]:
    """Return the path of a violation in the file: its location without the names of union alternatives."""
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


def _violation(
    file: str, path: tuple[str | int, ...], details: ErrorDetails, record: type[BaseModel]
) -> tuple[Code, dict[str, Any]]:
    """Return the code of a violation, and its facts."""
    kind, value = details["type"], details["input"]
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    if kind == "missing":
        return MISSING_FIELD, {"needed": _expected_by_name(name)}
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return UNKNOWN_FIELD, {"advice": _advice_on_unknown(file, path, name, record)}
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _violation_of_kind(details)
    context = details.get("ctx", {})
    facts = {"value": value if isinstance(value, str | int | float) else None, "shown": shown_value(value)}
    if kind == "literal_error":
        return UNKNOWN_CHOICE, facts | {"choices": Choices.parse(str(context["expected"]))}
    by_name = _expected_by_name(name)
    if kind == "float_type":
        return WRONG_TYPE, facts | {"wanted": by_name if by_name.startswith("a number") else "a number"}
    code, expected = EXPECTED.get(kind, (WRONG_TYPE, by_name))
    return code, facts | {"wanted": expected.format(**context)}


def _violation_of_kind(details: ErrorDetails) -> tuple[Code, dict[str, Any]]:
    context = details.get("ctx", {})
    key = str(context.get("discriminator", "")).strip("'")
    if details["type"] == "union_tag_not_found":
        return MISSING_KIND, {"key": key}
    tag, choices = context.get("tag"), KindChoices.parse(str(context.get("expected_tags", "")))
    return UNKNOWN_KIND, {"key": key, "value": tag, "shown": shown_value(tag), "choices": choices}


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


def _nearest(name: str, names: tuple[str, ...]) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415  (only for errors)

    return next(iter(get_close_matches(name, names, n=1, cutoff=0.75)), None)


def shown_value(value: Any) -> str:
    """Return a JSON value for a message: objects and arrays by type, long values shortened to 60 characters."""
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


# By kind of violation: its code and the expected value; names in braces are filled in from the violation.
EXPECTED: Mapping[str, tuple[Code, str]] = {
    "int_type": (WRONG_TYPE, "a whole number"),
    "int_parsing_size": (NUMBER_OUT_OF_RANGE, "a whole number of at most 64 bits"),
    "finite_number": (NUMBER_OUT_OF_RANGE, "a finite number"),
    "bool_type": (WRONG_TYPE, "true or false"),
    "string_type": (WRONG_TYPE, "a string"),
    "date_type": (WRONG_TYPE, "a date like 2024-01-31"),
    "date_parsing": (INVALID_DATE, "a date of the calendar, like 2024-01-31"),
    "date_from_datetime_parsing": (INVALID_DATE, "a date of the calendar, like 2024-01-31"),
    "date_from_datetime_inexact": (INVALID_DATE, "a date without a time, like 2024-01-31"),
    "tuple_type": (WRONG_TYPE, "an array"),
    "list_type": (WRONG_TYPE, "an array"),
    "dict_type": (WRONG_TYPE, "an object"),
    "model_type": (WRONG_TYPE, "an object"),
    "model_attributes_type": (WRONG_TYPE, "an object"),
    "dataclass_type": (WRONG_TYPE, "an object"),
    "greater_than": (NUMBER_OUT_OF_RANGE, "a number above {gt}"),
    "greater_than_equal": (NUMBER_OUT_OF_RANGE, "at least {ge}"),
    "less_than": (NUMBER_OUT_OF_RANGE, "a number below {lt}"),
    "less_than_equal": (NUMBER_OUT_OF_RANGE, "at most {le}"),
    "too_short": (WRONG_LENGTH, "an array of at least {min_length}"),
    "too_long": (WRONG_LENGTH, "an array of at most {max_length}"),
}

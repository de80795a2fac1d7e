"""Names of the fields of records, to suggest corrections of misspelt ones."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo


@cache
def known_fields(record: type[BaseModel]) -> tuple[str, ...]:
    """Names of the fields of a record and of the records in it, at any depth, as files spell them."""
    found: dict[str, None] = {}
    _collect(record, found, set())
    return tuple(found)


@cache
def enclosing_fields(record: type[BaseModel], keys: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the fields of the record that keys lead to, of all alternatives where it has some; none if unknown."""
    records = [record]
    for key in keys:
        hints = [hint for kind in records if (hint := _fields(kind).get(key)) is not None]
        records = [kind for hint in hints for kind in _records_in(hint)]
    return tuple(dict.fromkeys(name for kind in records for name in _fields(kind)))


def _collect(hint: Any, found: dict[str, None], seen: set[Any]) -> None:
    for record in _records_in(hint):
        if record in seen:
            continue
        seen.add(record)
        for name, inner in _fields(record).items():
            found[name] = None
            _collect(inner, found, seen)


def _records_in(hint: Any) -> Iterator[type[Any]]:
    """The classes of records in a type hint: of a union all, of an array that of its elements."""
    if _is_record(hint):
        yield hint
        return
    for part in get_args(hint):
        yield from _records_in(part)


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and (issubclass(hint, BaseModel) or is_dataclass(hint))


def _fields(record: type[Any]) -> Mapping[str, Any]:
    """Type hints of the fields of a record, by their names in files."""
    if issubclass(record, BaseModel):
        return {info.alias or name: info.annotation for name, info in record.model_fields.items()}
    hints = get_type_hints(record, include_extras=True)
    return {_alias(hints[item.name]) or item.name: hints[item.name] for item in fields(record)}


def _alias(hint: Any) -> str | None:
    return next((part.alias for part in get_args(hint) if isinstance(part, FieldInfo) and part.alias), None)

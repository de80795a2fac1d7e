"""Names of all fields of a record, at any depth, to suggest corrections of misspelt ones."""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo


@cache
def known_fields(record: type[BaseModel]) -> tuple[str, ...]:
    """Names of the fields of a record and of the records in it, as files spell them."""
    found: dict[str, None] = {}
    _collect(record, found, set())
    return tuple(found)


def _collect(kind: Any, found: dict[str, None], seen: set[Any]) -> None:
    if isinstance(kind, type) and kind in seen:
        return
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        seen.add(kind)
        for name, info in kind.model_fields.items():
            found[info.alias or name] = None
            _collect(info.annotation, found, seen)
    elif isinstance(kind, type) and is_dataclass(kind):
        seen.add(kind)
        hints = get_type_hints(kind, include_extras=True)
        for item in fields(kind):
            found[_alias(hints[item.name]) or item.name] = None
            _collect(hints[item.name], found, seen)
    else:
        for part in get_args(kind):
            _collect(part, found, seen)


def _alias(hint: Any) -> str | None:
    return next((part.alias for part in get_args(hint) if isinstance(part, FieldInfo) and part.alias), None)

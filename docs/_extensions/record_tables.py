"""The fields of a record as a table, and below it those of the objects inside."""

import types
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from docstrings import introduction, meanings
from pydantic_core import PydanticUndefined

from cobre.core.setting_types import Choice, NullMeans

TAGS = ("type", "method", "selection_mode")  # fields that choose between objects
NAMES = {
    int: "integer",
    float: "number",
    str: "text",
    bool: "true or false",
    date: "date",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Style:
    """describe: what is said of a record. has_paths: fields are named by their path, not by their name alone."""

    describe: Callable[[type[Any]], str] = introduction
    has_paths: bool = True


def table(path: str, record: type[Any], style: Style) -> Iterator[str]:
    """Yield the fields of a record, then those of the objects inside it."""
    hints = get_type_hints(record, include_extras=True)
    meaning_of = meanings(record)
    yield "| field | takes | default |" + " meaning |" * bool(meaning_of)
    yield "|---|---|---|" + "---|" * bool(meaning_of)
    inside = []
    tag = _tag(record)
    for one in sorted(fields(record), key=lambda one: one.name != tag):
        own, hint = one.name.removesuffix("_"), hints[one.name]
        default = "required" if own == tag else _default(one)
        name = f"{path}.{own}"
        meaning = f" {meaning_of.get(one.name, '')} |" if meaning_of else ""
        yield f"| `{name if style.has_paths else own}` | {words(hint)} | {default} |{meaning}"
        inside += [(f"{name}[]" if is_list(hint) else name, kind) for kind in records(hint)]
    for name, kind in inside:
        yield f"\n### `{name}`{_choice(kind)}\n\n{style.describe(kind)}\n"
        yield from table(name, kind, style)


def _tag(record: type[Any]) -> str | None:
    """Return the field by which the object is chosen among others."""
    hints = get_type_hints(record)
    return next((tag for tag in TAGS if get_origin(hints.get(tag)) is Literal), None)


def _choice(record: type[Any]) -> str:
    """Return words such as `with method sampled`."""
    tag = _tag(record)
    values = get_args(get_type_hints(record)[tag]) if tag else ()
    return f" with {tag} " + " or ".join(f"`{value}`" for value in values) if tag else ""


def records(hint: Any) -> list[type[Any]]:
    """Return the objects that a field may hold."""
    if isinstance(hint, type) and is_dataclass(hint):
        return [hint]
    chosen = [part for part in get_args(hint)[1:] if isinstance(part, Choice)] if get_origin(hint) is Annotated else []
    if chosen:
        return list(chosen[0].classes(get_args(hint)[0]))
    return [record for part in get_args(hint) for record in records(part)]


def is_list(hint: Any) -> bool:
    """Return whether a field holds several objects."""
    origin = get_origin(hint)
    if origin in (Annotated, Union, types.UnionType):
        return any(is_list(part) for part in get_args(hint))
    return origin is tuple and bool(records(hint))


def words(hint: Any) -> str:
    """Return what a field takes, in words."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        limits = "".join(_limits(mark) for extra in parts[1:] for mark in getattr(extra, "metadata", [extra]))
        null = " or null" if any(isinstance(extra, NullMeans) for extra in parts[1:]) else ""
        return ("object" if records(hint) else words(parts[0])) + limits + null
    if origin is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(words, parts)))
    if origin is tuple:
        return f"list of {words(parts[0])}"
    if origin is dict:
        return "object with arbitrary names"
    return "object" if is_dataclass(hint) else NAMES[hint]


def _limits(mark: Any) -> str:
    signs = {"ge": ">=", "gt": ">", "lt": "<"}
    limits = ((sign, getattr(mark, name, None)) for name, sign in signs.items())
    return "".join(f" {sign} {limit}" for sign, limit in limits if limit is not None)


def _default(one: Any) -> str:
    if one.default is MISSING and one.default_factory is MISSING:
        return "required"
    value = one.default if one.default_factory is MISSING else one.default_factory()
    if value is PydanticUndefined or is_dataclass(value):
        return "as below"
    if value in (None, (), {}):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"

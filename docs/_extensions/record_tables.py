"""The fields of a record as a table, and below it those of the objects inside."""

import types
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import annotated_types
from docstrings import introduction, meanings
from pydantic_core import PydanticUndefined

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
    """The fields of a record, then those of the objects inside it."""
    hints = get_type_hints(record, include_extras=True)
    meaning_of = meanings(record)
    yield "| field | takes | default |" + " meaning |" * bool(meaning_of)
    yield "|---|---|---|" + "---|" * bool(meaning_of)
    inside = []
    for one in fields(record):
        own, hint = one.name.removesuffix("_"), hints[one.name]
        name = f"{path}.{own}"
        meaning = f" {meaning_of.get(one.name, '')} |" if meaning_of else ""
        yield f"| `{name if style.has_paths else own}` | {words(hint)} | {_default(one)} |{meaning}"
        inside += [(f"{name}[]" if is_list(hint) else name, kind) for kind in records(hint)]
    for name, kind in inside:
        yield f"\n### `{name}`{_choice(kind)}\n\n{style.describe(kind)}\n"
        yield from table(name, kind, style)


def _choice(record: type[Any]) -> str:
    """`sampled`, where the field `type` or `method` says which object it is."""
    hints = get_type_hints(record)
    for tag in ("type", "method", "selection_mode"):
        if get_origin(hints.get(tag)) is Literal:
            return f" with {tag} " + " or ".join(f"`{value}`" for value in get_args(hints[tag]))
    return ""


def records(hint: Any) -> list[type[Any]]:
    """The objects that a field may hold."""
    if isinstance(hint, type) and is_dataclass(hint):
        return [hint]
    return [record for part in get_args(hint) for record in records(part)]


def is_list(hint: Any) -> bool:
    """Whether a field holds several objects."""
    origin = get_origin(hint)
    if origin in (Annotated, Union, types.UnionType):
        return any(is_list(part) for part in get_args(hint))
    return origin is tuple and bool(records(hint))


def words(hint: Any) -> str:
    """What a field takes."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        limits = "".join(_limit(mark) for extra in parts[1:] for mark in getattr(extra, "metadata", [extra]))
        return words(parts[0]) + limits
    if origin is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(words, parts)))
    if origin is tuple:
        return f"list of {words(parts[0])}"
    if origin is dict:
        return "object with arbitrary names"
    return "object" if is_dataclass(hint) else NAMES[hint]


def _limit(mark: Any) -> str:
    signs = {annotated_types.Ge: (">=", "ge"), annotated_types.Gt: (">", "gt"), annotated_types.Lt: ("<", "lt")}
    for kind, (sign, name) in signs.items():
        if isinstance(mark, kind):
            return f" {sign} {getattr(mark, name)}"
    return ""


def _default(one: Any) -> str:
    if one.default is MISSING and one.default_factory is MISSING:
        return "required"
    value = one.default
    if value is PydanticUndefined or is_dataclass(value):
        return "as below"
    if value in (None, ()):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"

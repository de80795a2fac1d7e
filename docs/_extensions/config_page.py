"""Every field of config.json, from the records that read it."""

import types
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import annotated_types
from pydantic_core import PydanticUndefined

from cobre.io.config_records import ConfigFile

INTRODUCTION = """\
# config.json

What a case asks for. Fields that are not named here are refused, with their place. Options of `cobre run` win over
this file. A field is named by its path: `training.stopping_rules[].limit` is the field `limit` of each entry of the
list `stopping_rules` in the object `training`. Where a field chooses between objects, each choice has its own heading.
"""
NAMES = {int: "integer", float: "number", str: "text", bool: "true or false", type(None): "null"}


def config_page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for name, field in ConfigFile.model_fields.items():
        if is_dataclass(field.annotation):
            lines += _object(name, field.annotation)
    return "\n".join(lines)


def _object(path: str, record: type[Any]) -> Iterator[str]:
    yield f"\n## `{path}`\n\n{_first_line(record)}\n"
    yield from _table(path, record)


def _table(path: str, record: type[Any]) -> Iterator[str]:
    """The fields of a record, then those of the objects inside it."""
    hints = get_type_hints(record, include_extras=True)
    inside = []
    yield "| field | takes | default |\n|---|---|---|"
    for one in fields(record):
        name = f"{path}.{one.name.removesuffix('_')}"
        hint = hints[one.name]
        yield f"| `{name}` | {_words(hint)} | {_default(one)} |"
        inside += [(f"{name}[]" if _is_list(hint) else name, kind) for kind in _records(hint)]
    for name, kind in inside:
        yield f"\n### `{name}`{_choice(kind)}\n\n{_first_line(kind)}\n"
        yield from _table(name, kind)


def _choice(record: type[Any]) -> str:
    """`sampled`, where the field `method` (or `type`) says which object it is."""
    hints = get_type_hints(record)
    for tag in ("method", "type"):
        if get_origin(hints.get(tag)) is Literal:
            return f" with {tag} " + " or ".join(f"`{value}`" for value in get_args(hints[tag]))
    return ""


def _records(hint: Any) -> list[type[Any]]:
    """The objects that a field may hold."""
    if is_dataclass(hint):
        return [hint]
    return [record for part in get_args(hint) for record in _records(part)]


def _is_list(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Annotated, Union, types.UnionType):
        return any(_is_list(part) for part in get_args(hint))
    return origin is tuple and bool(_records(hint))


def _words(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        limits = "".join(_limit(mark) for extra in parts[1:] for mark in getattr(extra, "metadata", [extra]))
        return _words(parts[0]) + limits
    if origin is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_words, parts)))
    if origin is tuple:
        return f"list of {_words(parts[0])}"
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
    if value is None:
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _first_line(record: type[Any]) -> str:
    """What the record says of itself, or what the class says that it refers to."""
    text = " ".join((record.__doc__ or "").split())
    if text.startswith("See core.config."):
        from cobre.core import config

        name = text.removeprefix("See core.config.").split(":")[0].rstrip(".")
        rest = text.partition(": ")[2]
        text = (getattr(config, name).__doc__ or "") + (f" {rest[0].upper()}{rest[1:]}" if rest else "")
    # A text that only repeats the name of the section, or speaks of other records, says nothing here.
    return (
        ""
        if "Record" in text or text.startswith(("The section", "training.", "policy.", "modeling.", "upper"))
        else text
    )

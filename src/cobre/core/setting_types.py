"""Types of settings: ranges of numbers, choices between objects, values for null, and fields that files may omit.

They are annotations of plain dataclasses. The decoder of case files reads them, and so do schemas and the reference
page; nothing here depends on it.
"""

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, field
from typing import Annotated, Any, Union, get_args, get_origin

from cobre.limits import MAX_COUNT
from cobre.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Annotation of a number: limits named as in the decoder's schemas, `ge` for at least, `gt` for more than."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        """Return the schema of the number with its limits; the decoder calls this."""
        limits = {name: limit for name in self.__slots__ if (limit := getattr(self, name)) is not None}
        return {**handler(source), **limits}


Count = Annotated[int, Limits(ge=1, le=MAX_COUNT)]
NonNegativeCount = Annotated[int, Limits(ge=0)]
SampleSize = Annotated[int, Limits(ge=2)]
Positive = Annotated[float, Limits(gt=0)]
NonNegative = Annotated[float, Limits(ge=0)]
Share = Annotated[float, Limits(ge=0, le=1)]
Confidence = Annotated[float, Limits(gt=0, lt=1)]

OMITTED_BY_DEFAULT = "omitted_by_default"
"""Metadata of a field that is written only if it differs from its default."""


def extension(default: Any) -> Any:
    """Return a field that is written only if it differs from its default.

    For settings that other programs or one of the formats refuse, and for those without effect here.
    """
    return field(default=default, metadata={OMITTED_BY_DEFAULT: True})


def is_written(item: "Field[Any]", value: object) -> bool:
    """Return whether a field with this value is written to files."""
    return value is not None and not (item.metadata.get(OMITTED_BY_DEFAULT) and value == item.default)


@dataclass(frozen=True, slots=True)
class Choice:
    """Annotation of a union of dataclasses, one of which is chosen by the value of a field.

    tag: the name of that field; its default is the value. options: the classes, if they differ from those of the union.
    """

    tag: str
    options: Callable[[], Iterable[type[Any]]] | None = None

    def classes(self, hint: Any) -> tuple[type[Any], ...]:
        """Return the classes of a type hint that has this annotation."""
        if self.options is not None:
            return tuple(self.options())
        return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        """Return a tagged union; the decoder calls this."""
        choices: dict[Any, Any] = {}
        for cls in self.classes(source):
            values = get_args(cls.__dataclass_fields__[self.tag].type)
            choices |= dict.fromkeys(values, handler.generate_schema(cls))
        return {"type": "tagged-union", "discriminator": self.tag, "choices": choices}


@dataclass(frozen=True, slots=True)
class NullMeans:
    """Annotation of a field that may be null in files. value: what that means; convert: applied to other values."""

    value: Any
    convert: Callable[[Any], Any] | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        """Return the schema of the value or null; the decoder calls this."""
        inner = {"type": "nullable", "schema": handler(source)}
        return {"type": "function-after", "function": {"type": "no-info", "function": self._read}, "schema": inner}

    def _read(self, value: Any) -> Any:
        if value is None:
            return self.value
        return value if self.convert is None else self.convert(value)


def with_aliases(schema: Any, aliases: Mapping[str, str]) -> Any:
    """Return the decoder's schema of a dataclass, with other names of some fields in files."""
    for item in schema["schema"]["fields"]:
        if item["name"] in aliases:
            item["validation_alias"] = item["serialization_alias"] = aliases[item["name"]]
    return schema

"""JSON files of a run, which may have been modified: anything invalid raises ValueError."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cobre.io.storage.atomic import write_file
from cobre.io.storage.confined import read_untrusted_text

MAX_LEVELS = 100
"""Deepest nesting of objects and arrays; what a run writes has about ten levels."""

_MAX_INTEGER = 2**64  # seeds have 64 bits


def parse_stored(text: str | bytes) -> Any:
    """Return the parsed value. Raises ValueError for invalid JSON, integers beyond 64 bits, and too deep nesting."""
    return _checked(lambda: json.loads(text, parse_int=_parse_integer))


def read_stored_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raises OSError, or ValueError for other content."""
    content = parse_stored(read_untrusted_text(path))
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    return content


def write_json(path: Path, content: Any, *, sort_keys: bool = False, is_compact: bool = False) -> None:
    """Write a JSON file atomically, one level of indentation a blank; raises WriteError.

    is_compact: on one line, for tables of numbers, which takes a tenth of the time.
    """
    indent = None if is_compact else 1
    write_file(path, (json.dumps(content, indent=indent, sort_keys=sort_keys) + "\n").encode())


def json_value(value: Any) -> Any:
    """Replace infinities and NaN, which JSON does not have, by None, also inside lists and objects."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [json_value(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: json_value(entry) for key, entry in value.items()}
    return value


def parse_finite(text: str | bytes) -> Any:
    """Parse as `parse_stored` does, but raise ValueError for NaN and infinities: events never have them."""
    return _checked(lambda: json.loads(text, parse_int=_parse_integer, parse_float=_finite, parse_constant=_refuse))


def _checked(parse: Callable[[], Any]) -> Any:
    try:
        content = parse()
    except RecursionError:
        raise _too_deep() from None
    if not is_shallow(content):
        raise _too_deep()
    return content


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:20]} is too large")
    return value


def _parse_integer(digits: str) -> int:
    if len(digits) > 21 or not -_MAX_INTEGER < (value := int(digits)) < _MAX_INTEGER:
        raise ValueError(f"a whole number of {len(digits.lstrip('-'))} digits is too large")
    return value


def is_shallow(value: Any) -> bool:
    """Return whether the nesting is at most `MAX_LEVELS` deep, so that recursive functions can handle the value.

    Checked level by level, since a recursive function would fail here.
    """
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_LEVELS - 1):
        if not level:
            return True
        level = [
            entry
            for outer in level
            for entry in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(entry, (dict, list))
        ]
    return not any(level)


def _too_deep() -> ValueError:
    return ValueError("it is nested too deeply")

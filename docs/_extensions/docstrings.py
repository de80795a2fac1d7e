"""Extract summaries and field descriptions from class docstrings."""

import re
from typing import Any

_FIELD = re.compile(r"^ *((?:\w+, )*\w+): (.*?)(?=^ *(?:\w+, )*\w+: |\Z)", re.MULTILINE | re.DOTALL)


def first_line(record: type[Any]) -> str:
    """Return the first paragraph of a docstring."""
    return (record.__doc__ or "").strip().split("\n", 1)[0]


def introduction(record: type[Any]) -> str:
    """Return the text before the fields."""
    return " ".join(_FIELD.split(record.__doc__ or "", maxsplit=1)[0].split())


def meanings(record: type[Any]) -> dict[str, str]:
    """Return the meaning of each field, from lines `name, other_name: meaning`."""
    found = {}
    for names, text in _FIELD.findall((record.__doc__ or "").partition("\n")[2]):
        words = " ".join(text.split())
        found |= dict.fromkeys(names.split(", "), words[0].upper() + words[1:])
    return found

"""Docstrings as autodoc reads them: lines `name: meaning` on parameters and fields become a list."""

import re
from typing import Any

from sphinx.application import Sphinx

_ITEM = re.compile(r"^((?:[a-z]\w*, )*[a-z]\w*): (\S.*)$")
_SENTENCE = re.compile(r"^(examples?|raises?|note|warning)$", re.IGNORECASE)


def with_lists(lines: list[str]) -> list[str]:
    """Return a docstring whose lines `name: meaning` are list items, each up to the next item or empty line."""
    found: list[str] = []
    is_item = False
    for place, line in enumerate(lines):
        item = _ITEM.match(line)
        if place and item and not _SENTENCE.match(item[1]):
            if found and found[-1] and not is_item:
                found.append("")
            names = ", ".join(f"**{name}**" for name in item[1].split(", "))
            found.append(f"* {names}: {item[2]}")
            is_item = True
        elif not line.strip():
            found.append(line)
            is_item = False
        else:
            found.append(f"  {line}" if is_item else line)
    return found


def process(*arguments: Any) -> None:
    """Convert the lines of a docstring, the last argument, in place."""
    lines: list[str] = arguments[-1]
    lines[:] = [line.replace("|", r"\|") for line in with_lists(lines)]  # |x| is a size, and no substitution


def setup(app: Sphinx) -> dict[str, object]:
    """Register the extension with Sphinx."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}

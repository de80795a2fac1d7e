"""Fills templates whose placeholders are `@name@`: shells and YAML both have other uses for braces and dollars.

Texts are always quoted for the language of their template: without quotes, YAML reads `no` as false and `1e3` as a
number.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from importlib.resources import files

_PLACEHOLDER = re.compile(r"@([a-z_]+)@")


class Verbatim(str):
    """Text that is filled in without quotes: a piece of the template's own language, or of a comment."""

    __slots__ = ()


def fill_yaml(template: str, values: Mapping[str, object]) -> str:
    """Fill a YAML template; texts and lists of texts are written as JSON, which YAML reads."""
    return _fill(template, values, lambda value: json.dumps(value, ensure_ascii=False))


def fill_shell(template: str, values: Mapping[str, object]) -> str:
    """Fill a shell script; each text becomes one word of it."""
    return _fill(template, values, lambda value: shlex.quote(str(value)))


def escape_dollars(text: str) -> str:
    """The text with every $ doubled: compose substitutes $NAME, and Kubernetes $(NAME), unless it is."""
    return text.replace("$", "$$")


def _fill(template: str, values: Mapping[str, object], quote: Callable[[object], str]) -> str:
    """Replace every placeholder; raises KeyError if placeholders and values do not correspond."""
    text = files("cobre.launchfiles").joinpath("templates", template).read_text(encoding="utf-8")
    placeholders = set(_PLACEHOLDER.findall(text))
    if placeholders != set(values):
        raise KeyError(f"{template} has placeholders {sorted(placeholders)}, values are {sorted(values)}")
    words = {name: value if isinstance(value, Verbatim) else quote(value) for name, value in values.items()}
    return _PLACEHOLDER.sub(lambda found: words[found[1]], text)

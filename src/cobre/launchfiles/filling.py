"""Templates with `@names@` in them: shells and YAML both have other uses for braces and dollars.

A text that is filled in is quoted for the language of its template, whatever it is: `no` and `1e3` are names too.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from importlib.resources import files

_PLACE = re.compile(r"@([a-z_]+)@")


class Verbatim(str):
    """A piece of the template's own language, or of a comment: filled in as it is."""

    __slots__ = ()


def fill_yaml(template: str, values: Mapping[str, object]) -> str:
    """A YAML template with texts and lists of texts in double quotes: YAML reads JSON."""
    return _fill(template, values, lambda value: json.dumps(value, ensure_ascii=False))


def fill_shell(template: str, values: Mapping[str, object]) -> str:
    """A shell script; each text is one word of it."""
    return _fill(template, values, lambda value: shlex.quote(str(value)))


def _fill(template: str, values: Mapping[str, object], quote: Callable[[object], str]) -> str:
    """The text of a template with every place filled; a value without a place is a mistake of ours, and raises."""
    text = files("cobre.launchfiles").joinpath("templates", template).read_text(encoding="utf-8")
    places = set(_PLACE.findall(text))
    if places != set(values):
        raise KeyError(f"{template} has places {sorted(places)}, values are {sorted(values)}")
    words = {name: value if isinstance(value, Verbatim) else quote(value) for name, value in values.items()}
    return _PLACE.sub(lambda place: words[place[1]], text)

"""Templates with `@names@` in them: shells and YAML both have other uses for braces and dollars."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files

_PLACE = re.compile(r"@([a-z_]+)@")


def fill(template: str, values: Mapping[str, object]) -> str:
    """The text of a template with every place filled; a value without a place is a mistake of ours, and raises."""
    text = files("cobre.launchfiles").joinpath("templates", template).read_text(encoding="utf-8")
    places = set(_PLACE.findall(text))
    if places != set(values):
        raise KeyError(f"{template} has places {sorted(places)}, values are {sorted(values)}")
    return _PLACE.sub(lambda place: str(values[place[1]]), text)


def quoted(text: str) -> str:
    """A YAML text in double quotes, whatever is in it: YAML reads JSON's texts."""
    return json.dumps(text, ensure_ascii=False)


def quoted_list(words: Sequence[str]) -> str:
    """A YAML list of texts on one line."""
    return json.dumps(list(words), ensure_ascii=False)

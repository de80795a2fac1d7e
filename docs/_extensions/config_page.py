"""Every field of config.json, from the records that read it."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

from docstrings import introduction
from record_tables import Style, table

from cobre.io.config.records import ConfigFile

INTRODUCTION = """\
# config.json

Settings of a case. Unknown fields are refused, with their place. Options of `cobre run` take precedence over
this file. Fields are written as paths: `training.stopping_rules[].limit` is the field `limit` of each entry of the
list `stopping_rules` in the object `training`. Where a field chooses between objects, each choice has its own heading.

The same paths change a setting elsewhere: `cobre run my_case --set training.selection.forward_passes=10`,
`config_overrides={"training.selection.forward_passes": 10}` of `cobre.train` and others, and
`cobre.changed(case, {"config.training.selection.forward_passes": 10})`. study.json and the report use them, too.

Some fields belong to [format](case-directory.md#formats) 0.18 or 0.19 alone; they say so below.
"""


def config_page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for name, field in ConfigFile.model_fields.items():
        if is_dataclass(field.annotation):
            lines += _object(name, field.annotation)
    return "\n".join(lines)


def _object(path: str, record: type[Any]) -> Iterator[str]:
    yield f"\n## `{path}`\n\n{_first_line(record)}\n"
    yield from table(path, record, Style(_first_line))


def _first_line(record: type[Any]) -> str:
    """What the record says of itself, or what the class says that it refers to."""
    text = introduction(record)
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

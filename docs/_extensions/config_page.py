"""Every field of config.json, from the classes into which it is decoded."""

from typing import get_type_hints

from docstrings import introduction
from record_tables import Style, table

from cobre.core.config import Config

INTRODUCTION = """\
# config.json

Settings of a case. Unknown fields are refused, with their place. Options of `cobre run` take precedence over
this file. Fields are written as paths: `training.stopping_rules[].limit` is the field `limit` of each entry of the
list `stopping_rules` in the object `training`. Where a field chooses between objects, each choice has its own heading.

The same paths change a setting elsewhere: `cobre run my_case --set training.selection.forward_passes=10`,
`config_overrides={"training.selection.forward_passes": 10}` of `cobre.train` and others, and
`cobre.changed(case, {"config.training.selection.forward_passes": 10})`. study.json and the report use them, too.
A value that is an object changes the fields that it has and keeps the others of the file; with another `method` or
`type` than the file's it replaces the whole object. Lists are replaced.

Some fields belong to [format](case-directory.md#formats) 0.18 or 0.19 alone; they say so below.
"""


def config_page() -> str:
    """Return the whole page."""
    lines = [INTRODUCTION]
    for name, kind in get_type_hints(Config).items():
        lines += [f"\n## `{name}`\n\n{introduction(kind)}\n", *table(name, kind, Style())]
    return "\n".join(lines)

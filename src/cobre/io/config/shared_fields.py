"""Fields that a record of config.json and the configuration of the program share, by name.

So a plain field is declared twice: in its record in `records.py` and in its class in `cobre.core.config`, which has its
default.
"""

from dataclasses import fields, is_dataclass
from typing import Any


def shared_fields(source: Any, target: type) -> dict[str, Any]:
    """Plain values of `source` whose names are fields of `target`; None, objects and tuples of objects are left out.

    `shared_fields(TimeLimitRecord("time_limit", 60.0), TimeLimit)` is `{"seconds": 60.0}`.
    """
    names = {item.name for item in fields(target)}
    values = {item.name: getattr(source, item.name) for item in fields(source) if item.name in names}
    return {name: value for name, value in values.items() if value is not None and not _has_objects(value)}


def _has_objects(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_objects, value))
    return is_dataclass(value)

"""Dataclasses and dates as values that JSON can hold."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from typing import Any


def plain(value: object) -> Any:
    """The value for JSON; fields that are None are left out, as files do."""
    if is_dataclass(value) and not isinstance(value, type):
        given = {item.name: getattr(value, item.name) for item in fields(value)}
        return {name: plain(entry) for name, entry in given.items() if entry is not None}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(entry) for entry in value]
    return value

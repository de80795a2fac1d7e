"""How many pieces the work of a case has, from its configuration alone: more workers than that would only wait."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cobre.io.config_overrides import FILE, with_overrides
from cobre.io.foreign_file import read_foreign_text
from cobre.io.problems import Problems
from cobre.io.stored_json import parse_stored

Overrides = Mapping[str, Any]


def pieces_of_work(case: Path, overrides: Overrides | None = None) -> int | None:
    """Forward passes of training, or scenarios where nothing is trained; None when the file does not say.

    What is wrong with the file is not found out here: reading the case will tell.
    """
    try:
        content = parse_stored(read_foreign_text(case / FILE))
    except (OSError, ValueError):
        return None
    if overrides:
        content = with_overrides(content, overrides, Problems())
    if _at(content, "training", "enabled") is False:
        return _count(_at(content, "simulation", "selection", "num_scenarios"))
    return _count(_at(content, "training", "selection", "forward_passes"))


def _at(content: Any, *keys: str) -> Any:
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

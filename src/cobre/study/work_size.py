"""How many pieces the work of a case has, from its configuration alone: more workers than that would only wait."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cobre.io.config.overrides import FILE, with_overrides
from cobre.io.problems import Problems
from cobre.io.stored_json import parse_stored
from cobre.io.untrusted_file import read_foreign_text

Overrides = Mapping[str, Any]


def pieces_of_work(case: Path, overrides: Overrides | None = None) -> int | None:
    """Forward passes of training, or scenarios where nothing is trained; None when the file does not say."""
    content = _content(case, overrides)
    if _at(content, "training", "enabled") is False:
        return _count(_at(content, "simulation", "selection", "num_scenarios"))
    return _count(_at(content, "training", "selection", "forward_passes"))


def is_tree(case: Path, overrides: Overrides | None = None) -> bool:
    """Whether training goes over all paths of a tree."""
    return bool(_at(_content(case, overrides), "training", "selection", "method") == "enumerated")


def _content(case: Path, overrides: Overrides | None) -> Any:
    """The file with its overrides; what is wrong with it is not found out here: reading the case will tell."""
    try:
        content = parse_stored(read_foreign_text(case / FILE))
    except (OSError, ValueError):
        return None
    return with_overrides(content, overrides, Problems()) if overrides else content


def _at(content: Any, *keys: str) -> Any:
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

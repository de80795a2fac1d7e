"""Overrides of config.json: settings with dotted keys, merged into its content."""

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from cobre.io.decoding.json_documents import Document, read_document
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import CaseProblem, Layer, Problems
from cobre.records import dataclass

_QUOTED = re.compile(r"`([^`]+)`")


def with_overrides(content: Any, overrides: Mapping[str, object], problems: Problems) -> Any:
    """The content of config.json with every override applied; objects are merged, other values replaced.

    An object with another `method` or `type` than the file's replaces it: fields of the old one do not apply.
    """
    if not isinstance(content, dict):
        return content
    merged = copy.deepcopy(content)
    for dotted, value in overrides.items():
        _put(merged, dotted, value, problems)
    return merged


def _put(merged: dict[str, Any], dotted: object, value: object, problems: Problems) -> None:
    if not isinstance(dotted, str):
        message = f"the override {dotted!r} is not a string"
        problems.error(Layer.SCHEMA, CONFIG_FILE, "overrides", str(dotted), message, "a key such as training.tree_seed")
        return
    if not _is_json(value):
        message = f"the override has a value of type {type(value).__name__}"
        problems.error(
            Layer.SCHEMA,
            CONFIG_FILE,
            "overrides",
            dotted,
            message,
            "a number, string, boolean, None, or a list of these",
        )
        return
    *parents, last = dotted.split(".")
    node = merged
    for key in parents:
        if node.get(key) is None:
            node[key] = {}
        node = node[key]
        if not isinstance(node, dict):
            message = f"the override `{dotted}` contains `{key}`, which is not an object"
            problems.error(Layer.SCHEMA, CONFIG_FILE, "overrides", dotted, message, "a key such as training.tree_seed")
            return
    node[last] = _merged(node.get(last), value)


def _is_json(value: object) -> bool:
    try:
        json.dumps(_plain(value))
    except (TypeError, ValueError):
        return False
    return True


def _merged(old: Any, new: object) -> Any:
    if not (isinstance(old, dict) and isinstance(new, Mapping)) or _is_other_kind(old, new):
        return _plain(new)
    return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}


def _is_other_kind(old: Mapping[str, Any], new: Mapping[str, object]) -> bool:
    return any(tag in new and tag in old and new[tag] != old[tag] for tag in ("method", "type"))


def name_overrides(overrides: Mapping[str, object], problems: Problems, start: int) -> None:
    """Say of problems from number `start` on which of them an override made: the file need not be corrected."""

    def named(problem: CaseProblem) -> CaseProblem:
        path = ".".join(part for part in (problem.entity, problem.field) if part)
        about = [f"{path}.{quoted}" for quoted in _QUOTED.findall(problem.message)]
        for name in overrides if problem.file == CONFIG_FILE else ():
            if path == name or path.startswith((f"{name}.", f"{name}[")) or name in about:
                return replace(problem, message=f"{problem.message}, as --set or an override of {name} says")
        return problem

    problems.revise(named, start)


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


# config.json as read at the start of a run: parsed once, then passed on.


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """The parsed file. document: None where it is missing or is not JSON; problems: why, and duplicate keys."""

    document: Document | None
    problems: tuple[CaseProblem, ...]

    @classmethod
    def read(cls, case: Path) -> Self:
        """Read config.json of a case directory. Raises OSError if its folder cannot be accessed."""
        problems = Problems()
        document = read_document(case, CONFIG_FILE, problems, is_required=True)
        return cls(document, tuple(problems))

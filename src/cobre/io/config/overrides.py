"""Overrides of config.json: settings with dotted keys, merged into its content."""

import copy
import json
from collections.abc import Mapping
from typing import Any

from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import Layer, Problems


def with_overrides(content: Any, overrides: Mapping[str, object], problems: Problems) -> Any:
    """The content of config.json with every override applied; objects are merged, other values replaced."""
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
    if not (isinstance(old, dict) and isinstance(new, Mapping)):
        return _plain(new)
    return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value

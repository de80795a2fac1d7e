"""Overrides of config.json: settings with dotted keys, merged into its content."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from cobre.core.file_names import CONFIG_FILE
from cobre.io.decoding.json_documents import Document, read_document
from cobre.io.findings import Finding, Findings, Layer, error_code
from cobre.records import dataclass

KINDS = ("method", "type")
"""Fields that decide which other fields an object has."""

OVERRIDE_KEY = error_code(
    "override-key",
    Layer.SCHEMA,
    "the override {value} is not a string",
    expected="a key such as training.tree_seed",
)

OVERRIDE_VALUE = error_code(
    "override-value",
    Layer.SCHEMA,
    "has a value of type {value}",
    expected="a number, string, boolean, None, or a list of these",
)

OVERRIDE_PATH = error_code(
    "override-path",
    Layer.SCHEMA,
    "`{parent}` is not an object",
    expected="a key such as training.tree_seed",
)


def with_overrides(content: Any, overrides: Mapping[str, object], findings: Findings) -> Any:
    """Return the content of config.json with every override applied; objects are merged, other values replaced.

    An object with another `method` or `type` than the file's replaces it: fields of the old one do not apply.
    """
    if not isinstance(content, dict):
        return content
    merged = copy.deepcopy(content)
    for dotted, value in overrides.items():
        _put(merged, dotted, value, findings)
    return merged


def _put(merged: dict[str, Any], dotted: object, value: object, findings: Findings) -> None:
    if not isinstance(dotted, str):
        findings.add(OVERRIDE_KEY, CONFIG_FILE, field=str(dotted), value=repr(dotted))
        return
    if not _is_json(value):
        findings.add(OVERRIDE_VALUE, CONFIG_FILE, field=dotted, value=type(value).__name__)
        return
    *parents, last = dotted.split(".")
    node = merged
    for key in parents:
        if node.get(key) is None:
            node[key] = {}
        node = node[key]
        if not isinstance(node, dict):
            findings.add(OVERRIDE_PATH, CONFIG_FILE, field=dotted, value=dotted, parent=key)
            return
    node[last] = _merged(node.get(last), value)


def _is_json(value: object) -> bool:
    try:
        json.dumps(_with_lists(value))
    except (TypeError, ValueError):
        return False
    return True


def _merged(old: Any, new: object) -> Any:
    if not (isinstance(old, dict) and isinstance(new, Mapping)) or _is_other_kind(old, new):
        return _with_lists(new)
    return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}


def _is_other_kind(old: Mapping[str, Any], new: Mapping[str, object]) -> bool:
    return any(tag in new and tag in old and new[tag] != old[tag] for tag in KINDS)


def name_overrides(overrides: Mapping[str, object], findings: Findings, start: int) -> None:
    """Mark findings from number `start` on that an override caused: the file need not be corrected."""

    def named(finding: Finding) -> Finding:
        path = ".".join(part for part in (finding.entity, finding.field) if part)
        about = f"{path}.{finding.facts.get('key')}"
        for name in overrides if finding.file == CONFIG_FILE else ():
            if path == name or path.startswith((f"{name}.", f"{name}[")) or name == about:
                return replace(finding, override=name)
            # Another method or type may not have the fields that the file has.
            parent, _, key = name.rpartition(".")
            if parent and key in KINDS and path.startswith(f"{parent}.") and "advice" in finding.facts:
                advice = f"set {parent} as a whole, such as {json.dumps({key: _with_lists(overrides[name])})}"
                return replace(finding, override=name, facts={**finding.facts, "advice": advice})
        return finding

    findings.revise(named, start)


def _with_lists(value: object) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_lists(inner) for key, inner in value.items()}
    return [_with_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


# config.json as read at the start of a run: parsed once, then passed on.


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """The parsed file. document: None if it is missing or is not JSON; findings: why, and duplicate keys."""

    document: Document | None
    findings: tuple[Finding, ...]

    @classmethod
    def read(cls, case: Path) -> Self:
        """Read config.json of a case directory. Raises OSError if its folder cannot be accessed."""
        findings = Findings()
        document = read_document(case, CONFIG_FILE, findings, is_required=True)
        return cls(document, tuple(findings))

"""Recognise cases of the 0.5 format, which are converted rather than read."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cobre.io.decoding.json_documents import Document, read_document
from cobre.io.findings.problems import Layer, Problems

Documents = Mapping[str, Document | None]


def is_old_format(documents: Documents, problems: Problems) -> bool:
    """Whether the case has marks of the 0.5 format and none of the current one; if so, one error is added."""
    contents = {name: document.content for name, document in documents.items() if document is not None}
    old = [mark for mark, has_mark in OLD_MARKS if has_mark(contents)]
    if not old or any(has_mark(contents) for has_mark in NEW_MARKS):
        return False
    message = f"this is a case of format version 0.5 ({', '.join(old)})"
    problems.error(Layer.STRUCTURE, "(the whole case)", "", "", message, "run `cobre migrate OLD NEW` and use NEW")
    return True


def has_old_format(folder: Path) -> bool:
    """Whether the case in a folder is of the 0.5 format."""
    names = ("config.json", "stages.json", "initial_conditions.json", "penalties.json", "system/hydros.json")
    files = (*names, "system/buses.json")
    return is_old_format({name: read_document(folder, name, Problems()) for name in files}, Problems())


Mark = Callable[[Mapping[str, Any]], bool]


def _section(contents: Mapping[str, Any], file: str, *keys: str) -> Any:
    node = contents.get(file)
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def _has(file: str, *keys: str) -> Mark:
    def has_key(contents: Mapping[str, Any]) -> bool:
        section = _section(contents, file, *keys[:-1])
        return isinstance(section, dict) and keys[-1] in section

    return has_key


def _some(file: str, array: str, key: str) -> Mark:
    def any_has_key(contents: Mapping[str, Any]) -> bool:
        elements = _section(contents, file, array)
        return isinstance(elements, list) and any(key in element for element in _objects(elements))

    return any_has_key


def _objects(elements: Iterable[Any]) -> Iterable[dict[str, Any]]:
    return (element for element in elements if isinstance(element, dict))


OLD_MARKS: tuple[tuple[str, Mark], ...] = (
    ("`training.forward_passes` in config.json", _has("config.json", "training", "forward_passes")),
    ("`num_scenarios` in stages.json", _some("stages.json", "stages", "num_scenarios")),
    ("`past_inflows` in initial_conditions.json", _has("initial_conditions.json", "past_inflows")),
    ("`fpha_turbined_cost` in penalties.json", _has("penalties.json", "hydro", "fpha_turbined_cost")),
    ("`bus_id` of plants in system/hydros.json", _some("system/hydros.json", "hydros", "bus_id")),
)
NEW_MARKS: tuple[Mark, ...] = (
    _has("config.json", "training", "selection"),
    _some("stages.json", "stages", "num_openings"),
    _has("penalties.json", "hydro", "turbined_cost"),
    _some("system/hydros.json", "hydros", "unit_groups"),
    _some("system/buses.json", "buses", "operational_start_date"),
)

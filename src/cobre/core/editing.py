"""Changed copies of cases, which are immutable: `changed` replaces values at any depth in one call."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

_STEP = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\[(?P<id>-?\d+)\])?")
Record = TypeVar("Record")


def changed(record: Record, values: Mapping[str, Any]) -> Record:
    """A case, or any part of one, with other values of some fields; the given one stays as it is.

        changed(case, {"config.training.forward_passes": 8, "system.hydros[3].reservoir.max_storage_hm3": 500.0})

    Names are those of the fields, joined by dots; `[3]` is the entity with the id 3, not the third one. Raises KeyError
    for a path that names no field or entity.
    """
    for path, value in values.items():
        if not isinstance(path, str):
            raise TypeError(f"give the path as text, such as config.training.forward_passes, not {path!r}")
        record = _with(record, path.split("."), path, value)
    return record


def _with(record: Any, steps: list[str], path: str, value: Any) -> Any:
    if not steps:
        return value
    step = _STEP.fullmatch(steps[0])
    if step is None:
        raise KeyError(f"{path}: {steps[0]!r} is not a field name, with or without an id as in hydros[3]")
    inner = _field(record, step["name"], path)
    if step["id"] is not None:
        new = _with_entity(inner, int(step["id"]), steps[1:], path, value)
    else:
        new = _with(inner, steps[1:], path, value)
    return replace(record, **{step["name"]: new})


def _field(record: Any, name: str, path: str) -> Any:
    if not is_dataclass(record) or isinstance(record, type):
        raise KeyError(f"{path}: there are no fields before {name!r}")
    known = [item.name for item in fields(record)]
    if name not in known:
        raise KeyError(f"{path}: a {type(record).__name__} has no field {name!r}; it has {', '.join(known)}")
    return getattr(record, name)


def _with_entity(entities: Any, id_: int, steps: list[str], path: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(entities, tuple):
        raise KeyError(f"{path}: [{id_}] follows something that is not a list of entities")
    indices = [index for index, entity in enumerate(entities) if getattr(entity, "id", None) == id_]
    if not indices:
        known = ", ".join(str(getattr(entity, "id", "?")) for entity in entities) or "none"
        raise KeyError(f"{path}: there is no entity with the id {id_}; there are {known}")
    [index] = indices
    return (*entities[:index], _with(entities[index], steps, path, value), *entities[index + 1 :])

"""Dates and names of a case as plain values: what a reader of results needs to know without the case."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from typing import Any

from cobre.core.arrays import sum_in_order
from cobre.core.case import Case
from cobre.core.hydro import Hydro

_NAMED = ("id", "name", "bus_id", "source_bus_id", "target_bus_id", "downstream_id", "capacity_mw", "max_storage_hm3")


def stages_and_entities(case: Case) -> dict[str, Any]:
    """Stages and entities of a case, as study.json has them."""
    system = case.system
    return {
        "stages": [
            {
                "id": stage.id,
                "start_date": stage.start_date.isoformat(),
                "end_date": stage.end_date.isoformat(),
                "hours": sum_in_order(block.hours for block in stage.blocks),
                "block_hours": [float(block.hours) for block in stage.blocks],
            }
            for stage in case.horizon.stages
        ],
        "entities": {
            "hydros": [_names(hydro) | _connections_and_limits(hydro) for hydro in system.hydros],
            "thermals": _names_of(system.thermals),
            "buses": _names_of(system.buses),
            "lines": [
                _names(line) | {"direct_mw": line.capacity.direct_mw, "reverse_mw": line.capacity.reverse_mw}
                for line in system.lines
            ],
            "non_controllables": _names_of(system.non_controllable_sources),
            "contracts": _names_of(system.energy_contracts),
            "pumping_stations": _names_of(system.pumping_stations),
        },
    }


def _names_of(entities: Sequence[Any]) -> list[dict[str, Any]]:
    return [_names(entity) for entity in entities]


def _names(entity: Any) -> dict[str, Any]:
    return {name: plain(getattr(entity, name)) for name in _NAMED if hasattr(entity, name)}


def _connections_and_limits(hydro: Hydro) -> dict[str, Any]:
    """A hydro plant's buses, diversion and storage limits."""
    return {
        "bus_ids": sorted({group.bus_id for group in hydro.unit_groups}),
        "diversion_id": None if hydro.diversion is None else hydro.diversion.downstream_id,
        "min_storage_hm3": hydro.reservoir.min_storage_hm3,
        "max_storage_hm3": hydro.reservoir.max_storage_hm3,
    }


def plain(value: object) -> Any:
    """A value that JSON can hold; dataclasses become objects with their `type`."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__} | {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(entry) for entry in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)

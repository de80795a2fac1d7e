"""study.json: what a reader of results needs to know without the case: names, dates, settings, versions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any

from cobre.io.atomic import write_file
from cobre.io.conversion_manifest import read_conversion
from cobre.io.output.manifest import software_versions
from cobre.study.ranks import ReadyStudy
from cobre.study.requests import CaseRequest

STUDY_FILE = "study.json"
_NAMED = ("id", "name", "bus_id", "source_bus_id", "target_bus_id", "downstream_id", "capacity_mw", "max_storage_hm3")


def write_study_file(output: Path, ready: ReadyStudy, request: CaseRequest) -> None:
    """Write it, whole."""
    write_file(output / STUDY_FILE, (json.dumps(study_facts(ready, request), indent=1) + "\n").encode())


def study_facts(ready: ReadyStudy, request: CaseRequest) -> dict[str, Any]:
    """As a JSON object."""
    case, system = ready.study.case, ready.study.case.system
    source = request.case
    return {
        "format_version": 1,
        "name": case.name,
        "case": str(source) if isinstance(source, Path) else "",
        "stages": [
            {
                "id": stage.id,
                "start_date": stage.start_date.isoformat(),
                "end_date": stage.end_date.isoformat(),
                "hours": float(sum(block.hours for block in stage.blocks)),
            }
            for stage in case.horizon.stages
        ],
        "entities": {
            "hydros": _names(system.hydros),
            "thermals": _names(system.thermals),
            "buses": _names(system.buses),
            "lines": _names(system.lines),
            "non_controllables": _names(system.non_controllable_sources),
            "contracts": _names(system.energy_contracts),
            "pumping_stations": _names(system.pumping_stations),
        },
        "config": plain(case.config),
        "is_risk_averse": case.is_risk_averse,
        "versions": software_versions() | {"solver": ready.solver.version},
        "warnings": list(ready.warnings),
        **_origin(source),
    }


def _origin(source: object) -> dict[str, Any]:
    """What a case was converted from, where it was."""
    conversion = read_conversion(source) if isinstance(source, Path) else None
    return {} if conversion is None else {"conversion": conversion}


def _names(entities: Sequence[Any]) -> list[dict[str, Any]]:
    return [{name: plain(getattr(entity, name)) for name in _NAMED if hasattr(entity, name)} for entity in entities]


def plain(value: object) -> Any:
    """Anything as JSON knows it."""
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

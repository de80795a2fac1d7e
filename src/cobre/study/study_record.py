"""study.json: what a reader of results needs to know without the case: names, dates, settings, versions.

`cobre.report.stored_study` reads it. `cobre.system_map` draws a case from the same values.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.core.arrays import Floats, sum_in_order
from cobre.core.case import Case
from cobre.core.hydro import Hydro
from cobre.core.temporal import Stage
from cobre.io.case_folder.case_files import file_digests, read_conversion
from cobre.io.output.results import software_versions
from cobre.io.policies.policy_source import lag_records
from cobre.io.saving.documents import config_document
from cobre.stochastic.par.seasons import season_cycle
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.requests import CaseRequest

if TYPE_CHECKING:
    from cobre.report.system_map import SystemMap


_ENTITY_FIELDS = (
    "id",
    "name",
    "bus_id",
    "source_bus_id",
    "target_bus_id",
    "downstream_id",
    "capacity_mw",
    "max_storage_hm3",
)


def stages_and_entities(case: Case) -> dict[str, Any]:
    """Return the stages and entities of a case as plain values: names, dates, buses and limits."""
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
            "hydros": [_entity_record(hydro) | _connections_and_limits(hydro) for hydro in system.hydros],
            "thermals": _entity_records(system.thermals),
            "buses": _entity_records(system.buses),
            "lines": [
                _entity_record(line) | {"direct_mw": line.capacity.direct_mw, "reverse_mw": line.capacity.reverse_mw}
                for line in system.lines
            ],
            "non_controllables": _entity_records(system.non_controllable_sources),
            "contracts": _entity_records(system.energy_contracts),
            "pumping_stations": _entity_records(system.pumping_stations),
        },
    }


def _entity_records(entities: Sequence[Any]) -> list[dict[str, Any]]:
    return [_entity_record(entity) for entity in entities]


def _entity_record(entity: Any) -> dict[str, Any]:
    return {name: plain(getattr(entity, name)) for name in _ENTITY_FIELDS if hasattr(entity, name)}


def _connections_and_limits(hydro: Hydro) -> dict[str, Any]:
    """Return a hydro plant's buses, diversion and storage limits."""
    return {
        "bus_ids": sorted({group.bus_id for group in hydro.unit_groups}),
        "diversion_id": None if hydro.diversion is None else hydro.diversion.downstream_id,
        "min_storage_hm3": hydro.reservoir.min_storage_hm3,
        "max_storage_hm3": hydro.reservoir.max_storage_hm3,
    }


def plain(value: object) -> Any:
    """Convert a value to JSON types; dataclasses become objects with their `type`."""
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


def system_map(case: "Case | str | Path") -> "SystemMap | None":
    """Draw buses, lines and cascades of a case as a picture (SVG) for notebooks; `save(path)` writes it.

    case: a case, or its directory. None when it has neither hydro plants nor lines. Raises `InvalidCaseError`.

        cobre.system_map("examples/large").save("map.svg")
    """
    from cobre.io.case import load_case
    from cobre.io.saving.case_writer import canonical_case
    from cobre.report.stored_study import StoredStudy
    from cobre.report.system_map import system_map as draw_map

    case = canonical_case(case) if isinstance(case, Case) else load_case(Path(case))
    return draw_map(StoredStudy(stages_and_entities(case)))


def study_record(ready: ReadyStudy, request: CaseRequest) -> dict[str, Any]:
    """Return the content of study.json: the case, its settings, digests and versions."""
    case = ready.study.case
    source = request.case
    return {
        "format_version": 1,
        "name": case.name,
        "case": str(source.absolute()) if isinstance(source, Path) else "",
        "case_files": file_digests(source) if isinstance(source, Path) else {},
        "config_overrides": plain(dict(request.overrides or {})),
        "problem": ready.study.digest,
        **stages_and_entities(case),
        "line_limits": _line_limits(ready),
        "config": config_document(case.config),
        "is_risk_averse": ready.study.is_risk_averse,
        "method": _method(case),
        "versions": software_versions() | {"solver": ready.solver.version},
        "warnings": list(ready.warnings),
        **_past_inflows(ready),
        **_conversion(source),
    }


def _method(case: Case) -> dict[str, Any]:
    """Return what defines the problem besides config.json: openings, risk measure and discount, by ranges of stages."""
    stages = case.horizon.stages
    return {
        "annual_discount_rate": case.horizon.policy_graph.annual_discount_rate,
        "discount_by_stage": _ranges((stage.id, stage.annual_discount_rate_override) for stage in stages),
        "openings": _ranges((stage.id, stage.num_openings) for stage in stages),
        "risk_measure": _ranges((stage.id, _risk(stage)) for stage in stages),
        "sampling_method": _ranges((stage.id, stage.sampling_method) for stage in stages),
        "forward_passes": None if case.config.training.is_enumerated else case.config.training.forward_passes,
        "tree_seed": case.config.training.tree_seed,
        "simulation_seed": None
        if case.config.simulation.scenario_source is None
        else case.config.simulation.scenario_source.seed,
    }


def _risk(stage: Stage) -> dict[str, float] | str:
    if stage.risk is None or stage.risk.is_expectation:
        return "expectation"
    return {"alpha": stage.risk.alpha, "lambda": stage.risk.lambda_}


def _ranges(values: Iterable[tuple[int, Any]]) -> list[dict[str, Any]]:
    """Group consecutive stages that have the same value; stages without one are left out."""
    ranges: list[dict[str, Any]] = []
    for value, group in groupby(values, key=itemgetter(1)):
        ids = [stage for stage, _ in group]
        if value is not None:
            ranges.append({"first_stage": ids[0], "last_stage": ids[-1], "value": value})
    return ranges


def _past_inflows(ready: ReadyStudy) -> dict[str, Any]:
    """Return inflows before the study, which a study whose boundary is this policy may need."""
    horizon, noise = ready.study.case.horizon, ready.study.noise
    if horizon.season_definitions is None or noise.lag_steps is not None or not len(noise.initial_lags):
        return {}
    periods = season_cycle(horizon).past_periods(horizon.stages[0].start_date, len(noise.initial_lags))
    return {"inflow_lags": lag_records(periods, noise.initial_lags)}


def _conversion(source: object) -> dict[str, Any]:
    """Return the record of the deck that a bridge converted; empty for other cases."""
    conversion = read_conversion(source) if isinstance(source, Path) else None
    return {} if conversion is None else {"conversion": conversion}


def _line_limits(ready: ReadyStudy) -> list[dict[str, Any]]:
    """Return the flow limits of lines in MW, both ways, by stage and block."""
    numbers = [lp.plan.data.line for lp in ready.study.problem.stages]
    return [
        {
            "id": line.id,
            "direct_mw": [_finite(stage.direct_mw[index]) for stage in numbers],
            "reverse_mw": [_finite(stage.reverse_mw[index]) for stage in numbers],
        }
        for index, line in enumerate(ready.study.case.system.lines)
    ]


def _finite(values: Floats) -> list[float | None]:
    """Replace infinite numbers, which JSON does not know, by None."""
    return [value if math.isfinite(value) else None for value in values.tolist()]

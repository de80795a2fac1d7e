"""The limits of every entity in every stage, with all overrides applied."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import System
from cobre.core.stage_data import StageData
from cobre.sddp.problem.prepared import PreparedStudy

ENTITIES = {
    "hydro": 0,
    "thermal": 1,
    "bus": 2,
    "line": 3,
    "pumping_station": 4,
    "contract": 5,
    "non_controllable": 7,
    "hydro_unit_group": 8,
}
# Type and id of the entity, the plant of a unit group, stage, block, kind of limit, limit.
Bound = tuple[int, int, int | None, int, int | None, int, float]


def bound_columns(study: PreparedStudy) -> dict[str, Any]:
    """The columns of bounds.parquet, sorted by entity and stage as cobre-python sorts them."""
    rows = [row for lp in study.problem.stages for row in bound_rows(study.case.system, lp.plan.data)]
    rows.sort(key=_sort_key)
    names = ("entity_type_code", "entity_id", "hydro_id", "stage_id", "block_id", "bound_type_code", "bound_value")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=False))


def _sort_key(row: Bound) -> tuple[int, ...]:
    """By entity, stage, kind of limit and block; rows of a plant or stage precede those of its groups or blocks."""
    kind, entity, plant, stage, block, code, _ = row
    return kind, -1 if plant is None else plant, entity, stage, code, -1 if block is None else block


def bound_rows(system: System, data: StageData) -> Iterator[Bound]:
    """The finite limits of a stage, and those of blocks that differ from it."""
    yield from _bounds("hydro", system.hydros, data, _hydro_limits(data))
    thermal, line, pumping, contract = data.thermal, data.line, data.pumping, data.contract
    yield from _bounds("thermal", system.thermals, data, {6: thermal.min_mw, 7: thermal.max_mw})
    yield from _bounds("line", system.lines, data, {8: np.zeros_like(line.direct_mw), 9: line.direct_mw})
    yield from _bounds("pumping_station", system.pumping_stations, data, {8: pumping.min_m3s, 9: pumping.max_m3s})
    yield from _bounds("contract", system.energy_contracts, data, {8: contract.min_mw, 9: contract.max_mw})
    group = data.group
    limits = {
        2: group.min_turbined_m3s,
        3: group.max_turbined_m3s,
        6: group.min_generation_mw,
        7: group.max_generation_mw,
    }
    groups = [(hydro.id, entry) for hydro in system.hydros for entry in hydro.unit_groups]
    owners = [hydro_id for hydro_id, _ in groups]
    yield from _bounds("hydro_unit_group", [entry for _, entry in groups], data, limits, owners)


def _hydro_limits(data: StageData) -> dict[int, Floats]:
    hydro = data.hydro
    return {
        0: hydro.min_storage_hm3[:, None],
        1: hydro.max_storage_hm3[:, None],
        2: hydro.min_turbined_m3s,
        3: hydro.max_turbined_m3s,
        4: hydro.min_outflow_m3s,
        5: hydro.max_outflow_m3s,
        6: hydro.min_generation_mw,
        7: hydro.max_generation_mw,
    }


def _bounds(
    kind: str,
    entities: Sequence[Any],
    data: StageData,
    limits: Mapping[int, Floats],
    owners: Sequence[int] | None = None,
) -> Iterator[Bound]:
    for index, entity in enumerate(entities):
        owner = None if owners is None else owners[index]
        for code, values in limits.items():
            for block, limit in _by_block(np.atleast_1d(values[index])):
                if np.isfinite(limit):
                    yield ENTITIES[kind], entity.id, owner, data.stage.id, block, code, limit


def _by_block(limits: Floats) -> Iterator[tuple[int | None, float]]:
    """The most frequent limit, for the stage (None), then the limits of blocks that differ from it."""
    values, counts = np.unique(limits, return_counts=True)
    usual = float(values[np.argmax(counts)])
    yield None, usual
    yield from ((block, float(limit)) for block, limit in enumerate(limits) if limit != usual)

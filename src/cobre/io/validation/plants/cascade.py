"""The cascade: no plant may receive its own water back, other than by pumping."""

import numpy as np

from cobre.core.case import ABSENT_ID, Case
from cobre.core.entities import PumpingStation, is_in_service
from cobre.core.hydro import Hydro
from cobre.io.input_files.entities import HYDROS, STATIONS
from cobre.io.validation.layer_findings import Findings, Rule, named, with_ids


def acyclic_cascade(case: Case, findings: Findings) -> None:
    """Turbined, spilled and diverted water must not flow in a cycle."""
    targets = {hydro.id: _targets(hydro) for hydro in case.system.hydros}
    circle = _find_circle(targets)
    if circle:
        way = " -> ".join(str(id_) for id_ in (*circle, circle[0]))
        message = f"the cascade contains a cycle: {way}"
        remedy = "change downstream_id or diversion.downstream_id of one of them"
        findings.error(HYDROS, f"hydros {', '.join(str(id_) for id_ in circle)}", "downstream_id", message, remedy)


def _targets(hydro: Hydro) -> list[int]:
    diverted = hydro.diversion.downstream_id if hydro.diversion else None
    return [target for target in (hydro.downstream_id, diverted) if target is not None]


def _find_circle(targets: dict[int, list[int]]) -> list[int]:
    """A cycle of plants, or none: plants whose water leaves the system are removed until only cycles are left."""
    left = dict(targets)
    while True:
        draining = [id_ for id_, ways in left.items() if not any(way in left for way in ways)]
        if not draining:
            break
        for id_ in draining:
            del left[id_]
    if not left:
        return []
    path = [min(left)]
    while True:
        step = next(way for way in left[path[-1]] if way in left)
        if step in path:
            return path[path.index(step) :]
        path.append(step)


def stations_join_two_reservoirs(case: Case, findings: Findings) -> None:
    """A pumping station must join two different reservoirs."""
    for station in case.system.pumping_stations:
        if station.source_hydro_id == station.destination_hydro_id:
            message = "is the same reservoir as source_hydro_id"
            findings.error(STATIONS, named("pumping station", station), "destination_hydro_id", message, "another one")


def stations_join_plants_in_service(case: Case, findings: Findings) -> None:
    """Water is pumped from plants in service to plants that are in service or being filled."""
    hydros = {hydro.id: hydro for hydro in case.system.hydros}
    for station in case.system.pumping_stations:
        working = [stage.id for stage in case.horizon.stages if _can_pump(case, station, stage.id)]
        ends = (
            ("source_hydro_id", hydros[station.source_hydro_id], is_in_service),
            ("destination_hydro_id", hydros[station.destination_hydro_id], _takes_water),
        )
        for field, hydro, is_there in ends:
            without = [stage_id for stage_id in working if not is_there(hydro, stage_id)]
            if without:
                message = f"hydro {hydro.id} ({hydro.name}) does not exist in {with_ids('stage', without)}"
                remedy = "entry_stage_id and exit_stage_id of the station within those of the plant, or a maximum of 0"
                findings.error(STATIONS, named("pumping station", station), field, message, remedy)


def _can_pump(case: Case, station: PumpingStation, stage_id: int) -> bool:
    if not is_in_service(station, stage_id):
        return False
    table = case.overrides.pumping_bounds
    if table is None:
        return station.flow.max_m3s > 0
    rows = (table["pumping_station_id"] == station.id) & (table["stage_id"] == stage_id)
    given = table["max_m3s"][rows]
    given = given[~np.isnan(given)]
    has_other_blocks = not (table["block_id"][rows] == ABSENT_ID).any()
    return bool((given > 0).any()) or (has_other_blocks and station.flow.max_m3s > 0)


def _takes_water(hydro: Hydro, stage_id: int) -> bool:
    entry = hydro.entry_stage_id
    is_filling = hydro.filling is not None and entry is not None and hydro.filling.start_stage_id <= stage_id < entry
    return is_filling or is_in_service(hydro, stage_id)


RULES: tuple[Rule, ...] = (acyclic_cascade, stations_join_two_reservoirs, stations_join_plants_in_service)

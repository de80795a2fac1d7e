"""The cascade: no plant may receive its own water back, other than by pumping."""

from itertools import pairwise

import numpy as np

from cobre.core.arrays import HOURS_PER_DAY, MONTHS_PER_YEAR, sum_in_order
from cobre.core.case import ABSENT_ID, Case
from cobre.core.entities import PumpingStation, is_in_service
from cobre.core.hydro import Evaporation, Hydro
from cobre.core.travel_time import PastRelease, travel_arcs
from cobre.io.input_files import entities, stages_file
from cobre.io.input_files.entities import HYDROS, STATIONS
from cobre.io.input_files.table_formats import PRODUCTION_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, listed, named, with_ids


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


# Travel times: arcs with a downstream plant, and past releases for water in transit when the study begins.


FIELD = "past_defluences"


def travel_times_have_effect(case: Case, findings: Findings) -> None:
    """Warn of travel times of zero or without a downstream plant, and of those longer than the study."""
    total = sum_in_order(stage.hours for stage in case.horizon.stages)
    for hydro in case.system.hydros:
        hours, entity = hydro.travel_time_hours, named("hydro", hydro)
        if hours is None:
            continue
        if hours == 0.0:
            message = "is 0 and has no effect: water arrives at once"
            findings.warn(entities.HYDROS, entity, "travel_time_hours", message, "null means the same")
        elif hydro.downstream_id is None:
            message = "has no effect: there is no plant downstream"
            findings.warn(entities.HYDROS, entity, "travel_time_hours", message)
        elif hours >= total and case.config.policy.boundary is None:
            message = f"is {hours:g}, and the study has {total:g} hours: its releases never arrive"
            findings.warn(entities.HYDROS, entity, "travel_time_hours", message)


def one_time_into_a_plant_with_chronological_blocks(case: Case, findings: Findings) -> None:
    """Chronological blocks need one travel time per target: water of several arcs is stored as one volume."""
    stages = [
        stage.id for stage in case.horizon.stages if stage.block_mode == "chronological" and len(stage.blocks) > 1
    ]
    if not stages:
        return
    for hydro in case.system.hydros:
        hours = {arc.hours for arc in travel_arcs(case.system.hydros) if arc.downstream_id == hydro.id}
        if len(hours) > 1:
            shown = ", ".join(f"{value:g}" for value in sorted(hours))
            message = (
                f"water arrives after {shown} hours, but the blocks of {with_ids('stage', stages)} are chronological"
            )
            remedy = f"one travel time for all plants upstream, or parallel blocks in {stages_file.FILE}"
            findings.error(entities.HYDROS, named("hydro", hydro), "travel_time_hours", message, remedy)


def releases_before_the_study(case: Case, findings: Findings) -> None:
    """Windows end before the study, do not overlap, and belong to plants with a travel time."""
    known = {hydro.id for hydro in case.system.hydros}
    arcs = {arc.hydro_id for arc in travel_arcs(case.system.hydros)}
    start, file = case.horizon.stages[0].start_date, entities.CONDITIONS_FILE
    for id_ in sorted({row.hydro_id for row in case.initial_conditions.past_releases} - known):
        findings.error(file, "", f"{FIELD}.hydro_id", f"there is no hydro {id_}", f"declared: {listed(known)}")
    for row in case.initial_conditions.past_releases:
        entity = f"hydro {row.hydro_id}, window from {row.start_date}"
        if row.hydro_id in known - arcs:
            findings.warn(file, entity, FIELD, "has no effect: the plant has no travel time to a plant downstream")
        if row.end_date <= row.start_date:
            message = f"is {row.end_date}, not after start_date, which is {row.start_date}"
            findings.error(file, entity, f"{FIELD}.end_date", message, "the first day after the window")
        if row.end_date > start:
            message = f"is {row.end_date}, after the study starts on {start}"
            findings.error(file, entity, f"{FIELD}.end_date", message, f"{start} or earlier")
        findings.demand_not_negative(row.value_m3s, file, entity, f"{FIELD}.value_m3s")
    for first, second in pairwise(case.initial_conditions.past_releases):
        if first.hydro_id == second.hydro_id and second.start_date < first.end_date:
            message = f"the window from {second.start_date} begins before the one from {first.start_date} ends"
            findings.error(
                file, f"hydro {first.hydro_id}", f"{FIELD}.start_date", message, "windows that do not overlap"
            )


def releases_cover_the_travel_time(case: Case, findings: Findings) -> None:
    """Past releases cover the travel time, so that water in transit at the start is known."""
    start = case.horizon.stages[0].start_date
    for arc in travel_arcs(case.system.hydros):
        rows = [row for row in case.initial_conditions.past_releases if row.hydro_id == arc.hydro_id]
        covered = _hours_back(rows, start.toordinal())
        if covered < arc.hours:
            message = (
                f"water takes {arc.hours:g} hours to hydro {arc.downstream_id}, and releases are known for the "
                f"{covered:g} hours before {start}"
            )
            remedy = "windows without gaps that go back that far"
            findings.error(entities.CONDITIONS_FILE, f"hydro {arc.hydro_id}", FIELD, message, remedy)


def _hours_back(rows: list[PastRelease], start: int) -> float:
    """Hours that windows reach back from a day without a gap."""
    reached = start
    for row in sorted(rows, key=lambda row: row.end_date, reverse=True):
        if row.end_date.toordinal() < reached:
            break
        reached = min(reached, row.start_date.toordinal())
    return (start - reached) * HOURS_PER_DAY


TRAVEL_TIME_RULES: tuple[Rule, ...] = (
    travel_times_have_effect,
    one_time_into_a_plant_with_chronological_blocks,
    releases_before_the_study,
    releases_cover_the_travel_time,
)


# Plants: twelve months of evaporation, geometry where it is needed.


GEOMETRY_FILE = PRODUCTION_TABLES["geometry"].file


def evaporation_by_month(case: Case, findings: Findings) -> None:
    """One coefficient, and one reference volume, for each month."""
    for hydro in case.system.hydros:
        if hydro.evaporation is not None:
            _check_months(hydro, hydro.evaporation, findings)


def _check_months(hydro: Hydro, evaporation: Evaporation, findings: Findings) -> None:
    lists = {
        "coefficients_mm": evaporation.coefficients_mm,
        "reference_volumes_hm3": evaporation.reference_volumes_hm3,
    }
    for field, values in lists.items():
        if values is not None and len(values) != MONTHS_PER_YEAR:
            message = f"has {len(values)} numbers"
            findings.error(HYDROS, named("hydro", hydro), f"evaporation.{field}", message, "12, one for each month")


def geometry_for_evaporation(case: Case, findings: Findings) -> None:
    """Evaporation needs the area of the reservoir."""
    present = geometry_points(case)
    for hydro in case.system.hydros:
        if hydro.evaporation is not None and present.get(hydro.id, 0) == 0:
            message = "has evaporation, but no geometry"
            findings.error(GEOMETRY_FILE, named("hydro", hydro), "", message, "rows of volume, height and area")


def geometry_points(case: Case) -> dict[int, int]:
    """Rows of hydro_geometry.parquet by plant."""
    counts: dict[int, int] = {}
    table = case.production.geometry
    for hydro_id in [] if table is None else table["hydro_id"].tolist():
        counts[hydro_id] = counts.get(hydro_id, 0) + 1
    return counts


DIMENSION_RULES: tuple[Rule, ...] = (evaporation_by_month, geometry_for_evaporation)

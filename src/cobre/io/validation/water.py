"""Water in hydros.json, pumping_stations.json and initial_conditions.json: cascade, travel times, storages, filling."""

from itertools import pairwise

import numpy as np

from cobre.core.arrays import HM3_PER_M3S_HOUR, HOURS_PER_DAY, MONTHS_PER_YEAR, sum_in_order
from cobre.core.case import ABSENT_ID, Case
from cobre.core.delays import PastRelease, travel_arcs
from cobre.core.entities import PumpingStation, is_in_service
from cobre.core.file_names import CONDITIONS_FILE, CONFIG_FILE, HYDROS_FILE, STAGES_FILE, STATIONS_FILE
from cobre.core.hydro import Filling, Hydro
from cobre.io.findings import (
    Findings,
    IdList,
    Layer,
    about,
    error_code,
    named,
    stages,
    warning_code,
)
from cobre.io.validation.rules import (
    END_NOT_AFTER_START,
    ENDS_AFTER_STUDY_START,
    NEGATIVE,
    OVERRIDES,
    PRODUCTIONS,
    WINDOWS_OVERLAP,
    Rule,
    require_not_negative,
    rule,
)

GEOMETRY = PRODUCTIONS["geometry"]
RELEASES = "past_defluences"

# Evaporation.

MONTHS = error_code(
    "evaporation-months", Layer.DIMENSIONS, "has {value} numbers", expected=f"{MONTHS_PER_YEAR}, one for each month"
)

NO_GEOMETRY = error_code(
    "evaporation-without-geometry",
    Layer.DIMENSIONS,
    "has evaporation, but no geometry",
    expected="rows of volume, height and area",
)


@rule(HYDROS_FILE)
def evaporation_by_month(case: Case, findings: Findings) -> None:
    """Require one coefficient, and one reference volume, for each month."""
    for hydro in case.system.hydros:
        for name in ("coefficients_mm", "reference_volumes_hm3") if hydro.evaporation is not None else ():
            values = getattr(hydro.evaporation, name)
            if values is not None and len(values) != MONTHS_PER_YEAR:
                findings.add(MONTHS, HYDROS_FILE, named("hydro", hydro), f"evaporation.{name}", value=len(values))


@rule(HYDROS_FILE, GEOMETRY)
def geometry_for_evaporation(case: Case, findings: Findings) -> None:
    """Require the area of a reservoir with evaporation."""
    present = geometry_points(case)
    for hydro in case.system.hydros:
        if hydro.evaporation is not None and present.get(hydro.id, 0) == 0:
            findings.add(NO_GEOMETRY, GEOMETRY, named("hydro", hydro))


def geometry_points(case: Case) -> dict[int, int]:
    """Return the rows of hydro_geometry.parquet by plant."""
    table = case.production.geometry
    if table is None:
        return {}
    ids, counts = np.unique(table["hydro_id"], return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


DIMENSION_RULES: tuple[Rule, ...] = (evaporation_by_month, geometry_for_evaporation)

# The cascade: no plant may receive its own water back, other than by pumping.

CYCLE = error_code(
    "cascade-cycle",
    Layer.MEANING,
    "the cascade contains a cycle: {value}",
    remedy="change downstream_id or diversion.downstream_id of one of them",
)

PUMPING_IN_PLACE = error_code(
    "pumping-in-place", Layer.MEANING, "is the same reservoir as source_hydro_id", expected="another one"
)

PUMPING_WITHOUT_PLANT = error_code(
    "pumping-without-plant",
    Layer.MEANING,
    "hydro {hydro} ({name}) does not exist in {value}",
    expected="entry_stage_id and exit_stage_id of the station within those of the plant, or a maximum of 0",
)


@rule(HYDROS_FILE)
def acyclic_cascade(case: Case, findings: Findings) -> None:
    """Refuse a cascade in which turbined, spilled or diverted water flows in a cycle."""
    cycle = _find_cycle({hydro.id: _targets(hydro) for hydro in case.system.hydros})
    if cycle:
        way = " -> ".join(str(id_) for id_ in (*cycle, cycle[0]))
        subject = about("hydros", ", ".join(map(str, cycle)))
        findings.add(CYCLE, HYDROS_FILE, subject, "downstream_id", value=way)


def _targets(hydro: Hydro) -> list[int]:
    diverted = hydro.diversion.downstream_id if hydro.diversion else None
    return [target for target in (hydro.downstream_id, diverted) if target is not None]


def _find_cycle(targets: dict[int, list[int]]) -> list[int]:
    """Return a cycle of plants, or none, by removing plants whose water leaves until only cycles are left."""
    left = dict(targets)
    while draining := [id_ for id_, ways in left.items() if not any(way in left for way in ways)]:
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


@rule(STATIONS_FILE)
def stations_join_two_reservoirs(case: Case, findings: Findings) -> None:
    """Require pumping stations that join two different reservoirs."""
    for station in case.system.pumping_stations:
        if station.source_hydro_id == station.destination_hydro_id:
            subject = named("pumping station", station)
            findings.add(
                PUMPING_IN_PLACE, STATIONS_FILE, subject, "destination_hydro_id", value=station.source_hydro_id
            )


@rule(HYDROS_FILE, STAGES_FILE, OVERRIDES["pumping_bounds"], error_free=(STATIONS_FILE,))
def stations_join_plants_in_service(case: Case, findings: Findings) -> None:
    """Require pumping from plants in service to plants that are in service or being filled."""
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
                facts = {"hydro": hydro.id, "name": hydro.name, "value": stages(without)}
                findings.add(PUMPING_WITHOUT_PLANT, STATIONS_FILE, named("pumping station", station), field, **facts)


def _can_pump(case: Case, station: PumpingStation, stage_id: int) -> bool:
    if not is_in_service(station, stage_id):
        return False
    table = case.overrides.pumping_bounds
    if table is None:
        return station.flow.max_m3s > 0
    rows = (table["pumping_station_id"] == station.id) & (table["stage_id"] == stage_id)
    maximums = table["max_m3s"][rows]
    maximums = maximums[~np.isnan(maximums)]
    has_other_blocks = not (table["block_id"][rows] == ABSENT_ID).any()
    return bool((maximums > 0).any()) or (has_other_blocks and station.flow.max_m3s > 0)


def _takes_water(hydro: Hydro, stage_id: int) -> bool:
    entry = hydro.entry_stage_id
    is_filling = hydro.filling is not None and entry is not None and hydro.filling.start_stage_id <= stage_id < entry
    return is_filling or is_in_service(hydro, stage_id)


# Travel times: arcs with a downstream plant, and past releases for water in transit when the study begins.

TRAVEL_TIME_OF_ZERO = warning_code(
    "travel-time-of-zero",
    Layer.MEANING,
    "is 0 and has no effect: water arrives at once",
    remedy="null means the same",
)

TRAVEL_TIME_TO_NOWHERE = warning_code(
    "travel-time-to-nowhere", Layer.MEANING, "has no effect: there is no plant downstream"
)

TRAVEL_TIME_BEYOND_STUDY = warning_code(
    "travel-time-beyond-study",
    Layer.MEANING,
    "is {value:g}, and the study has {hours:g} hours: its releases never arrive",
)

SEVERAL_TRAVEL_TIMES = error_code(
    "several-travel-times",
    Layer.MEANING,
    "water arrives after {value} hours, but the blocks of {stages} are chronological",
    expected=f"one travel time for all plants upstream, or parallel blocks in {STAGES_FILE}",
)

RELEASE_OF_UNKNOWN_PLANT = error_code(
    "release-of-unknown-plant", Layer.MEANING, "there is no hydro {value}", remedy="declared: {declared}"
)

RELEASE_WITHOUT_EFFECT = warning_code(
    "release-without-effect",
    Layer.MEANING,
    "has no effect: the plant has no travel time to a plant downstream",
)

RELEASES_TOO_SHORT = error_code(
    "releases-too-short",
    Layer.MEANING,
    "water takes {hours:g} hours to hydro {downstream}, and releases are known for the {value:g} hours before {start}",
    expected="windows without gaps that go back that far",
)


@rule(HYDROS_FILE, STAGES_FILE, CONFIG_FILE)
def travel_times_have_effect(case: Case, findings: Findings) -> None:
    """Warn of travel times of zero or without a downstream plant, and of those longer than the study."""
    total = sum_in_order(stage.hours for stage in case.horizon.stages)
    for hydro in case.system.hydros:
        hours, subject, field = hydro.travel_time_hours, named("hydro", hydro), "travel_time_hours"
        if hours is None:
            continue
        if hours == 0.0:
            findings.add(TRAVEL_TIME_OF_ZERO, HYDROS_FILE, subject, field, value=hours)
        elif hydro.downstream_id is None:
            findings.add(TRAVEL_TIME_TO_NOWHERE, HYDROS_FILE, subject, field, value=hours)
        elif hours >= total and case.config.policy.boundary is None:
            findings.add(TRAVEL_TIME_BEYOND_STUDY, HYDROS_FILE, subject, field, value=hours, hours=total)


@rule(HYDROS_FILE, STAGES_FILE)
def one_travel_time_into_a_plant(case: Case, findings: Findings) -> None:
    """Require one travel time per target with chronological blocks: water of several arcs is stored as one volume."""
    chronological = [
        stage.id for stage in case.horizon.stages if stage.block_mode == "chronological" and len(stage.blocks) > 1
    ]
    if not chronological:
        return
    arcs = travel_arcs(case.system.hydros)
    for hydro in case.system.hydros:
        hours = {arc.hours for arc in arcs if arc.downstream_id == hydro.id}
        if len(hours) > 1:
            times = ", ".join(f"{value:g}" for value in sorted(hours))
            facts = {"value": times, "stages": stages(chronological)}
            findings.add(SEVERAL_TRAVEL_TIMES, HYDROS_FILE, named("hydro", hydro), "travel_time_hours", **facts)


@rule(HYDROS_FILE, STAGES_FILE, CONDITIONS_FILE)
def releases_before_the_study(case: Case, findings: Findings) -> None:
    """Require past releases that end before the study, do not overlap, and belong to plants with a travel time."""
    hydro_ids = {hydro.id for hydro in case.system.hydros}
    arcs = {arc.hydro_id for arc in travel_arcs(case.system.hydros)}
    start, file = case.horizon.stages[0].start_date, CONDITIONS_FILE
    for id_ in sorted({row.hydro_id for row in case.initial_conditions.past_releases} - hydro_ids):
        findings.add(RELEASE_OF_UNKNOWN_PLANT, file, (), f"{RELEASES}.hydro_id", value=id_, declared=IdList(hydro_ids))
    for row in case.initial_conditions.past_releases:
        subject, end = about("hydro", row.hydro_id, "window from", str(row.start_date)), f"{RELEASES}.end_date"
        if row.hydro_id in hydro_ids - arcs:
            findings.add(RELEASE_WITHOUT_EFFECT, file, subject, RELEASES)
        if row.end_date <= row.start_date:
            facts = {"value": row.end_date, "start": row.start_date, "period": "window"}
            findings.add(END_NOT_AFTER_START, file, subject, end, **facts)
        if row.end_date > start:
            findings.add(ENDS_AFTER_STUDY_START, file, subject, end, value=row.end_date, start=start)
        require_not_negative(row.value_m3s, file, subject, f"{RELEASES}.value_m3s", findings)
    for first, second in pairwise(case.initial_conditions.past_releases):
        if first.hydro_id == second.hydro_id and second.start_date < first.end_date:
            facts = {"value": second.start_date, "before": first.start_date}
            findings.add(WINDOWS_OVERLAP, file, about("hydro", first.hydro_id), f"{RELEASES}.start_date", **facts)


@rule(HYDROS_FILE, STAGES_FILE, CONDITIONS_FILE)
def releases_cover_the_travel_time(case: Case, findings: Findings) -> None:
    """Require past releases that cover the travel time, so that water in transit at the start is known."""
    start = case.horizon.stages[0].start_date
    for arc in travel_arcs(case.system.hydros):
        rows = [row for row in case.initial_conditions.past_releases if row.hydro_id == arc.hydro_id]
        covered = _hours_back(rows, start.toordinal())
        if covered < arc.hours:
            facts = {"hours": arc.hours, "downstream": arc.downstream_id, "value": covered, "start": start}
            findings.add(RELEASES_TOO_SHORT, CONDITIONS_FILE, about("hydro", arc.hydro_id), RELEASES, **facts)


def _hours_back(rows: list[PastRelease], start: int) -> float:
    """Return the hours that windows reach back from a day without a gap."""
    reached = start
    for row in sorted(rows, key=lambda row: row.end_date, reverse=True):
        if row.end_date.toordinal() < reached:
            break
        reached = min(reached, row.start_date.toordinal())
    return (start - reached) * HOURS_PER_DAY


# Initial storages and the filling of new reservoirs.

RELATIVE_TOLERANCE = 1e-6
FILLING_RATE = "filling.filling_min_rate_m3s"

STORAGE_OUTSIDE_LIMITS = warning_code(
    "initial-storage-outside-limits",
    Layer.MEANING,
    "is {value:g}, outside the limits {low:g} to {high:g}: the study starts from {limit:g}",
)

STORAGE_MISSING_BELOW_LIMIT = warning_code(
    "initial-storage-missing-below-limit",
    Layer.MEANING,
    "is missing, so it is taken as 0, outside the limits {low:g} to {high:g}: the study starts from {limit:g}",
)

STORAGE_MISSING = warning_code(
    "initial-storage-missing", Layer.MEANING, "is missing: the study starts with an empty reservoir"
)

FILLING_STORAGE_OF_OTHER = error_code(
    "filling-storage-of-other-plant",
    Layer.MEANING,
    "the plant has no `filling`",
    remedy="give it in `storage`",
)

STORAGE_OF_FILLING = error_code(
    "storage-of-filling-plant",
    Layer.MEANING,
    "the plant is being filled",
    remedy="give it in `filling_storage`",
)

FILLING_STORAGE_MISSING = warning_code(
    "filling-storage-missing", Layer.MEANING, "is missing: filling starts from empty"
)

FILLING_STORAGE_ABOVE_MAXIMUM = error_code(
    "filling-storage-above-maximum",
    Layer.MEANING,
    "is {value:g}, above the plant's maximum, {maximum:g}",
    expected="at most {maximum:g}",
)

FILLING_STAGE = error_code(
    "filling-stage-unknown",
    Layer.MEANING,
    "is {value}, not a stage of the study",
    expected="a stage of the study",
)

FILLING_WITH_EXIT = error_code(
    "filling-with-exit",
    Layer.MEANING,
    "is given for a plant that is being filled",
    remedy="leave it out",
)

FILLING_WITHOUT_ENTRY = error_code(
    "filling-without-entry",
    Layer.MEANING,
    "is missing: filling ends when the plant enters",
    expected="the stage of entry",
)

FILLING_AFTER_ENTRY = error_code(
    "entry-before-filling",
    Layer.MEANING,
    "is {value}, not after the start of filling",
    expected="a later stage",
)

FILLING_TOO_SLOW = error_code(
    "filling-too-slow",
    Layer.MEANING,
    "is too low: {reached:g} hm3 are reached before stage {entry}, and the dead volume is {needed:g} hm3",
    expected="a higher rate, an earlier start or a later entry",
)

STORAGE_NOT_IN_STATE = warning_code(
    "storage-not-in-state",
    Layer.MEANING,
    "is false in {value}: storages are in the state anyway",
    expected="true: a valid bound needs them",
)


@rule(STAGES_FILE, HYDROS_FILE)
def storages_are_carried(case: Case, findings: Findings) -> None:
    """Warn where state_variables leaves storages out: cuts include them anyway, or the lower bound would be wrong."""
    without = [stage.id for stage in case.horizon.stages if not stage.state_variables.storage]
    if without and case.system.hydros:
        findings.add(STORAGE_NOT_IN_STATE, STAGES_FILE, (), "state_variables.storage", value=stages(without))


@rule(HYDROS_FILE, CONDITIONS_FILE)
def initial_storage(case: Case, findings: Findings) -> None:
    """Warn of volumes outside the limits, which are moved to the nearest limit, and of missing ones."""
    field = "storage.value_hm3"
    for hydro in case.system.hydros:
        if hydro.filling is not None:
            continue
        storage = case.initial_conditions.storage_hm3.get(hydro.id)
        low, high = hydro.reservoir.min_storage_hm3, hydro.reservoir.max_storage_hm3
        value, subject = storage or 0.0, named("hydro", hydro)
        if value < low or value > high:
            code = STORAGE_MISSING_BELOW_LIMIT if storage is None else STORAGE_OUTSIDE_LIMITS
            facts = {"value": storage, "low": low, "high": high, "limit": low if value < low else high}
            findings.add(code, CONDITIONS_FILE, subject, field, **facts)
        elif storage is None:
            findings.add(STORAGE_MISSING, CONDITIONS_FILE, subject, field)


@rule(CONDITIONS_FILE)
def volumes_not_negative(case: Case, findings: Findings) -> None:
    """Refuse negative initial volumes."""
    conditions = case.initial_conditions
    for field, volumes in (("storage", conditions.storage_hm3), ("filling_storage", conditions.filling_storage_hm3)):
        for hydro_id, value in volumes.items():
            require_not_negative(value, CONDITIONS_FILE, about("hydro", hydro_id), f"{field}.value_hm3", findings)


@rule(HYDROS_FILE, CONDITIONS_FILE)
def filling_storage(case: Case, findings: Findings) -> None:
    """Require the initial volume of plants that are being filled, and of them only, in `filling_storage`."""
    filled = {hydro.id: hydro for hydro in case.system.hydros if hydro.filling is not None}
    conditions, file = case.initial_conditions, CONDITIONS_FILE
    for hydro_id in conditions.filling_storage_hm3:
        if hydro_id not in filled:
            findings.add(FILLING_STORAGE_OF_OTHER, file, about("hydro", hydro_id), "filling_storage.hydro_id")
    for hydro_id in conditions.storage_hm3:
        if hydro_id in filled:
            findings.add(STORAGE_OF_FILLING, file, about("hydro", hydro_id), "storage.hydro_id")
    for hydro_id, hydro in filled.items():
        subject, field = named("hydro", hydro), "filling_storage.value_hm3"
        if hydro_id not in conditions.filling_storage_hm3:
            findings.add(FILLING_STORAGE_MISSING, file, subject, field)
        value, maximum = conditions.filling_storage_hm3.get(hydro_id, 0.0), hydro.reservoir.max_storage_hm3
        if value > maximum:
            findings.add(FILLING_STORAGE_ABOVE_MAXIMUM, file, subject, field, value=value, maximum=maximum)


@rule(HYDROS_FILE, STAGES_FILE)
def filling_plans(case: Case, findings: Findings) -> None:
    """Require filling that starts in the study and ends with the entry in a later stage, and no exit stage."""
    stage_ids = {stage.id for stage in case.horizon.stages}
    for hydro in case.system.hydros:
        if hydro.filling is None:
            continue
        subject, start, entry = named("hydro", hydro), hydro.filling.start_stage_id, hydro.entry_stage_id
        if start not in stage_ids:
            findings.add(FILLING_STAGE, HYDROS_FILE, subject, "filling.start_stage_id", value=start)
        if hydro.filling.filling_min_rate_m3s < 0:
            findings.add(NEGATIVE, HYDROS_FILE, subject, FILLING_RATE, value=hydro.filling.filling_min_rate_m3s)
        if hydro.exit_stage_id is not None:
            findings.add(FILLING_WITH_EXIT, HYDROS_FILE, subject, "exit_stage_id", value=hydro.exit_stage_id)
        if entry is None:
            findings.add(FILLING_WITHOUT_ENTRY, HYDROS_FILE, subject, "entry_stage_id")
            continue
        if entry not in stage_ids:
            findings.add(FILLING_STAGE, HYDROS_FILE, subject, "entry_stage_id", value=entry)
        if entry <= start:
            findings.add(FILLING_AFTER_ENTRY, HYDROS_FILE, subject, "entry_stage_id", value=entry)


@rule(HYDROS_FILE, STAGES_FILE, CONDITIONS_FILE, OVERRIDES["hydro_bounds"])
def filling_reaches_the_dead_volume(case: Case, findings: Findings) -> None:
    """Require a minimum rate that fills the dead volume before the plant enters."""
    for hydro in case.system.hydros:
        if hydro.filling is None or hydro.entry_stage_id is None:
            continue
        start = case.initial_conditions.filling_storage_hm3.get(hydro.id, 0.0)
        reached = start + _filled_hm3(case, hydro, hydro.filling)
        needed = _dead_volume_hm3(case, hydro)
        if reached < needed * (1 - RELATIVE_TOLERANCE):
            facts = {"reached": reached, "entry": hydro.entry_stage_id, "needed": needed}
            rate = hydro.filling.filling_min_rate_m3s
            findings.add(FILLING_TOO_SLOW, HYDROS_FILE, named("hydro", hydro), FILLING_RATE, value=rate, **facts)


def _filled_hm3(case: Case, hydro: Hydro, filling: Filling) -> float:
    rates = _values_of_stages(case, hydro.id, "filling_min_rate_m3s")
    end, rate = hydro.entry_stage_id or 0, filling.filling_min_rate_m3s
    filled = [stage for stage in case.horizon.stages if filling.start_stage_id <= stage.id < end]
    return sum_in_order(HM3_PER_M3S_HOUR * stage.hours * rates.get(stage.id, rate) for stage in filled)


def _dead_volume_hm3(case: Case, hydro: Hydro) -> float:
    """Return the minimum storage of the last stage of filling."""
    filling = [stage.id for stage in case.horizon.stages if stage.id < (hydro.entry_stage_id or 0)]
    declared = hydro.reservoir.min_storage_hm3
    return _values_of_stages(case, hydro.id, "min_storage_hm3").get(filling[-1], declared) if filling else declared


def _values_of_stages(case: Case, hydro_id: int, column: str) -> dict[int, float]:
    table = case.overrides.hydro_bounds
    if table is None:
        return {}
    rows = (table["hydro_id"] == hydro_id) & ~np.isnan(table[column])
    return dict(zip(table["stage_id"][rows].tolist(), table[column][rows].tolist(), strict=True))


RULES: tuple[Rule, ...] = (
    acyclic_cascade,
    stations_join_two_reservoirs,
    stations_join_plants_in_service,
    storages_are_carried,
    initial_storage,
    volumes_not_negative,
    filling_storage,
    filling_plans,
    filling_reaches_the_dead_volume,
    travel_times_have_effect,
    one_travel_time_into_a_plant,
    releases_before_the_study,
    releases_cover_the_travel_time,
)

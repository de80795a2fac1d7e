"""Limits of entities: none negative, no minimum above its maximum, entry before exit."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np

from cobre.core.arrays import HM3_PER_M3S_HOUR, sum_in_order
from cobre.core.case import Case
from cobre.core.hydro import Filling, Hydro
from cobre.io.input_files import entities
from cobre.io.input_files.entities import CONDITIONS_FILE, HYDROS
from cobre.io.input_files.stages_file import FILE as STAGES_FILE
from cobre.io.input_files.table_formats import OVERRIDE_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, named, with_ids

TOLERANCE = 1e-6


Group = tuple[str, str, Sequence[Any]]


def _groups(case: Case) -> Iterator[Group]:
    system = case.system
    yield entities.LINES, "line", system.lines
    yield entities.THERMALS, "thermal", system.thermals
    yield entities.HYDROS, "hydro", system.hydros
    yield entities.SOURCES, "non-controllable source", system.non_controllable_sources
    yield entities.STATIONS, "pumping station", system.pumping_stations
    yield entities.CONTRACTS, "contract", system.energy_contracts


# By file: fields that must not be negative, and pairs of a minimum and a maximum.
NOT_NEGATIVE: dict[str, tuple[str, ...]] = {
    entities.LINES: ("capacity.direct_mw", "capacity.reverse_mw", "losses_percent"),
    entities.THERMALS: ("generation.min_mw", "cost_per_mwh"),
    entities.HYDROS: (
        "reservoir.min_storage_hm3",
        "outflow.min_outflow_m3s",
        "generation.min_turbined_m3s",
        "generation.min_generation_mw",
    ),
    entities.SOURCES: ("max_generation_mw",),
    entities.STATIONS: ("flow.min_m3s", "consumption_mw_per_m3s"),
    entities.CONTRACTS: ("limits.min_mw",),
}

ORDERED: dict[str, tuple[tuple[str, str], ...]] = {
    entities.THERMALS: (("generation.min_mw", "generation.max_mw"),),
    entities.HYDROS: (
        ("reservoir.min_storage_hm3", "reservoir.max_storage_hm3"),
        ("outflow.min_outflow_m3s", "outflow.max_outflow_m3s"),
        ("generation.min_turbined_m3s", "generation.max_turbined_m3s"),
        ("generation.min_generation_mw", "generation.max_generation_mw"),
    ),
    entities.STATIONS: (("flow.min_m3s", "flow.max_m3s"),),
    entities.CONTRACTS: (("limits.min_mw", "limits.max_mw"),),
}


def limits_not_negative(case: Case, findings: Findings) -> None:
    """Volumes, flows, powers and capacities must not be negative."""
    for file, word, members in _groups(case):
        for entity in members:
            for field in NOT_NEGATIVE[file]:
                findings.demand_not_negative(attrgetter(field)(entity), file, named(word, entity), field)


def minima_below_maxima(case: Case, findings: Findings) -> None:
    """Every minimum must be at most its maximum."""
    for file, word, members in _groups(case):
        for entity in members:
            for lower, upper in ORDERED.get(file, ()):
                values = attrgetter(lower)(entity), attrgetter(upper)(entity)
                findings.demand_order(*values, file, named(word, entity), (lower, upper))


def entry_before_exit(case: Case, findings: Findings) -> None:
    """An entity must enter before it leaves."""
    for file, word, members in _groups(case):
        for entity in members:
            entry, leave = entity.entry_stage_id, entity.exit_stage_id
            if entry is not None and leave is not None and entry >= leave:
                message = f"is {leave}, not after entry_stage_id, which is {entry}"
                findings.error(file, named(word, entity), "exit_stage_id", message, "a later stage")


def lines_join_two_buses(case: Case, findings: Findings) -> None:
    """A line joins two different buses, and its losses are below 100 %."""
    for line in case.system.lines:
        if line.source_bus_id == line.target_bus_id:
            message = f"is {line.target_bus_id}, the same as source_bus_id"
            findings.error(entities.LINES, named("line", line), "target_bus_id", message, "another bus")
        if line.losses_percent >= 100:
            message = f"is {line.losses_percent:g}"
            findings.error(entities.LINES, named("line", line), "losses_percent", message, "a number below 100")


def limits_of_unit_groups(case: Case, findings: Findings) -> None:
    """Limits of each unit group are not negative, and minimums are not above maximums."""
    for hydro in case.system.hydros:
        for group in hydro.unit_groups:
            where = f"unit_groups (id {group.id})"
            for lower, upper in (("min_turbined_m3s", "max_turbined_m3s"), ("min_generation_mw", "max_generation_mw")):
                low, high = getattr(group, lower), getattr(group, upper)
                fields = (f"{where}.{lower}", f"{where}.{upper}")
                findings.demand_not_negative(low, entities.HYDROS, named("hydro", hydro), fields[0])
                findings.demand_order(low, high, entities.HYDROS, named("hydro", hydro), fields)


def unit_groups_within_the_plant(case: Case, findings: Findings) -> None:
    """The maxima of unit groups must not sum to more than the plant's, nor the minima to less."""
    for hydro in case.system.hydros:
        for quantity in ("turbined_m3s", "generation_mw"):
            _check_sums(hydro, quantity, findings)


def _check_sums(hydro: Hydro, quantity: str, findings: Findings) -> None:
    entity = named("hydro", hydro)
    for bound in ("max", "min"):
        field = f"{bound}_{quantity}"
        total = sum_in_order(getattr(group, field) for group in hydro.unit_groups)
        own = getattr(hydro.generation, field)
        slack = TOLERANCE * max(1.0, abs(own))
        is_wrong = total > own + slack if bound == "max" else total < own - slack
        if is_wrong:
            side = "above" if bound == "max" else "below"
            message = f"the groups sum to {total:g}, {side} the plant's own generation.{field}, which is {own:g}"
            remedy = f"a sum of at {'most' if bound == 'max' else 'least'} {own:g}"
            findings.error(entities.HYDROS, entity, f"unit_groups.{field}", message, remedy)


def forms_of_plants(case: Case, findings: Findings) -> None:
    """Efficiency, losses, diversion and tailrace are within their ranges."""
    for hydro in case.system.hydros:
        for field, is_right, message, remedy in _forms(hydro):
            if not is_right:
                findings.error(entities.HYDROS, named("hydro", hydro), field, message, remedy)


def _forms(hydro: Hydro) -> Iterator[tuple[str, bool, str, str]]:
    """Field, whether it is valid, the value found, the value expected."""
    if hydro.diversion is not None:
        most = hydro.diversion.flow_limit_m3s
        yield "diversion.max_flow_m3s", most >= 0, f"is {most:g}", "at least 0"
    if hydro.efficiency is not None:
        value = hydro.efficiency.value
        yield "efficiency.value", 0 < value <= 1, f"is {value:g}", "above 0 and at most 1"
    if hydro.hydraulic_losses is not None and hydro.hydraulic_losses.value is not None:
        value = hydro.hydraulic_losses.value
        yield "hydraulic_losses.value", 0 <= value < 1, f"is {value:g}", "at least 0 and below 1"
    if hydro.hydraulic_losses is not None and hydro.hydraulic_losses.value_m is not None:
        value = hydro.hydraulic_losses.value_m
        yield "hydraulic_losses.value_m", value >= 0, f"is {value:g}", "at least 0"
    if hydro.specific_productivity_mw_per_m3s_per_m is not None:
        value = hydro.specific_productivity_mw_per_m3s_per_m
        yield "specific_productivity_mw_per_m3s_per_m", value > 0, f"is {value:g}", "a number above 0"
    if hydro.tailrace is not None and hydro.tailrace.points is not None:
        outflows = [point.outflow_m3s for point in hydro.tailrace.points]
        is_right = bool(outflows) and all(a < b for a, b in pairwise(outflows))
        yield "tailrace.points", is_right, "outflow_m3s does not increase from point to point", "increasing outflows"
    if hydro.tailrace is not None and hydro.tailrace.coefficients is not None:
        yield "tailrace.coefficients", bool(hydro.tailrace.coefficients), "is empty", "at least one coefficient"


RULES: tuple[Rule, ...] = (
    limits_not_negative,
    minima_below_maxima,
    entry_before_exit,
    lines_join_two_buses,
    limits_of_unit_groups,
    unit_groups_within_the_plant,
    forms_of_plants,
)


# Rules about initial storages and the filling of new reservoirs.


RELATIVE_TOLERANCE = 1e-6


def initial_storage(case: Case, findings: Findings) -> None:
    """Volumes outside the limits are moved to the nearest limit, with a warning."""
    for hydro in case.system.hydros:
        if hydro.filling is not None:
            continue
        value = case.initial_conditions.storage_hm3.get(hydro.id)
        low, high = hydro.reservoir.min_storage_hm3, hydro.reservoir.max_storage_hm3
        found = f"is {value:g}" if value is not None else "is missing, so it is taken as 0"
        value = value or 0.0
        if value < low or value > high:
            limit = low if value < low else high
            message = f"{found}, outside the limits {low:g} to {high:g}: the study starts from {limit:g}"
            findings.warn(CONDITIONS_FILE, named("hydro", hydro), "storage.value_hm3", message)
        elif hydro.id not in case.initial_conditions.storage_hm3:
            message = "is missing: the study starts with an empty reservoir"
            findings.warn(CONDITIONS_FILE, named("hydro", hydro), "storage.value_hm3", message)


def volumes_not_negative(case: Case, findings: Findings) -> None:
    """Initial volumes must not be negative."""
    conditions = case.initial_conditions
    for field, volumes in (("storage", conditions.storage_hm3), ("filling_storage", conditions.filling_storage_hm3)):
        for hydro_id, value in volumes.items():
            findings.demand_not_negative(value, CONDITIONS_FILE, f"hydro {hydro_id}", f"{field}.value_hm3")


def filling_storage(case: Case, findings: Findings) -> None:
    """Plants that are being filled, and only they, have their initial volume in `filling_storage`."""
    filled = {hydro.id: hydro for hydro in case.system.hydros if hydro.filling is not None}
    conditions = case.initial_conditions
    for hydro_id in conditions.filling_storage_hm3:
        if hydro_id not in filled:
            message = "the plant has no `filling`"
            findings.error(
                CONDITIONS_FILE, f"hydro {hydro_id}", "filling_storage.hydro_id", message, "give it in `storage`"
            )
    for hydro_id in conditions.storage_hm3:
        if hydro_id in filled:
            message = "the plant is being filled"
            findings.error(
                CONDITIONS_FILE, f"hydro {hydro_id}", "storage.hydro_id", message, "give it in `filling_storage`"
            )
    for hydro_id, hydro in filled.items():
        if hydro_id not in conditions.filling_storage_hm3:
            message = "is missing: filling starts from empty"
            findings.warn(CONDITIONS_FILE, named("hydro", hydro), "filling_storage.value_hm3", message)
        value, most = conditions.filling_storage_hm3.get(hydro_id, 0.0), hydro.reservoir.max_storage_hm3
        if value > most:
            message = f"is {value:g}, above the plant's maximum, {most:g}"
            findings.error(
                CONDITIONS_FILE, named("hydro", hydro), "filling_storage.value_hm3", message, f"at most {most:g}"
            )


def filling_plans(case: Case, findings: Findings) -> None:
    """Filling starts in a stage of the study and ends with the entry in a later one; the plant has no exit stage."""
    stages = {stage.id for stage in case.horizon.stages}
    for hydro in case.system.hydros:
        if hydro.filling is None:
            continue
        for field, is_right, message, remedy in _plan(hydro, hydro.filling, stages):
            if not is_right:
                findings.error(HYDROS, named("hydro", hydro), field, message, remedy)


def _plan(hydro: Hydro, filling: Filling, stages: set[int]) -> list[tuple[str, bool, str, str]]:
    start, entry = filling.start_stage_id, hydro.entry_stage_id
    plan = [
        ("filling.start_stage_id", start in stages, f"is {start}, not a stage of the study", "a stage of the study"),
        ("filling.filling_min_rate_m3s", filling.filling_min_rate_m3s >= 0, "is negative", "at least 0"),
        ("exit_stage_id", hydro.exit_stage_id is None, "is given for a plant that is being filled", "leave it out"),
    ]
    if entry is None:
        plan.append(("entry_stage_id", False, "is missing: filling ends when the plant enters", "the stage of entry"))
    else:
        plan.append(
            ("entry_stage_id", entry in stages, f"is {entry}, not a stage of the study", "a stage of the study")
        )
        plan.append(("entry_stage_id", entry > start, f"is {entry}, not after the start of filling", "a later stage"))
    return plan


def filling_reaches_the_dead_volume(case: Case, findings: Findings) -> None:
    """The minimum rate must fill the dead volume before the plant enters."""
    for hydro in case.system.hydros:
        if hydro.filling is None or hydro.entry_stage_id is None:
            continue
        start = case.initial_conditions.filling_storage_hm3.get(hydro.id, 0.0)
        reached = start + _filled_hm3(case, hydro, hydro.filling)
        needed = _dead_volume_hm3(case, hydro)
        if reached < needed * (1 - RELATIVE_TOLERANCE):
            message = (
                f"is too low: {reached:g} hm3 are reached before stage {hydro.entry_stage_id}, "
                f"and the dead volume is {needed:g} hm3"
            )
            remedy = "a higher rate, an earlier start or a later entry"
            findings.error(HYDROS, named("hydro", hydro), "filling.filling_min_rate_m3s", message, remedy)


def _filled_hm3(case: Case, hydro: Hydro, filling: Filling) -> float:
    rates = _rates_of_stages(case, hydro.id)
    end = hydro.entry_stage_id or 0
    stages = [stage for stage in case.horizon.stages if filling.start_stage_id <= stage.id < end]
    rate = filling.filling_min_rate_m3s
    return sum_in_order(HM3_PER_M3S_HOUR * stage.hours * rates.get(stage.id, rate) for stage in stages)


def _dead_volume_hm3(case: Case, hydro: Hydro) -> float:
    """The minimum storage of the last stage of filling."""
    filling = [stage.id for stage in case.horizon.stages if stage.id < (hydro.entry_stage_id or 0)]
    declared = hydro.reservoir.min_storage_hm3
    return _values_of_stages(case, hydro.id, "min_storage_hm3").get(filling[-1], declared) if filling else declared


def _rates_of_stages(case: Case, hydro_id: int) -> dict[int, float]:
    column = next(column.name for column in OVERRIDE_TABLES["hydro_bounds"].columns if "filling" in column.name)
    return _values_of_stages(case, hydro_id, column)


def _values_of_stages(case: Case, hydro_id: int, column: str) -> dict[int, float]:
    table = case.overrides.hydro_bounds
    if table is None:
        return {}
    rows = (table["hydro_id"] == hydro_id) & ~np.isnan(table[column])
    return dict(zip(table["stage_id"][rows].tolist(), table[column][rows].tolist(), strict=True))


def storages_are_carried(case: Case, findings: Findings) -> None:
    """Warn where state_variables leaves storages out: cuts include them anyway, or the lower bound would be wrong."""
    without = [stage.id for stage in case.horizon.stages if not stage.state_variables.storage]
    if without and case.system.hydros:
        message = f"is false in {with_ids('stage', without)}: storages are in the state anyway"
        findings.warn(STAGES_FILE, "", "state_variables.storage", message, "true: a valid bound needs them")


STORAGE_RULES: tuple[Rule, ...] = (
    storages_are_carried,
    initial_storage,
    volumes_not_negative,
    filling_storage,
    filling_plans,
    filling_reaches_the_dead_volume,
)

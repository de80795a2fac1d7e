"""Limits of entities: none negative, no minimum above its maximum, entry before exit."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

from cobre.core.arrays import sum_in_order
from cobre.core.case import Case
from cobre.core.hydro import Hydro
from cobre.io.input_files import entities
from cobre.io.validation.layer_findings import Findings, Rule, named

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

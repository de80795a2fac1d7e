"""The files of system/ and penalties.json: limits in order, forms in range, costs above zero."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np

from cobre.core.arrays import sum_in_order
from cobre.core.case import Case
from cobre.core.entities import DeficitSegment
from cobre.core.file_names import (
    BUSES_FILE,
    CONTRACTS_FILE,
    HYDROS_FILE,
    LINES_FILE,
    PENALTIES_FILE,
    SOURCES_FILE,
    STATIONS_FILE,
    THERMALS_FILE,
)
from cobre.core.hydro import Hydro
from cobre.io.findings import Findings, Layer, Subject, error_code, named, warning_code
from cobre.io.input_files.table_formats import OVERRIDE_TABLES
from cobre.io.validation.rules import (
    NEGATIVE,
    NOT_POSITIVE,
    OUT_OF_RANGE,
    OVERRIDES,
    SYSTEM,
    Rule,
    require_not_negative,
    require_order,
    row_subject,
    rule,
)

LIMIT_SUM_TOLERANCE = 1e-6  # relative: sums of limits

EXIT_NOT_AFTER_ENTRY = error_code(
    "exit-not-after-entry",
    Layer.MEANING,
    "is {value}, not after entry_stage_id, which is {entry}",
    expected="a later stage",
)

LINE_TO_ITSELF = error_code(
    "line-to-itself", Layer.MEANING, "is {value}, the same as source_bus_id", expected="another bus"
)

GROUPS_ABOVE_PLANT = error_code(
    "unit-groups-above-plant",
    Layer.MEANING,
    "the groups sum to {value:g}, above the plant's own generation.{limit}, which is {own:g}",
    expected="a sum of at most {own:g}",
)

GROUPS_BELOW_PLANT = error_code(
    "unit-groups-below-plant",
    Layer.MEANING,
    "the groups sum to {value:g}, below the plant's own generation.{limit}, which is {own:g}",
    expected="a sum of at least {own:g}",
)

TAILRACE_POINTS = error_code(
    "tailrace-points",
    Layer.MEANING,
    "outflow_m3s does not increase from point to point",
    expected="increasing outflows",
)

TAILRACE_EMPTY = error_code(
    "tailrace-coefficients-missing", Layer.MEANING, "is empty", expected="at least one coefficient"
)


def _groups(case: Case) -> Iterator[tuple[str, str, Sequence[Any]]]:
    system = case.system
    yield LINES_FILE, "line", system.lines
    yield THERMALS_FILE, "thermal", system.thermals
    yield HYDROS_FILE, "hydro", system.hydros
    yield SOURCES_FILE, "non-controllable source", system.non_controllable_sources
    yield STATIONS_FILE, "pumping station", system.pumping_stations
    yield CONTRACTS_FILE, "contract", system.energy_contracts


# By file: fields that must not be negative, and pairs of a minimum and a maximum.
NOT_NEGATIVE: dict[str, tuple[str, ...]] = {
    LINES_FILE: ("capacity.direct_mw", "capacity.reverse_mw", "losses_percent"),
    THERMALS_FILE: ("generation.min_mw", "cost_per_mwh"),
    HYDROS_FILE: (
        "reservoir.min_storage_hm3",
        "outflow.min_outflow_m3s",
        "generation.min_turbined_m3s",
        "generation.min_generation_mw",
    ),
    SOURCES_FILE: ("max_generation_mw",),
    STATIONS_FILE: ("flow.min_m3s", "consumption_mw_per_m3s"),
    CONTRACTS_FILE: ("limits.min_mw",),
}

ORDERED: dict[str, tuple[tuple[str, str], ...]] = {
    THERMALS_FILE: (("generation.min_mw", "generation.max_mw"),),
    HYDROS_FILE: (
        ("reservoir.min_storage_hm3", "reservoir.max_storage_hm3"),
        ("outflow.min_outflow_m3s", "outflow.max_outflow_m3s"),
        ("generation.min_turbined_m3s", "generation.max_turbined_m3s"),
        ("generation.min_generation_mw", "generation.max_generation_mw"),
    ),
    STATIONS_FILE: (("flow.min_m3s", "flow.max_m3s"),),
    CONTRACTS_FILE: (("limits.min_mw", "limits.max_mw"),),
}


@rule(iterated=SYSTEM)
def limits_of_entities(case: Case, findings: Findings) -> None:
    """Refuse negative volumes, flows, powers and capacities, and minimums above their maximums."""
    for file, word, members in _groups(case):
        for entity in members:
            subject = named(word, entity)
            for field in NOT_NEGATIVE[file]:
                require_not_negative(attrgetter(field)(entity), file, subject, field, findings)
            for pair in ORDERED.get(file, ()):
                require_order(*attrgetter(*pair)(entity), file, subject, pair, findings)


@rule(iterated=SYSTEM)
def entry_before_exit(case: Case, findings: Findings) -> None:
    """Require that an entity enters before it leaves."""
    for file, word, members in _groups(case):
        for entity in members:
            entry, leave = entity.entry_stage_id, entity.exit_stage_id
            if entry is not None and leave is not None and entry >= leave:
                subject = named(word, entity)
                findings.add(EXIT_NOT_AFTER_ENTRY, file, subject, "exit_stage_id", value=leave, entry=entry)


@rule(LINES_FILE)
def lines_join_two_buses(case: Case, findings: Findings) -> None:
    """Require lines between two different buses, with losses below 100 %."""
    for line in case.system.lines:
        subject = named("line", line)
        if line.source_bus_id == line.target_bus_id:
            findings.add(LINE_TO_ITSELF, LINES_FILE, subject, "target_bus_id", value=line.target_bus_id)
        if line.losses_percent >= 100:
            facts = {"value": line.losses_percent, "range": "a number below 100"}
            findings.add(OUT_OF_RANGE, LINES_FILE, subject, "losses_percent", **facts)


@rule(HYDROS_FILE)
def limits_of_unit_groups(case: Case, findings: Findings) -> None:
    """Refuse unit groups with negative limits, or minimums above their maximums."""
    for hydro in case.system.hydros:
        subject = named("hydro", hydro)
        for group in hydro.unit_groups:
            for quantity in ("turbined_m3s", "generation_mw"):
                pair = (f"min_{quantity}", f"max_{quantity}")
                paths = (f"unit_groups (id {group.id}).{pair[0]}", f"unit_groups (id {group.id}).{pair[1]}")
                low, high = getattr(group, pair[0]), getattr(group, pair[1])
                require_not_negative(low, HYDROS_FILE, subject, paths[0], findings)
                require_order(low, high, HYDROS_FILE, subject, paths, findings)


@rule(HYDROS_FILE)
def unit_groups_within_the_plant(case: Case, findings: Findings) -> None:
    """Refuse maxima of unit groups that sum to more than the plant's, and minima that sum to less."""
    for hydro in case.system.hydros:
        for name in ("max_turbined_m3s", "min_turbined_m3s", "max_generation_mw", "min_generation_mw"):
            total = sum_in_order(getattr(group, name) for group in hydro.unit_groups)
            limit = getattr(hydro.generation, name)
            slack, is_maximum = LIMIT_SUM_TOLERANCE * max(1.0, abs(limit)), name.startswith("max")
            if total > limit + slack if is_maximum else total < limit - slack:
                code = GROUPS_ABOVE_PLANT if is_maximum else GROUPS_BELOW_PLANT
                facts = {"value": total, "limit": name, "own": limit}
                findings.add(code, HYDROS_FILE, named("hydro", hydro), f"unit_groups.{name}", **facts)


@rule(HYDROS_FILE)
def forms_of_plants(case: Case, findings: Findings) -> None:
    """Require efficiency, losses, diversion and tailrace within their ranges."""
    for hydro in case.system.hydros:
        subject = named("hydro", hydro)
        for field, is_right, value, expected in _forms(hydro):
            if not is_right:
                findings.add(OUT_OF_RANGE, HYDROS_FILE, subject, field, value=value, range=expected)
        if hydro.tailrace is not None and hydro.tailrace.points is not None:
            outflows = [point.outflow_m3s for point in hydro.tailrace.points]
            if not outflows or any(before >= after for before, after in pairwise(outflows)):
                findings.add(TAILRACE_POINTS, HYDROS_FILE, subject, "tailrace.points")
        if hydro.tailrace is not None and hydro.tailrace.coefficients is not None and not hydro.tailrace.coefficients:
            findings.add(TAILRACE_EMPTY, HYDROS_FILE, subject, "tailrace.coefficients")


def _forms(hydro: Hydro) -> Iterator[tuple[str, bool, float, str]]:
    """Yield field, whether its value is in range, the value, and the range."""
    if hydro.diversion is not None:
        value = hydro.diversion.flow_limit_m3s
        yield "diversion.max_flow_m3s", value >= 0, value, "at least 0"
    if hydro.efficiency is not None:
        value = hydro.efficiency.value
        yield "efficiency.value", 0 < value <= 1, value, "above 0 and at most 1"
    if hydro.hydraulic_losses is not None and hydro.hydraulic_losses.value is not None:
        value = hydro.hydraulic_losses.value
        yield "hydraulic_losses.value", 0 <= value < 1, value, "at least 0 and below 1"
    if hydro.hydraulic_losses is not None and hydro.hydraulic_losses.value_m is not None:
        value = hydro.hydraulic_losses.value_m
        yield "hydraulic_losses.value_m", value >= 0, value, "at least 0"
    if hydro.specific_productivity_mw_per_m3s_per_m is not None:
        value = hydro.specific_productivity_mw_per_m3s_per_m
        yield "specific_productivity_mw_per_m3s_per_m", value > 0, value, "a number above 0"


# Costs.

MAY_BE_ZERO = ("turbined_cost",)
PRICE_TABLES = ("penalty_overrides_bus", "penalty_overrides_line", "penalty_overrides_hydro", "penalty_overrides_ncs")

FLOW_VIOLATIONS = (
    "turbined_violation_below_cost",
    "outflow_violation_below_cost",
    "outflow_violation_above_cost",
    "evaporation_violation_cost",
    "water_withdrawal_violation_cost",
)

COST_OF_ZERO = warning_code("cost-of-zero", Layer.MEANING, "is 0: the optimal decision may not be unique")

NO_DEFICIT_SEGMENT = error_code(
    "no-deficit-segment",
    Layer.MEANING,
    "there is none",
    expected="at least one segment, the last with depth_mw null",
)

LIMITED_DEFICIT = error_code(
    "last-deficit-segment-limited",
    Layer.MEANING,
    "the last segment is {value:g} MW deep: beyond it the study is infeasible",
    expected="null in the last segment",
)

DEFICIT_DEPTH = error_code(
    "deficit-depth",
    Layer.MEANING,
    "is {value}",
    expected="a depth above 0 in all segments but the last",
)

DEFICIT_ORDER = error_code(
    "deficit-costs-not-increasing",
    Layer.MEANING,
    "is {value:g}, not above the segment before, {before:g}",
    expected="costs that increase",
)

GENERATION_ABOVE_DEFICIT = warning_code(
    "generation-violation-above-deficit",
    Layer.MEANING,
    "is {value:g}, not below the most expensive deficit, {deficit:g}: load is shed to meet minimum generation",
)

VIOLATION_BELOW_SPILLAGE = warning_code(
    "flow-violation-below-spillage",
    Layer.MEANING,
    "is {value:g}, not above the most expensive spillage or diversion, {spillage:g}",
)


@rule(PENALTIES_FILE)
def costs_above_zero(case: Case, findings: Findings) -> None:
    """Require penalties above zero: otherwise a violation would be free."""
    penalties = case.penalties
    prices = {
        "bus.excess_cost": penalties.bus.excess_cost,
        "line.exchange_cost": penalties.line.exchange_cost,
        "non_controllable_source.curtailment_cost": penalties.non_controllable_source.curtailment_cost,
        **{f"hydro.{item.name}": getattr(penalties.hydro, item.name) for item in fields(penalties.hydro)},
    }
    for field, value in prices.items():
        may_be_zero = field.split(".")[-1] in MAY_BE_ZERO
        if value is not None and (value < 0 or (value == 0 and not may_be_zero)):
            findings.add(NEGATIVE if may_be_zero else NOT_POSITIVE, PENALTIES_FILE, (), field, value=value)


@rule(iterated=(LINES_FILE, SOURCES_FILE, HYDROS_FILE))
def costs_of_entities(case: Case, findings: Findings) -> None:
    """Refuse negative penalties of single entities; 0, which published cases use, is a warning."""
    for file, subject, field, value in _costs_of_entities(case):
        if value < 0:
            findings.add(NEGATIVE, file, subject, field, value=value)
        elif value == 0 and field.split(".")[-1] not in MAY_BE_ZERO:
            findings.add(COST_OF_ZERO, file, subject, field, value=value)


def _costs_of_entities(case: Case) -> Iterator[tuple[str, Subject, str, float]]:
    for line in case.system.lines:
        if line.exchange_cost is not None:
            yield LINES_FILE, named("line", line), "exchange_cost", line.exchange_cost
    for source in case.system.non_controllable_sources:
        if source.curtailment_cost is not None:
            yield SOURCES_FILE, named("non-controllable source", source), "curtailment_cost", source.curtailment_cost
    for hydro in case.system.hydros:
        for item in fields(hydro.penalties) if hydro.penalties else ():
            value = getattr(hydro.penalties, item.name)
            if value is not None:
                yield HYDROS_FILE, named("hydro", hydro), f"penalties.{item.name}", value


@rule(iterated=[OVERRIDES[name] for name in PRICE_TABLES])
def costs_of_stages(case: Case, findings: Findings) -> None:
    """Require costs of single stages above 0, or at least 0 if they may be 0."""
    for name in PRICE_TABLES:
        table, form = getattr(case.overrides, name), OVERRIDE_TABLES[name]
        if table is None:
            continue
        for column in (column.name for column in form.columns if column.kind == "number"):
            values, may_be_zero = table[column], column in MAY_BE_ZERO
            for row in np.flatnonzero(values < 0 if may_be_zero else values <= 0):
                subject = row_subject(form.keys, [table[key][row] for key in form.keys])
                findings.add(NEGATIVE if may_be_zero else NOT_POSITIVE, form.file, subject, column, value=values[row])


@rule(iterated=(PENALTIES_FILE, BUSES_FILE))
def tiers_of_deficit(case: Case, findings: Findings) -> None:
    """Require tiers of deficit that rise in cost, the last without a limit."""
    _check_tiers(case.penalties.bus.deficit_segments, PENALTIES_FILE, (), "bus.deficit_segments", findings)
    for bus in case.system.buses:
        if bus.deficit_segments is not None:
            _check_tiers(bus.deficit_segments, BUSES_FILE, named("bus", bus), "deficit_segments", findings)


def _check_tiers(tiers: Sequence[DeficitSegment], file: str, subject: Subject, field: str, findings: Findings) -> None:
    if not tiers:
        findings.add(NO_DEFICIT_SEGMENT, file, subject, field)
        return
    last = len(tiers) - 1
    if tiers[-1].depth_mw is not None:
        findings.add(LIMITED_DEFICIT, file, subject, f"{field}[{last}].depth_mw", value=tiers[-1].depth_mw)
    for position, tier in enumerate(tiers):
        if tier.cost <= 0:
            findings.add(NOT_POSITIVE, file, subject, f"{field}[{position}].cost", value=tier.cost)
        if position < last and (tier.depth_mw is None or tier.depth_mw <= 0):
            value = "null" if tier.depth_mw is None else f"{tier.depth_mw:g}"
            findings.add(DEFICIT_DEPTH, file, subject, f"{field}[{position}].depth_mw", value=value)
    for position, (before, after) in enumerate(pairwise(tiers), start=1):
        if after.cost <= before.cost:
            facts = {"value": after.cost, "before": before.cost}
            findings.add(DEFICIT_ORDER, file, subject, f"{field}[{position}].cost", **facts)


@rule(PENALTIES_FILE, BUSES_FILE, HYDROS_FILE)
def order_of_costs(case: Case, findings: Findings) -> None:
    """Warn of penalties whose order makes a violation cheaper than its alternative."""
    tiers = [case.penalties.bus.deficit_segments, *(bus.deficit_segments or () for bus in case.system.buses)]
    deficit = max((tier.cost for segments in tiers for tier in segments), default=0.0)
    hydros = case.system.hydros
    spillage = max(
        (_cost(case, hydro, field) for hydro in hydros for field in ("spillage_cost", "diversion_cost")), default=0
    )
    for hydro in hydros:
        subject, field = named("hydro", hydro), "generation_violation_below_cost"
        cost = _cost(case, hydro, field)
        if cost >= deficit and hydro.generation.min_generation_mw > 0:
            findings.add(GENERATION_ABOVE_DEFICIT, HYDROS_FILE, subject, field, value=cost, deficit=deficit)
    for hydro in hydros:
        for field in FLOW_VIOLATIONS:
            cost = _cost(case, hydro, field)
            if cost <= spillage:
                facts = {"value": cost, "spillage": spillage}
                findings.add(VIOLATION_BELOW_SPILLAGE, HYDROS_FILE, named("hydro", hydro), field, **facts)


def _cost(case: Case, hydro: Hydro, field: str) -> float:
    penalty = getattr(hydro.penalties, field, None) if hydro.penalties else None
    return float(getattr(case.penalties.hydro, field) if penalty is None else penalty)


RULES: tuple[Rule, ...] = (
    limits_of_entities,
    entry_before_exit,
    lines_join_two_buses,
    limits_of_unit_groups,
    unit_groups_within_the_plant,
    forms_of_plants,
    costs_above_zero,
    costs_of_entities,
    costs_of_stages,
    tiers_of_deficit,
    order_of_costs,
)

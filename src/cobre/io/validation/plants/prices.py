"""Costs: above zero, in rising tiers, and ordered so that violations are the last resort."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import pairwise

import numpy as np

from cobre.core.case import Case
from cobre.core.entities import DeficitSegment
from cobre.core.hydro import Hydro
from cobre.io.input_files import entities
from cobre.io.input_files.table_formats import OVERRIDE_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, named

MAY_BE_ZERO = ("turbined_cost",)
PRICE_TABLES = ("penalty_overrides_bus", "penalty_overrides_line", "penalty_overrides_hydro", "penalty_overrides_ncs")
FLOW_VIOLATIONS = (
    "turbined_violation_below_cost",
    "outflow_violation_below_cost",
    "outflow_violation_above_cost",
    "evaporation_violation_cost",
    "water_withdrawal_violation_cost",
)


def prices_above_zero(case: Case, findings: Findings) -> None:
    """Penalties must be above zero: otherwise a violation would be free."""
    for file, entity, field, value in _prices_of_all(case):
        least_is_zero = field.split(".")[-1] in MAY_BE_ZERO
        if value < 0 or (value == 0 and not least_is_zero):
            findings.error(file, entity, field, f"is {value:g}", "at least 0" if least_is_zero else "a number above 0")


def prices_of_entities_above_zero(case: Case, findings: Findings) -> None:
    """Penalties of single entities must not be negative; 0, which published cases use, is a warning."""
    for file, entity, field, value in _prices_of_entities(case):
        if value < 0:
            findings.error(file, entity, field, f"is {value:g}", "at least 0")
        elif value == 0 and field.split(".")[-1] not in MAY_BE_ZERO:
            findings.warn(file, entity, field, "is 0: the optimal decision may not be unique")


def _prices_of_all(case: Case) -> Iterator[tuple[str, str, str, float]]:
    """File, entity, field and value of every price that holds for all entities of a class."""
    given = case.penalties
    yield entities.PENALTIES_FILE, "", "bus.excess_cost", given.bus.excess_cost
    yield entities.PENALTIES_FILE, "", "line.exchange_cost", given.line.exchange_cost
    cost = given.non_controllable_source.curtailment_cost
    yield entities.PENALTIES_FILE, "", "non_controllable_source.curtailment_cost", cost
    for item in fields(given.hydro):
        value = getattr(given.hydro, item.name)
        if value is not None:
            yield entities.PENALTIES_FILE, "", f"hydro.{item.name}", value


def _prices_of_entities(case: Case) -> Iterator[tuple[str, str, str, float]]:
    for line in case.system.lines:
        if line.exchange_cost is not None:
            yield entities.LINES, named("line", line), "exchange_cost", line.exchange_cost
    for source in case.system.non_controllable_sources:
        if source.curtailment_cost is not None:
            entity = named("non-controllable source", source)
            yield entities.SOURCES, entity, "curtailment_cost", source.curtailment_cost
    for hydro in case.system.hydros:
        for item in fields(hydro.penalties) if hydro.penalties else ():
            value = getattr(hydro.penalties, item.name)
            if value is not None:
                yield entities.HYDROS, named("hydro", hydro), f"penalties.{item.name}", value


def prices_of_stages_above_zero(case: Case, findings: Findings) -> None:
    """Prices of single stages must be above 0, or at least 0 where they may be 0."""
    for name in PRICE_TABLES:
        table, form = getattr(case.overrides, name), OVERRIDE_TABLES[name]
        if table is None:
            continue
        for column in (column.name for column in form.columns if column.kind == "number"):
            values = table[column]
            is_wrong = values < 0 if column in MAY_BE_ZERO else values <= 0
            for row in np.flatnonzero(is_wrong):
                key = form.keys[0]
                entity = f"{key.removesuffix('_id')} {table[key][row]}, stage {table['stage_id'][row]}"
                remedy = "at least 0" if column in MAY_BE_ZERO else "a number above 0"
                findings.error(form.file, entity, column, f"is {values[row]:g}", remedy)


def tiers_of_deficit(case: Case, findings: Findings) -> None:
    """Tiers of deficit rise in cost, and the last one has no limit."""
    _check_tiers(case.penalties.bus.deficit_segments, entities.PENALTIES_FILE, "", "bus.deficit_segments", findings)
    for bus in case.system.buses:
        if bus.deficit_segments is not None:
            _check_tiers(bus.deficit_segments, entities.BUSES, named("bus", bus), "deficit_segments", findings)


def _check_tiers(tiers: Sequence[DeficitSegment], file: str, entity: str, field: str, findings: Findings) -> None:
    if not tiers:
        findings.error(file, entity, field, "there is none", "at least one segment, the last with depth_mw null")
        return
    if tiers[-1].depth_mw is not None:
        message = f"the last segment is {tiers[-1].depth_mw:g} MW deep: beyond it the study is infeasible"
        findings.error(file, entity, f"{field}[{len(tiers) - 1}].depth_mw", message, "null in the last segment")
    for position, tier in enumerate(tiers):
        if tier.cost <= 0:
            findings.error(file, entity, f"{field}[{position}].cost", f"is {tier.cost:g}", "a number above 0")
        if position < len(tiers) - 1 and (tier.depth_mw is None or tier.depth_mw <= 0):
            found = "is null" if tier.depth_mw is None else f"is {tier.depth_mw:g}"
            remedy = "a depth above 0 in all segments but the last"
            findings.error(file, entity, f"{field}[{position}].depth_mw", found, remedy)
    for position, (before, after) in enumerate(pairwise(tiers), start=1):
        if after.cost <= before.cost:
            message = f"is {after.cost:g}, not above the segment before, {before.cost:g}"
            findings.error(file, entity, f"{field}[{position}].cost", message, "costs that increase")


def order_of_prices(case: Case, findings: Findings) -> None:
    """Warn of penalties whose order makes a violation cheaper than its alternative."""
    _warn_of_generation(case, findings)
    _warn_of_flows(case, findings)


def _warn_of_generation(case: Case, findings: Findings) -> None:
    """Violating minimum generation should cost less than shedding load."""
    tiers = [case.penalties.bus.deficit_segments, *(bus.deficit_segments or () for bus in case.system.buses)]
    deficit = max((tier.cost for segments in tiers for tier in segments), default=0.0)
    for hydro in case.system.hydros:
        cost = _price(case, hydro, "generation_violation_below_cost")
        if cost >= deficit and hydro.generation.min_generation_mw > 0:
            message = (
                f"is {cost:g}, not below the most expensive deficit, {deficit:g}: "
                "load is shed to meet minimum generation"
            )
            findings.warn(entities.HYDROS, named("hydro", hydro), "generation_violation_below_cost", message)


def _warn_of_flows(case: Case, findings: Findings) -> None:
    """Spilling or diverting should be cheaper than violating a flow limit."""
    hydros = case.system.hydros
    most_expensive = max(
        (_price(case, hydro, field) for hydro in hydros for field in ("spillage_cost", "diversion_cost")), default=0
    )
    for hydro in hydros:
        for field in FLOW_VIOLATIONS:
            cost = _price(case, hydro, field)
            if cost <= most_expensive:
                message = f"is {cost:g}, not above the most expensive spillage or diversion, {most_expensive:g}"
                findings.warn(entities.HYDROS, named("hydro", hydro), field, message)


def _price(case: Case, hydro: Hydro, field: str) -> float:
    own = getattr(hydro.penalties, field, None) if hydro.penalties else None
    return float(getattr(case.penalties.hydro, field) if own is None else own)


RULES: tuple[Rule, ...] = (
    prices_above_zero,
    prices_of_entities_above_zero,
    prices_of_stages_above_zero,
    tiers_of_deficit,
    order_of_prices,
)

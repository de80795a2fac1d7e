"""Prices in an order that makes sense, and in a range that a solver can tell apart."""

from collections.abc import Iterator

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.io.input_files import entities, penalties_file
from cobre.io.validation.layer_findings import Findings, named
from cobre.study.plausibility.expected import Expected

PER_HM3 = ("storage_violation_below_cost", "filling_target_violation_cost")
WIDEST_RANGE = 1e9  # double precision has 16 digits, and the solver's tolerance takes 7 of them


def deficit_above_plants(case: Case, expected: Expected, findings: Findings) -> None:
    """Load is shed before a plant runs that is more expensive than the deficit."""
    if not case.system.thermals:
        return
    cost = _thermal_costs(expected)
    dearest = int(np.argmax(cost))
    word = named("thermal", case.system.thermals[dearest])
    groups = [(penalties_file.FILE, "", "bus.deficit_segments", case.penalties.bus.deficit_segments)]
    groups += [
        (entities.BUSES, named("bus", bus), "deficit_segments", bus.deficit_segments)
        for bus in case.system.buses
        if bus.deficit_segments is not None
    ]
    if all(bus.deficit_segments is not None for bus in case.system.buses):
        del groups[0]
    for file, entity, field, tiers in groups:
        cheapest = min(tier.cost for tier in tiers)
        dearer = int((cost >= cheapest).sum())
        if dearer:
            message = (
                f"the cheapest deficit costs {cheapest:,.3f} $/MWh, and {dearer} of {len(cost)} thermal plants cost as "
                f"much or more (the most expensive is {word}, {cost[dearest]:,.3f} $/MWh): load is shed before they run"
            )
            findings.warn(file, entity, field, message, "a deficit cost above that of every plant")


def minimum_generation_above_plants(case: Case, expected: Expected, findings: Findings) -> None:
    """A minimum generation is given up before a plant runs that is more expensive than giving it up."""
    if not case.system.thermals:
        return
    dearest = float(_thermal_costs(expected).max())
    cost = expected.study.stages[0].hydro.generation_violation_below_cost
    has_limit = np.array([hydro.generation.min_generation_mw > 0 for hydro in case.system.hydros], bool)
    for at in np.flatnonzero(has_limit & (cost <= dearest)).tolist():
        message = (
            f"violating minimum generation costs {cost[at]:,.2f} $/MWh, no more than the most expensive thermal plant "
            f"({dearest:,.2f} $/MWh): the limit is violated before that plant runs"
        )
        field, remedy = "hydro.generation_violation_below_cost", "a violation cost above that of every plant"
        findings.warn(penalties_file.FILE, named("hydro", case.system.hydros[at]), field, message, remedy)


def _thermal_costs(expected: Expected) -> Floats:
    """By thermal plant: its highest cost over the stages in which it can run, $/MWh."""
    stages = expected.study.stages
    costs = np.array([np.where(stage.thermal.max_mw > 0, stage.thermal.cost, 0.0).max(axis=1) for stage in stages])
    dearest: Floats = costs.max(axis=0)
    return dearest


def range_of_prices(case: Case, expected: Expected, findings: Findings) -> None:
    """Costs that differ by many orders of magnitude: the small ones drown in the tolerance of the large ones."""
    prices = [(value, location) for value, location in _prices(case, expected) if value > 0]
    if not prices:
        return
    (least, cheap), (most, dear) = min(prices), max(prices)
    if most > WIDEST_RANGE * least:
        message = (
            f"costs in the objective range from {_plain(least)} $ per unit ({cheap}) to {_plain(most)} $ per unit "
            f"({dear}), a factor of {most / least:,.0f}: the small ones may be lost in the tolerances of the solver"
        )
        findings.warn(penalties_file.FILE, "", "", message)


def _plain(amount: float) -> str:
    """A price without an exponent, unless it is tiny."""
    return f"{amount:,.2f}" if amount >= 0.01 else f"{amount:.2g}"


def _prices(case: Case, expected: Expected) -> Iterator[tuple[float, str]]:
    """Coefficients of the objective: $ for a MW or m3/s over a block of mean length, or for a hm3, with places."""
    hours = float(expected.study.stages[0].hours.mean())
    for cost, plant in zip(_thermal_costs(expected).tolist(), case.system.thermals, strict=True):
        yield cost * hours, named("thermal", plant)
    first = expected.study.stages[0]
    for tiers, bus in zip(first.bus.deficit_segments, case.system.buses, strict=True):
        yield from ((cost * hours, f"deficit at {named('bus', bus)}") for _, cost in tiers)
    for field in (name for name in first.hydro.__slots__ if name.endswith("_cost")):
        unit = 1.0 if field in PER_HM3 else hours
        for cost, hydro in zip(getattr(first.hydro, field).tolist(), case.system.hydros, strict=True):
            yield cost * unit, f"{field} of {named('hydro', hydro)}"
    for cost, line in zip(first.line.exchange_cost.tolist(), case.system.lines, strict=True):
        yield cost * hours, f"exchange_cost of {named('line', line)}"


RULES = (deficit_above_plants, minimum_generation_above_plants, range_of_prices)

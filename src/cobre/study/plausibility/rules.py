"""The rules of plausibility, in the order in which they run, and the errors that only computed numbers show."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from cobre.core.arrays import HM3_PER_M3S_HOUR, Flags, Floats, Indices
from cobre.core.case import Case
from cobre.core.entities import DeficitSegment
from cobre.core.file_names import (
    BUSES_FILE,
    CONSTRAINTS_FILE,
    CONTRACTS_FILE,
    HYDROS_FILE,
    LINES_FILE,
    PENALTIES_FILE,
    SOURCES_FILE,
    STATIONS_FILE,
    THERMALS_FILE,
)
from cobre.core.stage_data import ResolvedStudy
from cobre.io.findings import (
    Code,
    Finding,
    Findings,
    IdList,
    Layer,
    Named,
    Subject,
    error_code,
    label,
    named,
    stages,
    subject_text,
    warning_code,
)
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, SCENARIO_TABLES
from cobre.sddp.lp.plan import PlanOptions
from cobre.sddp.problem.problem import stage_plans
from cobre.sddp.problem.unreachable_minimums import UnreachableMinimum
from cobre.sddp.resolved.generic_rows import GenericRowResolver
from cobre.sddp.resolved.resolve import resolve
from cobre.stochastic import NoiseNote
from cobre.stochastic.model import NoiseModel
from cobre.study.plausibility.expected_values import Expected, expected_numbers

# Codes.

LOAD_ABOVE_CAPACITY = warning_code(
    "load-above-capacity",
    Layer.PLAUSIBILITY,
    "the load is {value:,.6g} MW in stage {stage}, but all plants together have only {capacity:,.6g} MW: the rest is "
    "shed ({count} of {all} stages)",
    remedy="is the load in MW?",
)

NO_LOAD = warning_code(
    "system-without-load",
    Layer.PLAUSIBILITY,
    "no bus has a load in any stage: nothing has to be generated",
    remedy="give the load of each bus, in MW",
)

BUS_LOAD_ABOVE_CAPACITY = warning_code(
    "bus-load-above-capacity",
    Layer.PLAUSIBILITY,
    "the load is {value:,.6g} MW in stage {stage}, but its plants have only {capacity:,.6g} MW and lines bring at most "
    "{lines:,.6g} MW: the rest is shed ({count} of {all} stages)",
)

MINIMA_ABOVE_LOAD = warning_code(
    "minimum-generation-above-load",
    Layer.PLAUSIBILITY,
    "minimum generation of thermals and imports is {value:,.6g} MW in stage {stage}, the load is {load:,.6g} MW, and "
    "lines export at most {lines:,.6g} MW: the rest is excess ({count} of {all} stages){largest}",
)

DEFICIT_BELOW_PLANTS = warning_code(
    "deficit-below-plants",
    Layer.PLAUSIBILITY,
    "the cheapest deficit costs {value:,.3f} $/MWh, and {count} of {all} thermal plants cost as much or more (the most "
    "expensive is {plant}, {cost:,.3f} $/MWh): load is shed before they run",
    expected="a deficit cost above that of every plant",
)

VIOLATION_BELOW_PLANTS = warning_code(
    "generation-violation-below-plants",
    Layer.PLAUSIBILITY,
    "violating minimum generation costs {value:,.2f} $/MWh, no more than the most expensive thermal plant "
    "({cost:,.2f} $/MWh): the limit is violated before that plant runs",
    expected="a violation cost above that of every plant",
)

RANGE_OF_COSTS = warning_code(
    "range-of-costs",
    Layer.PLAUSIBILITY,
    "costs in the objective range from {least} $ per unit ({cheap}) to {most} $ per unit ({dear}), a factor of "
    "{value:,.0f}: the small ones may be lost in the tolerances of the solver",
)

INFLOW_ABOVE_TURBINES = warning_code(
    "inflow-above-turbines",
    Layer.PLAUSIBILITY,
    "the mean inflow over the study is {value:,.6g} m3/s, {ratio} can turbine ({turbined:,.6g} m3/s)",
    remedy="is the inflow in m3/s?",
)

CAPACITY_TOO_LARGE = warning_code(
    "implausible-capacity",
    Layer.PLAUSIBILITY,
    "is {value:,.6g} MW, {comparison}",
    remedy="is the capacity in MW?",
)

STORAGE_TOO_LARGE = warning_code(
    "implausible-storage",
    Layer.PLAUSIBILITY,
    "is {value:,.6g} hm3, {comparison}",
    remedy="is the volume in hm3?",
)

RIVER_BELOW_ZERO = warning_code(
    "river-below-zero",
    Layer.PLAUSIBILITY,
    "the mean inflow over the study is {value:,.6g} m3/s, {river:,.6g} m3/s including all plants upstream: a mean flow "
    "below zero",
    remedy="check its sign",
)

OUTFLOW_OUT_OF_REACH = warning_code(
    "minimum-outflow-out-of-reach",
    Layer.PLAUSIBILITY,
    "is {value:,.6g} m3/s on average, but the mean inflow here and upstream is {river:,.6g} m3/s and storage can add "
    "{stored:,.6g} m3/s: the minimum cannot be met",
)

MINIMUM_OUT_OF_SERVICE = warning_code(
    "minimum-out-of-service",
    Layer.PLAUSIBILITY,
    "is {value:g} while the plant is not in service, in {stages}: format 0.19 charges for it as for a violation, a "
    "constant cost",
    expected="0, unless that is meant, in a row for each of these stages of {bounds}",
)

MINIMUM_OUT_OF_REACH = warning_code("minimum-storage-out-of-reach", Layer.PLAUSIBILITY, "{text}")

NAME_TWICE = warning_code(
    "name-twice",
    Layer.PLAUSIBILITY,
    "is used by {count} entities: ids {ids}",
    expected="a different name for each",
)

IDLE_THERMAL = warning_code("idle-thermal", Layer.PLAUSIBILITY, "cannot run in any stage: its maximum is 0")

IDLE_HYDRO = warning_code(
    "idle-hydro",
    Layer.PLAUSIBILITY,
    "has turbines, but cannot generate in any stage: its maximum is 0, or it is not in operation",
)

IDLE_LINE = warning_code("idle-line", Layer.PLAUSIBILITY, "cannot carry anything in any stage: its limits are 0")
UNUSABLE_NUMBER = error_code("unusable-number", Layer.MEANING, "{value} in {stages}: {cause}", remedy="{advice}")

NOTES = {
    name: warning_code(name, Layer.MEANING, "{text}")
    for name in (
        "inflows-not-stationary",
        "lags-taken-as-zero",
        "constant-observations",
        "negative-observations",
        "inflows-without-memory",
        "correlation-not-semidefinite",
        "lower-bound-not-valid",
    )
}
"""Codes of notes on noise models, by the kinds of `NoiseNote`."""


def finding_of_note(note: NoiseNote) -> Finding:
    """Return a note on a noise model as a finding."""
    code = MINIMUM_OUT_OF_REACH if note.kind == MINIMUM_OUT_OF_REACH.name else NOTES[note.kind]
    return Finding(code, note.file, label(note.where), "", {"text": note.text})


# Capacity compared with load, for the system and for each bus: what cannot be served, and what must run without a load.

LOADS = SCENARIO_TABLES["load_seasonal_stats"].file
POWER_SUM_TOLERANCE = 1e-6  # relative: sums of megawatts


def capacity_of_the_system(_: Case, expected: Expected, findings: Findings) -> None:
    """Warn of load above the total capacity of the system: the rest is shed in any hydrology."""
    load, capacity = expected.load_mw.sum(axis=1), expected.capacity_mw.sum(axis=1)
    count = _stages_above(load, capacity)
    if count:
        worst = int(np.argmax(load - capacity))
        facts = {"value": load[worst], "capacity": capacity[worst], **_where(expected, worst, count)}
        findings.add(LOAD_ABOVE_CAPACITY, LOADS, label("system"), "mean_mw", **facts)


def load_of_the_system(_: Case, expected: Expected, findings: Findings) -> None:
    """Warn of a system without any load: its table may be missing or empty, which the format allows."""
    if not expected.load_mw.any():
        findings.add(NO_LOAD, LOADS, label("system"), "mean_mw")


def capacity_of_buses(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of load at a bus above the capacity of its plants and lines; with a single bus, see the system."""
    if len(case.system.buses) == 1:
        return
    for position, bus in enumerate(case.system.buses):
        load = expected.load_mw[:, position]
        capacity, lines = expected.capacity_mw[:, position], expected.line_in_mw[:, position]
        count = _stages_above(load, capacity + lines)
        if count:
            worst = int(np.argmax(load - capacity - lines))
            facts = {"value": load[worst], "capacity": capacity[worst], "lines": lines[worst]}
            findings.add(
                BUS_LOAD_ABOVE_CAPACITY, LOADS, named("bus", bus), "mean_mw", **facts, **_where(expected, worst, count)
            )


def minima_of_buses(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of minimum generation at a bus without a load there, or lines that take it away."""
    for position, bus in enumerate(case.system.buses):
        minima = expected.must_run_mw[:, position]
        load, lines = np.maximum(expected.load_mw[:, position], 0.0), expected.line_out_mw[:, position]
        count = _stages_above(minima, load + lines)
        if count:
            worst = int(np.argmax(minima - load - lines))
            facts = {"value": minima[worst], "load": load[worst], "lines": lines[worst]}
            facts |= {"largest": _largest_minimum(case, expected, position, worst), **_where(expected, worst, count)}
            findings.add(MINIMA_ABOVE_LOAD, THERMALS_FILE, named("bus", bus), "generation.min_mw", **facts)


def _largest_minimum(case: Case, expected: Expected, bus: int, stage: int) -> str:
    """Return a clause that names the thermal plant with the largest minimum at a bus; empty if there is none."""
    at_bus = np.flatnonzero(expected.topology.thermal_bus == bus)
    if at_bus.size == 0:
        return ""
    minima = expected.study.stages[stage].thermal.min_mw[at_bus].max(axis=1)
    plant = case.system.thermals[at_bus[int(np.argmax(minima))]]
    return f"; the largest minimum is {minima.max():,.6g} MW, of {subject_text(named('thermal', plant))}"


def _stages_above(upper: Floats, lower: Floats) -> int:
    """Return the number of stages in which one number exceeds another."""
    return int((upper > lower + POWER_SUM_TOLERANCE * np.maximum(1.0, np.abs(lower))).sum())


def _where(expected: Expected, worst: int, count: int) -> dict[str, int]:
    """Return the worst stage, by its id, the number of such stages, and that of all."""
    return {"stage": expected.stage_id(worst), "count": count, "all": len(expected.hours)}


ADEQUACY_RULES = (load_of_the_system, capacity_of_the_system, capacity_of_buses, minima_of_buses)

# Prices in an order that makes sense, and in a range that a solver can tell apart.

PER_HM3 = ("storage_violation_below_cost", "filling_target_violation_cost")
WIDEST_RANGE = 1e9  # double precision has 16 digits, and the solver's tolerance takes 7 of them


def deficit_above_plants(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of plants that are more expensive than the deficit: load is shed before they run."""
    if not case.system.thermals:
        return
    cost = _thermal_costs(expected)
    dearest = int(np.argmax(cost))
    word = subject_text(named("thermal", case.system.thermals[dearest]))
    groups: list[tuple[str, Subject, str, Sequence[DeficitSegment]]] = [
        (PENALTIES_FILE, (), "bus.deficit_segments", case.penalties.bus.deficit_segments)
    ]
    groups += [
        (BUSES_FILE, named("bus", bus), "deficit_segments", bus.deficit_segments)
        for bus in case.system.buses
        if bus.deficit_segments is not None
    ]
    if all(bus.deficit_segments is not None for bus in case.system.buses):
        del groups[0]
    for file, subject, field, tiers in groups:
        cheapest = min(tier.cost for tier in tiers)
        dearer = int((cost >= cheapest).sum())
        if dearer:
            facts = {"value": cheapest, "count": dearer, "all": len(cost), "plant": word, "cost": cost[dearest]}
            findings.add(DEFICIT_BELOW_PLANTS, file, subject, field, **facts)


def minimum_generation_above_plants(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of a minimum generation that is given up before a more expensive plant runs."""
    if not case.system.thermals:
        return
    dearest = float(_thermal_costs(expected).max())
    cost = expected.study.stages[0].hydro.generation_violation_below_cost
    has_limit = np.array([hydro.generation.min_generation_mw > 0 for hydro in case.system.hydros], bool)
    for at in np.flatnonzero(has_limit & (cost <= dearest)).tolist():
        subject, field = named("hydro", case.system.hydros[at]), "hydro.generation_violation_below_cost"
        findings.add(VIOLATION_BELOW_PLANTS, PENALTIES_FILE, subject, field, value=cost[at], cost=dearest)


def _thermal_costs(expected: Expected) -> Floats:
    """Return by thermal plant its highest cost over the stages in which it can run, $/MWh."""
    study_stages = expected.study.stages
    costs = np.array(
        [np.where(stage.thermal.max_mw > 0, stage.thermal.cost, 0.0).max(axis=1) for stage in study_stages]
    )
    dearest: Floats = costs.max(axis=0)
    return dearest


def range_of_prices(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of costs that differ by many orders of magnitude: the tolerance of the large ones hides the small ones."""
    prices = [(value, location) for value, location in _prices(case, expected) if value > 0]
    if not prices:
        return
    (lowest, cheap), (highest, dear) = min(prices), max(prices)
    if highest > WIDEST_RANGE * lowest:
        facts = {
            "least": _price_text(lowest),
            "cheap": cheap,
            "most": _price_text(highest),
            "dear": dear,
            "value": highest / lowest,
        }
        findings.add(RANGE_OF_COSTS, PENALTIES_FILE, (), "", **facts)


def _price_text(amount: float) -> str:
    """Return a price without an exponent, unless it is tiny."""
    return f"{amount:,.2f}" if amount >= 0.01 else f"{amount:.2g}"


def _prices(case: Case, expected: Expected) -> Iterator[tuple[float, str]]:
    """Yield coefficients of the objective with places: $ per MW or m3/s over a block of mean length, or per hm3."""
    hours = float(expected.study.stages[0].hours.mean())
    for cost, plant in zip(_thermal_costs(expected).tolist(), case.system.thermals, strict=True):
        yield cost * hours, subject_text(named("thermal", plant))
    first = expected.study.stages[0]
    for tiers, bus in zip(first.bus.deficit_segments, case.system.buses, strict=True):
        yield from ((cost * hours, f"deficit at {subject_text(named('bus', bus))}") for _, cost in tiers)
    for field in (name for name in first.hydro.__slots__ if name.endswith("_cost")):
        unit = 1.0 if field in PER_HM3 else hours
        for cost, hydro in zip(getattr(first.hydro, field).tolist(), case.system.hydros, strict=True):
            yield cost * unit, f"{field} of {subject_text(named('hydro', hydro))}"
    for cost, line in zip(first.line.exchange_cost.tolist(), case.system.lines, strict=True):
        yield cost * hours, f"exchange_cost of {subject_text(named('line', line))}"


PRICE_RULES = (deficit_above_plants, minimum_generation_above_plants, range_of_prices)

# Capacities compared with the largest in the world, with the load and with the river: wrong units.

LARGEST_PLANT_MW = 100_000.0  # Three Gorges has 22,500 MW, and an equivalent reservoir of a whole region 45,600 MW
TIMES_LOAD = 10.0  # Itaipu, planned for Paraguay alone, has less than 4 times its load
LARGEST_STORAGE_HM3 = 1_000_000.0  # Kariba, the largest reservoir, holds 180,600 hm3
FILLING_YEARS = 30.0  # the mean inflow of less than 10 years fills the largest reservoirs
HOURS_PER_YEAR = 8760.0
A_YEAR_OF_WEEKS = 8736.0  # hours in 52 weeks: the mean inflow of less may be that of a dry season


def capacities_of_plants(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of a plant beyond all real ones, or with many times the load of the system: most likely in other units."""
    study_stages, system = expected.study.stages, case.system
    sources = system.non_controllable_sources  # all wind of a region may be one: no limit on its size
    hydro = _largest([stage.hydro.max_generation_mw for stage in study_stages])
    thermal = _largest([stage.thermal.max_mw for stage in study_stages])
    source = np.array([stage.source.available_mw for stage in study_stages]).max(axis=0)
    classes: tuple[tuple[str, str, str, Sequence[Named], Floats, float], ...] = (
        (HYDROS_FILE, "hydro", "generation.max_generation_mw", system.hydros, hydro, LARGEST_PLANT_MW),
        (THERMALS_FILE, "thermal", "generation.max_mw", system.thermals, thermal, LARGEST_PLANT_MW),
        (SOURCES_FILE, "non-controllable source", "max_generation_mw", sources, source, np.inf),
    )
    load = float(expected.load_mw.sum(axis=1).max(initial=0.0))
    for file, word, field, members, capacity, largest in classes:
        times = capacity / load if load > 0.0 else np.zeros_like(capacity)
        for position in np.flatnonzero((capacity > largest) | (times > TIMES_LOAD)).tolist():
            comparison = (
                f"{times[position]:,.0f} times the load of the whole system ({load:,.6g} MW)"
                if times[position] > TIMES_LOAD
                else "more than any plant in the world"
            )
            facts = {"value": capacity[position], "comparison": comparison}
            findings.add(CAPACITY_TOO_LARGE, file, named(word, members[position]), field, **facts)


def capacities_of_reservoirs(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of a reservoir beyond all real ones, or that its river fills in decades: most likely in other units."""
    storage = np.array([stage.hydro.max_storage_hm3 for stage in expected.study.stages]).max(axis=0)
    river = _accumulated(expected.topology.downstream, _mean(expected, expected.inflow_m3s))
    is_known = (river > 0.0) & ~_fed_from_elsewhere(expected) & (expected.hours.sum() >= A_YEAR_OF_WEEKS)
    years = np.zeros_like(storage)
    years[is_known] = storage[is_known] / (river[is_known] * HM3_PER_M3S_HOUR * HOURS_PER_YEAR)
    for position in np.flatnonzero((storage > LARGEST_STORAGE_HM3) | (years > FILLING_YEARS)).tolist():
        comparison = (
            f"which its mean inflow ({river[position]:,.6g} m3/s including all plants upstream) takes "
            f"{years[position]:,.0f} years to fill"
            if years[position] > FILLING_YEARS
            else "more than any reservoir in the world"
        )
        facts = {"value": storage[position], "comparison": comparison}
        subject = named("hydro", case.system.hydros[position])
        findings.add(STORAGE_TOO_LARGE, HYDROS_FILE, subject, "reservoir.max_storage_hm3", **facts)


SIZE_RULES = (capacities_of_plants, capacities_of_reservoirs)

# Inflows compared with turbines and limits: wrong units, means below zero, minimums that no water can meet.

INFLOWS = SCENARIO_TABLES["inflow_seasonal_stats"].file
HISTORY = SCENARIO_TABLES["inflow_history"].file
PLANT_BOUNDS, GROUP_BOUNDS = (OVERRIDE_TABLES[name].file for name in ("hydro_bounds", "hydro_unit_group_bounds"))
OUTFLOW, OF_MACHINES = "min_outflow_m3s", ("min_turbined_m3s", "min_generation_mw")
TIMES_TURBINES = 20.0  # turbines are built for about the mean inflow; wrong units are off by far more
LARGEST_RIVER_M3S = 209_000.0  # mean of the Amazon at its mouth


def inflows_beside_turbines(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of an inflow far beyond what a plant was built for: it is most likely in other units."""
    mean = _mean(expected, expected.inflow_m3s)
    turbined = np.array([hydro.generation.max_turbined_m3s for hydro in case.system.hydros])
    too_large = (mean > LARGEST_RIVER_M3S) | ((turbined > 0) & (mean > TIMES_TURBINES * turbined))
    for position in np.flatnonzero(too_large):
        ratio = (
            f"{mean[position] / turbined[position]:,.0f} times what it" if turbined[position] > 0 else "more than it"
        )
        facts = {"value": mean[position], "ratio": ratio, "turbined": turbined[position]}
        findings.add(INFLOW_ABOVE_TURBINES, _file(case), named("hydro", case.system.hydros[position]), **facts)


def inflows_below_zero(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of a river whose mean flow is below zero; a single plant may lose water."""
    mean = _mean(expected, expected.inflow_m3s)
    river = _accumulated(expected.topology.downstream, mean)
    fed = _fed_from_elsewhere(expected)
    for position in np.flatnonzero((river < 0.0) & (mean < 0.0) & ~fed):
        facts = {"value": mean[position], "river": river[position]}
        findings.add(RIVER_BELOW_ZERO, _file(case), named("hydro", case.system.hydros[position]), **facts)


def minimum_outflows(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of a minimum outflow beyond what arrives and what is stored there or upstream."""
    study_stages = expected.study.stages
    demanded = np.array([stage.hydro.min_outflow_m3s @ (stage.hours / stage.hours.sum()) for stage in study_stages])
    minimum = _mean(expected, demanded)
    downstream = expected.topology.downstream
    river = _accumulated(downstream, _mean(expected, expected.inflow_m3s))
    stored = _accumulated(downstream, expected.study.initial_storage_hm3)
    stored_m3s = stored / (HM3_PER_M3S_HOUR * expected.hours.sum())
    is_short = (minimum > 0.0) & (minimum > np.maximum(river, 0.0) + stored_m3s) & ~_fed_from_elsewhere(expected)
    for position in np.flatnonzero(is_short):
        facts = {"value": minimum[position], "river": river[position], "stored": stored_m3s[position]}
        subject = named("hydro", case.system.hydros[position])
        findings.add(OUTFLOW_OUT_OF_REACH, HYDROS_FILE, subject, "outflow.min_outflow_m3s", **facts)


def _mean(expected: Expected, values: Floats) -> Floats:
    """Return means over the stages of the study, weighted by hours."""
    mean: Floats = expected.hours @ values / expected.hours.sum()
    return mean


def minimums_out_of_service(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of minimum flows and generations in stages where the plant is out of service: format 0.19 penalises them."""
    study_stages = expected.study.stages
    not_there = np.array([~(stage.hydro.is_active | stage.hydro.is_filling) for stage in study_stages])
    idle = np.array([~stage.hydro.is_active for stage in study_stages])
    group_hydro = expected.topology.group_hydro
    minimums = np.array([stage.hydro.min_outflow_m3s.max(axis=1) for stage in study_stages])
    _warn_of_charges(case, expected, OUTFLOW, np.where(not_there, minimums, 0.0), PLANT_BOUNDS, findings)
    for name in OF_MACHINES:
        minimums = np.array([getattr(stage.hydro, name).max(axis=1) for stage in study_stages])
        _warn_of_charges(case, expected, name, np.where(idle, minimums, 0.0), PLANT_BOUNDS, findings)
        groups = [getattr(stage.group, name).max(axis=1) for stage in study_stages]
        minimums = np.array([np.bincount(group_hydro, values, idle.shape[1]) for values in groups])
        _warn_of_charges(case, expected, name, np.where(idle, minimums, 0.0), GROUP_BOUNDS, findings)


def _warn_of_charges(
    case: Case, expected: Expected, name: str, minimums: Floats, bounds: str, findings: Findings
) -> None:
    """Warn of each plant with a minimum in stages in which it is out of service; least: T x N, 0 in service."""
    for position in np.flatnonzero((minimums > 0.0).any(axis=0)).tolist():
        ids = [expected.stage_id(stage) for stage in np.flatnonzero(minimums[:, position] > 0.0).tolist()]
        facts = {"value": minimums[:, position].max(), "stages": stages(ids), "bounds": bounds}
        findings.add(MINIMUM_OUT_OF_SERVICE, HYDROS_FILE, named("hydro", case.system.hydros[position]), name, **facts)


def minimums_out_of_reach(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of a minimum that a dry period leaves out of reach: it holds at a price."""
    options = PlanOptions.of(case.config.modeling, case.format_version)
    _, unreachable = stage_plans(expected.study, expected.noise, options, np.zeros(len(case.system.pumping_stations)))
    for note in minimum_notes(case, expected.study, unreachable):
        findings.add(MINIMUM_OUT_OF_REACH, note.file, label(note.where), "min_storage_hm3", text=note.text)


def minimum_notes(case: Case, study: ResolvedStudy, unreachable: Sequence[UnreachableMinimum]) -> list[NoiseNote]:
    """Return which minimum storages hold at a price, because a dry period leaves them out of reach."""
    notes = []
    for minimum in unreachable:
        hydro, data = case.system.hydros[minimum.hydro], study.stages[minimum.stage]
        floor = min(hydro.reservoir.min_storage_hm3, minimum.limit_hm3)
        price = float(data.hydro.storage_violation_below_cost[minimum.hydro])
        text = minimum.describe(data.stage.id, floor, price)
        notes.append(NoiseNote(MINIMUM_OUT_OF_REACH.name, PLANT_BOUNDS, subject_text(named("hydro", hydro)), text))
    return notes


def _accumulated(downstream: Indices, values: Floats) -> Floats:
    """Return by plant the sum over itself and all plants upstream."""
    total, moving = values.astype(np.float64), values.astype(np.float64)
    for _ in range(len(values)):
        has_next = (downstream >= 0) & (moving != 0.0)
        if not has_next.any():
            break
        moving = np.bincount(downstream[has_next], moving[has_next], len(values)).astype(np.float64)
        total = total + moving
    return total


def _fed_from_elsewhere(expected: Expected) -> Flags:
    """Return plants that get diverted or pumped water, and all downstream of them: their balance is another."""
    topology = expected.topology
    count = len(topology.downstream)
    fed = np.zeros(count)
    for targets in (topology.diversion_target, topology.pumping_destination):
        fed[targets[targets >= 0]] = 1.0
    is_fed: Flags = _accumulated(topology.downstream, fed) > 0.0
    return is_fed


def _file(case: Case) -> str:
    return HISTORY if case.scenarios.inflow_seasonal_stats is None else INFLOWS


WATER_RULES = (
    inflows_beside_turbines,
    inflows_below_zero,
    minimum_outflows,
    minimums_out_of_service,
    minimums_out_of_reach,
)


# Names used twice, and plants that can never run.


def names_used_twice(case: Case, _: Expected, findings: Findings) -> None:
    """Warn of names used twice: results are read by name, and two plants of one name cannot be told apart."""
    system = case.system
    classes: tuple[tuple[str, str, Sequence[Named]], ...] = (
        (BUSES_FILE, "bus", system.buses),
        (LINES_FILE, "line", system.lines),
        (HYDROS_FILE, "hydro", system.hydros),
        (THERMALS_FILE, "thermal", system.thermals),
        (SOURCES_FILE, "non-controllable source", system.non_controllable_sources),
        (STATIONS_FILE, "pumping station", system.pumping_stations),
        (CONTRACTS_FILE, "contract", system.energy_contracts),
    )
    for file, word, members in classes:
        _check_names(file, word, members, findings)


def _check_names(file: str, word: str, members: Sequence[Named], findings: Findings) -> None:
    ids: dict[str, list[int]] = {}
    for entity in members:
        ids.setdefault(entity.name.strip().casefold(), []).append(entity.id)
    for entity in members:
        same = ids.pop(entity.name.strip().casefold(), [])
        if len(same) > 1:
            facts = {"value": entity.name, "count": len(same), "ids": IdList(same)}
            findings.add(NAME_TWICE, file, named(word, entity), "name", **facts)


def plants_that_never_run(case: Case, expected: Expected, findings: Findings) -> None:
    """Warn of a plant whose maximum is 0 in every stage and block: it is out of service or forgotten."""
    study_stages, system = expected.study.stages, case.system
    thermal = _largest([stage.thermal.max_mw for stage in study_stages])
    group = _largest([stage.group.max_generation_mw for stage in study_stages])
    hydro = np.bincount(expected.topology.group_hydro, group, len(system.hydros)).astype(np.float64)
    line = _largest([np.hstack([stage.line.direct_mw, stage.line.reverse_mw]) for stage in study_stages])
    _warn(THERMALS_FILE, "thermal", system.thermals, thermal, IDLE_THERMAL, findings)
    with_groups = [number for number, plant in enumerate(system.hydros) if plant.generation.max_generation_mw > 0]
    plants = [system.hydros[number] for number in with_groups]
    _warn(HYDROS_FILE, "hydro", plants, hydro[with_groups], IDLE_HYDRO, findings)
    _warn(LINES_FILE, "line", system.lines, line, IDLE_LINE, findings)


def _largest(limits: Sequence[Floats]) -> Floats:
    """Return by entity the largest value over all stages and blocks."""
    largest: Floats = np.array([values.max(axis=1) for values in limits]).max(axis=0)
    return largest


def _warn(file: str, word: str, members: Sequence[Named], largest: Floats, code: Code, findings: Findings) -> None:
    for position in np.flatnonzero(largest <= 0.0).tolist():
        findings.add(code, file, named(word, members[position]))


NAME_RULES = (names_used_twice, plants_that_never_run)

Rule = Callable[[Case, Expected, Findings], None]
RULES: tuple[Rule, ...] = (*NAME_RULES, *ADEQUACY_RULES, *SIZE_RULES, *WATER_RULES, *PRICE_RULES)


def check_generic_numbers(case: Case, findings: Findings) -> None:
    """Add an error for each generic constraint with a number that is divided by 0, or beyond 1e20, in some stage."""
    stages_by_finding: dict[tuple[Subject, str, str, str], set[int]] = {}
    rows = GenericRowResolver(case)
    for stage in case.horizon.stages:
        for constraint, error in rows.unusable_numbers(stage):
            key = named("constraint", constraint), error.what, error.cause, error.remedy
            stages_by_finding.setdefault(key, set()).add(stage.id)
    for (subject, what, cause, remedy), ids in stages_by_finding.items():
        facts = {"value": what, "stages": stages(ids), "cause": cause, "advice": remedy}
        findings.add(UNUSABLE_NUMBER, CONSTRAINTS_FILE, subject, "expression", **facts)


def check_plausibility(case: Case, noise: NoiseModel, findings: Findings) -> None:
    """Add a warning for everything that is allowed and looks like a mistake. The case must be without errors."""
    expected = expected_numbers(resolve(case), noise)
    for rule in RULES:
        rule(case, expected, findings)

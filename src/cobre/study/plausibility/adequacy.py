"""Capacity beside load, for the system and for each bus: what cannot be served, and what must run without a load."""

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.io.input_files import entities
from cobre.io.input_files.table_formats import SCENARIO_TABLES
from cobre.io.validation.layer_findings import Findings, named
from cobre.study.plausibility.expected import Expected

LOADS = SCENARIO_TABLES["load_seasonal_stats"].file
TOLERANCE = 1e-6  # relative: sums of megawatts


def capacity_of_the_system(_: Case, expected: Expected, findings: Findings) -> None:
    """More load than everything together can generate is shed, whatever the water."""
    load, capacity = expected.load_mw.sum(axis=1), expected.capacity_mw.sum(axis=1)
    where = _stages_above(expected, load, capacity)
    if where:
        worst = int(np.argmax(load - capacity))
        message = (
            f"the load is {load[worst]:,.6g} MW in stage {expected.stage_id(worst)}, "
            f"but all plants together have only {capacity[worst]:,.6g} MW: the rest is shed ({where})"
        )
        findings.warn(LOADS, "system", "mean_mw", message, "is the load in MW?")


def capacity_of_buses(case: Case, expected: Expected, findings: Findings) -> None:
    """More load at a bus than its plants and lines can bring is shed; a single bus is the system."""
    if len(case.system.buses) == 1:
        return
    for position, bus in enumerate(case.system.buses):
        load = expected.load_mw[:, position]
        capacity, lines = expected.capacity_mw[:, position], expected.line_in_mw[:, position]
        where = _stages_above(expected, load, capacity + lines)
        if where:
            worst = int(np.argmax(load - capacity - lines))
            message = (
                f"the load is {load[worst]:,.6g} MW in stage {expected.stage_id(worst)}, but its plants have only "
                f"{capacity[worst]:,.6g} MW and lines bring at most {lines[worst]:,.6g} MW: the rest is shed ({where})"
            )
            findings.warn(LOADS, named("bus", bus), "mean_mw", message)


def minima_of_buses(case: Case, expected: Expected, findings: Findings) -> None:
    """What must run at a bus needs a load there, or lines that take it away."""
    for position, bus in enumerate(case.system.buses):
        minima = expected.must_run_mw[:, position]
        load, lines = np.maximum(expected.load_mw[:, position], 0.0), expected.line_out_mw[:, position]
        where = _stages_above(expected, minima, load + lines)
        if where:
            worst = int(np.argmax(minima - load - lines))
            largest = _largest_minimum(case, expected, position, worst)
            message = (
                f"minimum generation of thermals and imports is {minima[worst]:,.6g} MW in stage "
                f"{expected.stage_id(worst)}, the load is {load[worst]:,.6g} MW, and lines export at most "
                f"{lines[worst]:,.6g} MW: the rest is excess ({where}){largest}"
            )
            findings.warn(entities.THERMALS, named("bus", bus), "generation.min_mw", message)


def _largest_minimum(case: Case, expected: Expected, bus: int, stage: int) -> str:
    """A clause naming the thermal plant with the largest minimum at a bus; empty where there is none."""
    at_bus = np.flatnonzero(expected.topology.thermal_bus == bus)
    if at_bus.size == 0:
        return ""
    minima = expected.study.stages[stage].thermal.min_mw[at_bus].max(axis=1)
    plant = case.system.thermals[at_bus[int(np.argmax(minima))]]
    return f"; the largest minimum is {minima.max():,.6g} MW, of {named('thermal', plant)}"


def _stages_above(expected: Expected, upper: Floats, lower: Floats) -> str:
    """How often one number exceeds another, such as `3 of 12 stages`; empty where it never does."""
    is_above = upper > lower + TOLERANCE * np.maximum(1.0, np.abs(lower))
    return f"{int(is_above.sum())} of {len(expected.hours)} stages" if is_above.any() else ""


RULES = (capacity_of_the_system, capacity_of_buses, minima_of_buses)

"""Inflows beside turbines and limits: wrong units, means below zero, minimums that no water can meet."""

from collections.abc import Sequence

import numpy as np

from cobre.core.arrays import Flags, Floats, Indices
from cobre.core.case import Case
from cobre.core.stage_data import ResolvedStudy
from cobre.core.units import HM3_PER_M3S_HOUR
from cobre.io.input_files import entities
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, SCENARIO_TABLES
from cobre.io.validation.layer_findings import Findings, named, with_ids
from cobre.sddp.lp.plan import PlanOptions
from cobre.sddp.problem.problem import stage_plans
from cobre.sddp.problem.unreachable_minimums import UnreachableMinimum
from cobre.stochastic.notes import NoiseNote
from cobre.study.plausibility.expected import Expected

INFLOWS = SCENARIO_TABLES["inflow_seasonal_stats"].file
HISTORY = SCENARIO_TABLES["inflow_history"].file
PLANT_BOUNDS, GROUP_BOUNDS = (OVERRIDE_TABLES[name].file for name in ("hydro_bounds", "hydro_unit_group_bounds"))
OUTFLOW, OF_MACHINES = "min_outflow_m3s", ("min_turbined_m3s", "min_generation_mw")
TIMES_TURBINES = 20.0  # turbines are built for about the mean inflow; wrong units are off by far more
LARGEST_RIVER_M3S = 209_000.0  # mean of the Amazon at its mouth


def inflows_beside_turbines(case: Case, expected: Expected, findings: Findings) -> None:
    """An inflow far beyond what a plant was built for is most likely in other units."""
    mean = _mean(expected, expected.inflow_m3s)
    turbined = np.array([hydro.generation.max_turbined_m3s for hydro in case.system.hydros])
    too_large = (mean > LARGEST_RIVER_M3S) | ((turbined > 0) & (mean > TIMES_TURBINES * turbined))
    for position in np.flatnonzero(too_large):
        ratio = (
            f"{mean[position] / turbined[position]:,.0f} times what it" if turbined[position] > 0 else "more than it"
        )
        message = (
            f"the mean inflow over the study is {mean[position]:,.6g} m3/s, {ratio} can turbine "
            f"({turbined[position]:,.6g} m3/s)"
        )
        findings.warn(_file(case), named("hydro", case.system.hydros[position]), "", message, "is the inflow in m3/s?")


def inflows_below_zero(case: Case, expected: Expected, findings: Findings) -> None:
    """A plant alone may lose water; the river above and at it, on average, does not."""
    mean = _mean(expected, expected.inflow_m3s)
    river = _accumulated(expected.topology.downstream, mean)
    fed = _fed_from_elsewhere(expected)
    for position in np.flatnonzero((river < 0.0) & (mean < 0.0) & ~fed):
        message = (
            f"the mean inflow over the study is {mean[position]:,.6g} m3/s, "
            f"{river[position]:,.6g} m3/s including all plants upstream: a mean flow below zero"
        )
        findings.warn(_file(case), named("hydro", case.system.hydros[position]), "", message, "check its sign")


def minimum_outflows(case: Case, expected: Expected, findings: Findings) -> None:
    """What must leave a plant over the study must have come, or have been stored there or upstream."""
    stages = expected.study.stages
    demanded = np.array([stage.hydro.min_outflow_m3s @ (stage.hours / stage.hours.sum()) for stage in stages])
    least = _mean(expected, demanded)
    downstream = expected.topology.downstream
    river = _accumulated(downstream, _mean(expected, expected.inflow_m3s))
    stored = _accumulated(downstream, expected.study.initial_storage_hm3)
    stored_m3s = stored / (HM3_PER_M3S_HOUR * expected.hours.sum())
    is_short = (least > 0.0) & (least > np.maximum(river, 0.0) + stored_m3s) & ~_fed_from_elsewhere(expected)
    for position in np.flatnonzero(is_short):
        message = (
            f"is {least[position]:,.6g} m3/s on average, but the mean inflow here and upstream is "
            f"{river[position]:,.6g} m3/s and storage can add {stored_m3s[position]:,.6g} m3/s: "
            "the minimum cannot be met"
        )
        entity = named("hydro", case.system.hydros[position])
        findings.warn(entities.HYDROS, entity, "outflow.min_outflow_m3s", message)


def _mean(expected: Expected, values: Floats) -> Floats:
    """Means over the stages of the study, weighted by hours."""
    mean: Floats = expected.hours @ values / expected.hours.sum()
    return mean


def minimums_out_of_service(case: Case, expected: Expected, findings: Findings) -> None:
    """By the rules of format 0.19, what must flow or be generated costs also where a plant cannot do either."""
    stages = expected.study.stages
    not_there = np.array([~(stage.hydro.is_active | stage.hydro.is_filling) for stage in stages])
    idle = np.array([~stage.hydro.is_active for stage in stages])
    group_hydro = expected.topology.group_hydro
    least = np.array([stage.hydro.min_outflow_m3s.max(axis=1) for stage in stages])
    _warn_of_charges(case, expected, OUTFLOW, np.where(not_there, least, 0.0), PLANT_BOUNDS, findings)
    for name in OF_MACHINES:
        least = np.array([getattr(stage.hydro, name).max(axis=1) for stage in stages])
        _warn_of_charges(case, expected, name, np.where(idle, least, 0.0), PLANT_BOUNDS, findings)
        groups = [getattr(stage.group, name).max(axis=1) for stage in stages]
        least = np.array([np.bincount(group_hydro, values, idle.shape[1]) for values in groups])
        _warn_of_charges(case, expected, name, np.where(idle, least, 0.0), GROUP_BOUNDS, findings)


def _warn_of_charges(case: Case, expected: Expected, name: str, least: Floats, bounds: str, findings: Findings) -> None:
    """Warn of each plant with a minimum in stages in which it is out of service; least: T x N, 0 in service."""
    for position in np.flatnonzero((least > 0.0).any(axis=0)).tolist():
        ids = [expected.stage_id(stage) for stage in np.flatnonzero(least[:, position] > 0.0).tolist()]
        message = (
            f"is {least[:, position].max():g} while the plant is not in service, in {with_ids('stage', ids)}: "
            "format 0.19 charges for it as for a violation, a constant cost"
        )
        remedy = f"0, unless that is meant, in a row for each of these stages of {bounds}"
        findings.warn(entities.HYDROS, named("hydro", case.system.hydros[position]), name, message, remedy)


def minimums_out_of_reach(case: Case, expected: Expected, findings: Findings) -> None:
    """A minimum that a dry period leaves out of reach holds at a price."""
    options = PlanOptions.of(case.config.modeling, case.format_version)
    _, unreachable = stage_plans(expected.study, expected.noise, options, np.zeros(len(case.system.pumping_stations)))
    for note in minimum_notes(case, expected.study, unreachable):
        findings.warn(note.file, note.where, "min_storage_hm3", note.text)


def minimum_notes(case: Case, study: ResolvedStudy, unreachable: Sequence[UnreachableMinimum]) -> list[NoiseNote]:
    """Say which minimum storages hold at a price, because a dry period leaves them out of reach."""
    notes = []
    for minimum in unreachable:
        hydro, data = case.system.hydros[minimum.hydro], study.stages[minimum.stage]
        floor = min(hydro.reservoir.min_storage_hm3, minimum.limit_hm3)
        price = float(data.hydro.storage_violation_below_cost[minimum.hydro])
        notes.append(NoiseNote(PLANT_BOUNDS, named("hydro", hydro), minimum.describe(data.stage.id, floor, price)))
    return notes


def _accumulated(downstream: Indices, values: Floats) -> Floats:
    """By plant: the sum over itself and all plants upstream."""
    total, moving = values.astype(np.float64), values.astype(np.float64)
    for _ in range(len(values)):
        has_next = (downstream >= 0) & (moving != 0.0)
        if not has_next.any():
            break
        moving = np.bincount(downstream[has_next], moving[has_next], len(values)).astype(np.float64)
        total = total + moving
    return total


def _fed_from_elsewhere(expected: Expected) -> Flags:
    """Plants that get diverted or pumped water, and all downstream of them: their balance is another."""
    topology = expected.topology
    count = len(topology.downstream)
    fed = np.zeros(count)
    for targets in (topology.diversion_target, topology.pumping_destination):
        fed[targets[targets >= 0]] = 1.0
    is_fed: Flags = _accumulated(topology.downstream, fed) > 0.0
    return is_fed


def _file(case: Case) -> str:
    return HISTORY if case.scenarios.inflow_seasonal_stats is None else INFLOWS


RULES = (inflows_beside_turbines, inflows_below_zero, minimum_outflows, minimums_out_of_service, minimums_out_of_reach)

"""Small cases in memory, with only what the noise model reads."""

from dataclasses import replace
from datetime import date

import numpy as np

from cobre.core.case import Case, InflowObservation, InitialConditions, OverrideTables, ScenarioTables, System
from cobre.core.config import (
    Config,
    SampledSimulation,
    SampledTraining,
    ScenarioSource,
    SimulationConfig,
    TrainingConfig,
)
from cobre.core.entities import (
    Bus,
    BusPenalties,
    DeficitSegment,
    HydroPenalties,
    LinePenalties,
    NonControllablePenalties,
    NonControllableSource,
    Penalties,
)
from cobre.core.generic_constraints import GenericConstraints
from cobre.core.hydro import Hydro, HydroGeneration, Outflow, ProductionModels, Reservoir, UnitGroup
from cobre.core.stopping import IterationLimit
from cobre.core.temporal import Block, Horizon, PolicyGraph, Season, SeasonDefinitions, Stage

START = date(2024, 1, 1)
MONTHLY = SeasonDefinitions("monthly", tuple(Season(i, f"S{i}", i + 1) for i in range(12)))
INTEGER_COLUMNS = {"hydro_id", "bus_id", "ncs_id", "stage_id", "lag", "scenario_id", "opening_index", "entity_index"}


def month(year, number):
    """Return the first day of a month; numbers below 1 and above 12 reach into other years."""
    return date(year + (number - 1) // 12, (number - 1) % 12 + 1, 1)


def table(columns, rows):
    """Return rows as the columns that a reader would give."""
    return {name: _column(name, [row[i] for row in rows]) for i, name in enumerate(columns.split())}


def _column(name, values):
    if name.endswith("_date"):
        return np.array(values, dtype="datetime64[D]")
    return np.array(values, dtype=np.int32 if name in INTEGER_COLUMNS else np.float64)


def inflow_stats(rows):
    return table("hydro_id stage_id mean_m3s std_m3s", rows)


def coefficients(rows):
    return table("hydro_id stage_id lag coefficient", rows)


def load_stats(rows):
    return table("bus_id stage_id mean_mw std_mw", rows)


def history(rows):
    return table("hydro_id start_date end_date value_m3s", rows)


def monthly_history(values, first_year):
    """Return a history from an array (year, month, hydro)."""
    return history(
        [
            (h, month(first_year + y, m + 1), month(first_year + y, m + 2), float(values[y, m, h]))
            for h in range(values.shape[2])
            for y in range(values.shape[0])
            for m in range(values.shape[1])
        ]
    )


def hydro(number):
    limits = {"min_turbined_m3s": 0.0, "max_turbined_m3s": 50.0, "min_generation_mw": 0.0, "max_generation_mw": 50.0}
    return Hydro(
        id=number,
        name=f"H{number}",
        operational_start_date=START,
        reservoir=Reservoir(0.0, 100.0),
        outflow=Outflow(0.0, None),
        generation=HydroGeneration(model="constant_productivity", **limits),
        unit_groups=(UnitGroup(id=0, name="G", bus_id=0, **limits),),
    )


def stages(count, start=(2024, 1), *, openings=4, with_seasons=False, method="saa"):
    """Return stages of whole months."""
    return tuple(
        Stage(
            id=t,
            start_date=month(start[0], start[1] + t),
            end_date=month(start[0], start[1] + t + 1),
            blocks=(Block(0, "B", 720.0),),
            num_openings=openings,
            season_id=month(start[0], start[1] + t).month - 1 if with_seasons else None,
            sampling_method=method,
        )
        for t in range(count)
    )


def observed(values, start=(2024, 1), hydros=1):
    """Return monthly means before the start, the latest first, the same for all hydros."""
    return tuple(
        InflowObservation(h, month(start[0], start[1] - lag), month(start[0], start[1] - lag + 1), value)
        for h in range(hydros)
        for lag, value in enumerate(values, start=1)
    )


def make_case(
    hydros=1,
    buses=1,
    sources=0,
    horizon_stages=None,
    with_seasons=False,
    recent=(),
    source=None,
    simulation_source=None,
    tree_seed=42,
    forward_passes=3,
    num_scenarios=8,
    **tables,
):
    """Return a case; `tables` are fields of `ScenarioTables`."""
    training = TrainingConfig(
        SampledTraining(forward_passes),
        (IterationLimit(1),),
        tree_seed=tree_seed,
        scenario_source=source or ScenarioSource(),
    )
    simulation = SimulationConfig(selection=SampledSimulation(num_scenarios), scenario_source=simulation_source)
    return Case(
        name="hand-made",
        config=Config(training, simulation),
        horizon=Horizon(
            PolicyGraph("finite_horizon", 0.0),
            stages(2, with_seasons=with_seasons) if horizon_stages is None else horizon_stages,
            season_definitions=MONTHLY if with_seasons else None,
        ),
        initial_conditions=InitialConditions({}, recent_observations=tuple(recent)),
        penalties=_penalties(),
        system=System(
            buses=tuple(Bus(i, f"B{i}", START) for i in range(buses)),
            hydros=tuple(hydro(i) for i in range(hydros)),
            non_controllable_sources=tuple(NonControllableSource(i, f"N{i}", START, 0, 10.0) for i in range(sources)),
        ),
        production=ProductionModels(),
        scenarios=ScenarioTables(**tables),
        overrides=OverrideTables(),
        generic_constraints=GenericConstraints(),
    )


def with_estimation(case, **fields):
    """Return the same case with other settings for estimation."""
    return replace(case, config=replace(case.config, estimation=replace(case.config.estimation, **fields)))


def _penalties():
    hydro_costs = dict.fromkeys(
        [
            "spillage_cost",
            "turbined_cost",
            "diversion_cost",
            "storage_violation_below_cost",
            "filling_target_violation_cost",
            "turbined_violation_below_cost",
            "outflow_violation_below_cost",
            "outflow_violation_above_cost",
            "generation_violation_below_cost",
            "evaporation_violation_cost",
            "water_withdrawal_violation_cost",
        ],
        1.0,
    )
    return Penalties(
        BusPenalties((DeficitSegment(depth_mw=None, cost=1000.0),), 1.0),
        LinePenalties(1.0),
        HydroPenalties(**hydro_costs),
        NonControllablePenalties(1.0),
    )

"""Hydro plants, as a whole and by the bus that they feed."""

from collections.abc import Iterator

import numpy as np

from cobre.core.arrays import Floats
from cobre.sddp.simulation.outcome import StageOutcome, sum_into
from cobre.sddp.simulation.tables import ResultTable

HYDROS = ResultTable(
    "hydros",
    ("hydro_id",),
    (
        "turbined_m3s",
        "spillage_m3s",
        "outflow_m3s",
        "evaporation_m3s",
        "diverted_inflow_m3s",
        "diverted_outflow_m3s",
        "incremental_inflow_m3s",
        "inflow_m3s",
        "storage_initial_hm3",
        "storage_final_hm3",
        "generation_mw",
        "generation_mwh",
        "spillage_cost",
        "water_value_per_hm3",
        "turbined_slack_m3s",
        "outflow_slack_below_m3s",
        "outflow_slack_above_m3s",
        "generation_slack_mw",
        "storage_violation_below_hm3",
        "filling_target_violation_hm3",
        "evaporation_violation_pos_m3s",
        "evaporation_violation_neg_m3s",
        "inflow_nonnegativity_slack_m3s",
        "water_withdrawal_violation_pos_m3s",
        "water_withdrawal_violation_neg_m3s",
    ),
)
HYDRO_BUS_GENERATION = ResultTable(
    "hydro_bus_generation", ("hydro_id", "bus_id"), ("turbined_m3s", "generation_mw", "generation_mwh")
)


def read_hydros(outcome: StageOutcome) -> Iterator[Floats]:
    """In the order of the table's numbers, a few of them at a time: they are most of what a stage decides."""
    plan = outcome.lp.plan
    for group in (_water, _power, _slacks):
        for numbers in group(outcome):
            yield np.broadcast_to(numbers, (outcome.scenarios, plan.num_hydros, plan.num_blocks))


def _water(outcome: StageOutcome) -> tuple[Floats, ...]:
    plan, columns = outcome.lp.plan, outcome.lp.columns
    n = plan.num_hydros
    turbined = sum_into(outcome.values(columns.turbined), plan.pair_hydro, n)
    spilled, diverted = outcome.values(columns.spilled), outcome.values(columns.diverted)
    arriving = sum_into(diverted, plan.topology.diversion_target, n)
    natural = outcome.inflow[:, :, None]
    first, last = _volumes(outcome)
    return (
        turbined,
        spilled,
        turbined + spilled,
        outcome.by_block(columns.evaporated),
        arriving,
        diverted,
        natural,
        natural,
        first,
        last,
    )


def _volumes(outcome: StageOutcome) -> tuple[Floats, Floats]:
    """At the beginning and the end: of the stage, or of every block when blocks follow one another."""
    last = outcome.values(outcome.lp.columns.storage)
    return np.concatenate([outcome.storage[:, :, None], last[:, :, :-1]], axis=2), last


def _power(outcome: StageOutcome) -> tuple[Floats, ...]:
    plan, columns = outcome.lp.plan, outcome.lp.columns
    power = sum_into(pair_generation(outcome), plan.pair_hydro, plan.num_hydros)
    spillage_cost = outcome.values(columns.spilled) * (plan.data.hydro.spillage_cost[:, None] * plan.hours)
    # One more hm3 on the right side of the balance changes the cost by its dual; water is worth what it saves.
    return power, power * plan.hours, spillage_cost, 0.0 - outcome.duals(outcome.lp.water.balance)


def pair_generation(outcome: StageOutcome) -> Floats:
    """S x F x K, MW: the power of each pair of plant and bus."""
    plan, columns = outcome.lp.plan, outcome.lp.columns
    by_rate = outcome.values(columns.turbined) * plan.pair_productivity[:, None]
    return by_rate + outcome.values(columns.generation)


def _slacks(outcome: StageOutcome) -> tuple[Floats, ...]:
    plan, columns = outcome.lp.plan, outcome.lp.columns
    owner, n = plan.pair_hydro, plan.num_hydros
    turbined = outcome.values(columns.turbined_below)
    generation = outcome.values(columns.generation_below)
    return (
        turbined + sum_into(outcome.values(columns.group_turbined_below), owner, n),
        outcome.values(columns.outflow_below),
        outcome.values(columns.outflow_above),
        generation + sum_into(outcome.values(columns.group_generation_below), owner, n),
        outcome.by_block(columns.storage_below),
        outcome.by_block(columns.filling_below),
        outcome.by_block(columns.evaporation_more),
        outcome.by_block(columns.evaporation_less),
        outcome.by_block(columns.inflow_slack),
        outcome.by_block(columns.withdrawal_more),
        outcome.by_block(columns.withdrawal_less),
    )


def read_hydro_bus_generation(outcome: StageOutcome) -> tuple[Floats, ...]:
    """Flow and power of the machines that feed one bus."""
    power = pair_generation(outcome)
    return outcome.values(outcome.lp.columns.turbined), power, power * outcome.lp.plan.hours

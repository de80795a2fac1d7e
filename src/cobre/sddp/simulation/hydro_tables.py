"""Tables of hydro plants and of water in transit. Water values: docs/explanation/stage-lp.md."""

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.core.case import ABSENT_ID
from cobre.core.stage_data import IN_TRANSIT, StateSlot
from cobre.sddp.lp.build import StageLp
from cobre.sddp.simulation.tables import (
    ColumnsByName,
    ResultTable,
    StageOutcome,
    StageRows,
    running_sum,
    sum_into,
)

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


def read_water(outcome: StageOutcome) -> ColumnsByName:
    """Return flows and storage of hydro plants."""
    plan, columns = outcome.lp.plan, outcome.lp.columns
    n = plan.num_hydros
    turbined = sum_into(outcome.values(columns.turbined), plan.pair_hydro, n)
    spilled, diverted = outcome.values(columns.spilled), outcome.values(columns.diverted)
    natural = outcome.inflow[:, :, None]
    # At the beginning and the end of the stage, or of every block when blocks follow one another.
    last = outcome.values(columns.storage)
    first = np.concatenate([outcome.storage[:, :, None], last[:, :, :-1]], axis=2)
    return _in_every_block(
        outcome,
        {
            "turbined_m3s": turbined,
            "spillage_m3s": spilled,
            "outflow_m3s": turbined + spilled,
            "evaporation_m3s": outcome.by_block(columns.evaporated),
            "diverted_inflow_m3s": sum_into(diverted, plan.topology.diversion_target, n),
            "diverted_outflow_m3s": diverted,
            "incremental_inflow_m3s": natural,
            "inflow_m3s": natural,
            "storage_initial_hm3": first,
            "storage_final_hm3": last,
        },
    )


def read_hydro_power(outcome: StageOutcome) -> ColumnsByName:
    """Return power, energy, spillage cost and water value of hydro plants."""
    plan, columns = outcome.lp.plan, outcome.lp.columns
    power = sum_into(pair_generation(outcome), plan.pair_hydro, plan.num_hydros)
    return _in_every_block(
        outcome,
        {
            "generation_mw": power,
            "generation_mwh": power * plan.hours,
            "spillage_cost": outcome.values(columns.spilled) * (plan.data.hydro.spillage_cost[:, None] * plan.hours),
            # The dual is the cost of one more hm3 on the right-hand side of the balance; water is worth what it saves.
            "water_value_per_hm3": 0.0 - outcome.duals(outcome.lp.water.balance),
        },
    )


def _in_every_block(outcome: StageOutcome, columns: ColumnsByName) -> ColumnsByName:
    """Return S x N x K: values of the whole stage are repeated in every block."""
    shape = (outcome.scenarios, outcome.lp.plan.num_hydros, outcome.lp.plan.num_blocks)
    return {name: np.broadcast_to(values, shape) for name, values in columns.items()}


def pair_generation(outcome: StageOutcome) -> Floats:
    """Return the power of each pair of plant and bus: S x F x K, MW."""
    plan, columns = outcome.lp.plan, outcome.lp.columns
    by_rate = outcome.values(columns.turbined) * plan.pair_productivity[:, None]
    return by_rate + outcome.values(columns.generation)


def read_hydro_slacks(outcome: StageOutcome) -> ColumnsByName:
    """Return violations of limits of hydro plants."""
    plan, columns = outcome.lp.plan, outcome.lp.columns
    owner, n = plan.pair_hydro, plan.num_hydros
    turbined = outcome.values(columns.turbined_below)
    generation = outcome.values(columns.generation_below)
    return _in_every_block(
        outcome,
        {
            "turbined_slack_m3s": turbined + sum_into(outcome.values(columns.group_turbined_below), owner, n),
            "outflow_slack_below_m3s": outcome.values(columns.outflow_below),
            "outflow_slack_above_m3s": outcome.values(columns.outflow_above),
            "generation_slack_mw": generation + sum_into(outcome.values(columns.group_generation_below), owner, n),
            "storage_violation_below_hm3": outcome.by_block(columns.storage_below),
            "filling_target_violation_hm3": outcome.by_block(columns.filling_below),
            "evaporation_violation_pos_m3s": outcome.by_block(columns.evaporation_more),
            "evaporation_violation_neg_m3s": outcome.by_block(columns.evaporation_less),
            "inflow_nonnegativity_slack_m3s": outcome.by_block(columns.inflow_slack),
            "water_withdrawal_violation_pos_m3s": outcome.by_block(columns.withdrawal_more),
            "water_withdrawal_violation_neg_m3s": outcome.by_block(columns.withdrawal_less),
        },
    )


def read_hydro_bus_generation(outcome: StageOutcome) -> ColumnsByName:
    """Return flow and power of the machines that feed one bus."""
    power = pair_generation(outcome)
    return {
        "turbined_m3s": outcome.values(outcome.lp.columns.turbined),
        "generation_mw": power,
        "generation_mwh": power * outcome.lp.plan.hours,
    }


# Tables of water in transit: arrivals by stage, and the last releases, which a following study starts from.

TRANSIT = ResultTable("in_transit", ("hydro_id", "lag"), ("in_transit_volume_hm3", "delayed_arrival_hm3"))
SEED = ResultTable("transit_seed", ("hydro_id", "start_date", "end_date"), ("value_m3s",))


def transit_rows(lp: StageLp, hydro_ids: Ints) -> StageRows:
    """Return a row for each plant that receives delayed water and each stage in which it may arrive."""
    slots = _slots(lp)
    return StageRows(
        TRANSIT,
        {
            "block_id": np.full(len(slots), ABSENT_ID, np.int32),
            "hydro_id": hydro_ids[[slot.entity for slot in slots]],
            "lag": np.array([slot.distance for slot in slots], np.int32),
        },
    )


def read_transit(outcome: StageOutcome) -> ColumnsByName:
    """Return hm3 in transit when the stage ends, and arrivals during the stage in the row of the nearest volume."""
    lp, index = outcome.lp, outcome.lp.plan.state_index
    columns = dict(zip(lp.plan.layout.decided_of(IN_TRANSIT), lp.columns.in_transit.tolist(), strict=True))
    volume, arrived = np.zeros((2, outcome.scenarios, len(_slots(lp))))
    for position, slot in enumerate(_slots(lp)):
        farther = index.component_of(StateSlot(IN_TRANSIT, slot.entity, slot.distance + 1))
        if slot in columns:
            volume[:, position] = outcome.decisions[:, columns[slot]]
        elif farther >= 0:
            volume[:, position] = outcome.state[:, farther]
        if slot.distance == 1:
            arrived[:, position] = outcome.state[:, index.component_of(slot)]
    return {"in_transit_volume_hm3": volume, "delayed_arrival_hm3": arrived}


def seed_rows(lp: StageLp, hydro_ids: Ints) -> StageRows:
    """Return a row for each plant some of whose release in this stage arrives after the study."""
    stage, hydros = lp.plan.data.stage, lp.plan.data.transit.hydro[lp.plan.data.transit.arrives_after_study]
    days = [int(day.strftime("%Y%m%d")) for day in (stage.start_date, stage.end_date)]
    start, end = (np.full(len(hydros), day, np.int32) for day in days)
    block = np.full(len(hydros), ABSENT_ID, np.int32)
    return StageRows(SEED, {"block_id": block, "hydro_id": hydro_ids[hydros], "start_date": start, "end_date": end})


def read_seed(outcome: StageOutcome) -> ColumnsByName:
    """Return the mean release of the stage, m3/s, which a following study starts from."""
    plan, columns = outcome.lp.plan, outcome.lp.columns
    released = outcome.values(columns.spilled)
    released = released + sum_into(outcome.values(columns.turbined), plan.pair_hydro, plan.num_hydros)
    mean = running_sum(released * (plan.hours / plan.total_hours))
    return {"value_m3s": mean[:, plan.data.transit.hydro[plan.data.transit.arrives_after_study]]}


def _slots(lp: StageLp) -> list[StateSlot]:
    """Return water in transit, ordered by the plant where it arrives and then by distance."""
    slots = [slot for slot in (*lp.plan.layout.decided, *lp.plan.layout.passed) if slot.kind == IN_TRANSIT]
    return sorted(slots, key=lambda slot: (slot.entity, slot.distance))

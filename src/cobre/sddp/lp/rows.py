"""Rows of water, power, commitments and water in transit in the LP of a stage."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from cobre.core.arrays import HM3_PER_M3S_HOUR, Flags, Floats, Indices, distinct_values, sum_in_order
from cobre.core.stage_data import COMMITMENT, IN_TRANSIT, StateSlot
from cobre.records import dataclass
from cobre.sddp.lp.columns import Columns
from cobre.sddp.lp.lp_builder import ABSENT, LpBuilder
from cobre.sddp.lp.plan import StagePlan

# Rows of water in transit between plants: arrivals within the stage, and volumes carried to later stages.


def add_transit_rows(lp: LpBuilder, plan: StagePlan, columns: Columns, balance: Indices) -> None:
    """Add arrivals to the balances of receiving plants, and a row for each volume in transit when it ends."""
    numbers, slots = plan.data.transit, plan.layout.decided_of(IN_TRANSIT)
    rows = lp.add_rows("in_transit", numbers.is_carried.shape, 0.0, 0.0, numbers.is_carried)
    lp.add_entries(rows, columns.in_transit, 1.0)
    lp.add_input_terms(rows, plan.state_index.previous_inputs(slots), 1.0)
    for arc, (hydro, target) in enumerate(zip(numbers.hydro.tolist(), numbers.target.tolist(), strict=True)):
        for flow in (columns.turbined[plan.pair_hydro == hydro], columns.spilled[[hydro]]):
            _released(lp, plan, _balances_by_period(plan, balance, target), flow, numbers.arrival_share[arc])
            _released(lp, plan, rows, flow, numbers.carried_share[arc])
    for target in distinct_values(numbers.target).tolist():
        first = plan.state_index.input_of(StateSlot(IN_TRANSIT, target, 1))
        lp.add_input_terms(_balances_by_period(plan, balance, target), first, numbers.carried_arrival[target])


def _balances_by_period(plan: StagePlan, balance: Indices, target: int) -> Indices:
    """Return balance rows of the reservoir that receives what arrives at a plant: its own, or the next downstream."""
    receiver = int(plan.receiver[target])
    return balance[receiver] if receiver >= 0 else np.full(balance.shape[1], ABSENT)


def _released(lp: LpBuilder, plan: StagePlan, rows: Indices, flow: Indices, shares: Floats) -> None:
    """Add releases to rows. flow: columns x blocks. shares: periods x rows, of what is released in a period."""
    volume = HM3_PER_M3S_HOUR * plan.hours[:, None] * plan.by_block(shares)
    lp.add_entries(rows[None, None, :], flow[:, :, None], -volume[None, :, :])


# Water: every reservoir's balance, evaporation, limits of outflow, the filling of dead volumes.


@dataclass(frozen=True, slots=True)
class WaterRows:
    """Rows whose duals are results: the water balances, for water values, N x balances."""

    balance: Indices


def add_water_rows(lp: LpBuilder, plan: StagePlan, columns: Columns) -> WaterRows:
    """Add all rows of the water balance and of flow limits."""
    balance = _balances(lp, plan, columns)
    _flows(lp, plan, columns, balance)
    add_transit_rows(lp, plan, columns, balance)
    _stage_flows(lp, plan, columns, balance)
    _evaporation(lp, plan, columns)
    _outflow_limits(lp, plan, columns)
    _soft_volumes(lp, plan, columns)
    return WaterRows(balance)


def volumes(plan: StagePlan) -> Floats:
    """Return hm3 for one m3/s, by balance: of every block, or of the whole stage when blocks are parallel."""
    hm3_per_m3s = HM3_PER_M3S_HOUR * plan.hours
    return hm3_per_m3s if plan.is_chronological else np.array([sum_in_order(hm3_per_m3s.tolist())])


def _balances(lp: LpBuilder, plan: StagePlan, columns: Columns) -> Indices:
    """Add water balance rows: final minus initial volume, with withdrawals on the right-hand side.

    A plant without a reservoir keeps its volume. A withdrawal there is taken from the next reservoir downstream.
    """
    n, points = plan.num_hydros, plan.storage_points
    withdrawn = np.zeros(n)
    np.add.at(withdrawn, plan.receiver[plan.receiver >= 0], plan.data.hydro.water_withdrawal_m3s[plan.receiver >= 0])
    right = -withdrawn[:, None] * volumes(plan)
    rows = lp.add_rows("water_balance", (n, points), right, right)
    lp.add_entries(rows, columns.storage, 1.0)
    lp.add_entries(rows[:, 1:], columns.storage[:, :-1], -1.0)
    lp.add_input_terms(rows[:, 0], np.arange(n), 1.0)
    return rows


def _balances_by_block(balance: Indices, hydro: Indices, plan: StagePlan) -> Indices:
    """Return balance rows by block of some plants; ABSENT for plant -1."""
    rows = np.where((hydro >= 0)[:, None], balance[np.maximum(hydro, 0)], ABSENT)
    return rows if plan.is_chronological else np.repeat(rows, plan.num_blocks, axis=1)


def _flows(lp: LpBuilder, plan: StagePlan, columns: Columns, balance: Indices) -> None:
    """Add turbined, spilled, diverted and pumped flows to the balances, block by block."""
    hm3_per_m3s = HM3_PER_M3S_HOUR * plan.hours
    topology = plan.topology
    all_hydros = np.arange(plan.num_hydros)
    downstream = plan.receiver_of(np.where(plan.has_travel_time, -1, topology.downstream))
    diversion = plan.receiver_of(topology.diversion_target)
    owner = plan.pair_hydro
    for flow, source, target in (
        (columns.turbined, owner, downstream[owner]),
        (columns.spilled, all_hydros, downstream),
        (columns.diverted, all_hydros, diversion),
    ):
        lp.add_entries(_balances_by_block(balance, source, plan), flow, hm3_per_m3s)
        lp.add_entries(_balances_by_block(balance, target, plan), flow, -hm3_per_m3s)
    lp.add_entries(_balances_by_block(balance, topology.pumping_source, plan), columns.pumped, hm3_per_m3s)
    lp.add_entries(_balances_by_block(balance, topology.pumping_destination, plan), columns.pumped, -hm3_per_m3s)


def _stage_flows(lp: LpBuilder, plan: StagePlan, columns: Columns, balance: Indices) -> None:
    """Add natural inflow, evaporation and slacks, which do not differ by block when blocks are parallel."""
    hm3_per_m3s = volumes(plan)
    receiver = plan.receiver
    rows = np.where((receiver >= 0)[:, None], balance[np.maximum(receiver, 0)], ABSENT)
    lp.add_entries(rows, columns.inflow_slack[:, None], -hm3_per_m3s)
    for column, sign in (
        (columns.evaporated, 1.0),
        (columns.withdrawal_less[:, None], -1.0),
        (columns.withdrawal_more[:, None], 1.0),
    ):
        lp.add_entries(balance, column, sign * hm3_per_m3s)
    lp.add_input_terms(rows, plan.inflow_inputs[:, None], hm3_per_m3s)


def _evaporation(lp: LpBuilder, plan: StagePlan, columns: Columns) -> None:
    """Add evaporation, linear in the mean of first and last volume: of the stage, or of the block."""
    hydro = plan.data.hydro
    half = hydro.evaporation_kv[:, None] / 2.0
    constant = hydro.evaporation_k0[:, None]
    shape = (plan.num_hydros, plan.storage_points)
    rows = lp.add_rows("evaporation", shape, constant, constant, columns.evaporated != ABSENT)
    lp.add_entries(rows, columns.evaporated, 1.0)
    lp.add_entries(rows, columns.storage, -half)
    lp.add_entries(rows[:, 1:], columns.storage[:, :-1], -half)
    lp.add_entries(rows, columns.evaporation_less, 1.0)
    lp.add_entries(rows, columns.evaporation_more, -1.0)
    lp.add_input_terms(rows[:, 0], np.arange(plan.num_hydros), half[:, 0])


def _outflow_limits(lp: LpBuilder, plan: StagePlan, columns: Columns) -> None:
    """Add minimum and maximum outflow (turbined and spilled; diverted water does not count)."""
    hydro = plan.data.hydro
    shape = (plan.num_hydros, plan.num_blocks)
    above_minimum = lp.add_rows("min_outflow", shape, hydro.min_outflow_m3s, np.inf, columns.outflow_below != ABSENT)
    below_maximum = lp.add_rows("max_outflow", shape, -np.inf, hydro.max_outflow_m3s, columns.outflow_above != ABSENT)
    for rows in (above_minimum, below_maximum):
        lp.add_entries(rows[plan.pair_hydro], columns.turbined, 1.0)
        lp.add_entries(rows, columns.spilled, 1.0)
    lp.add_entries(above_minimum, columns.outflow_below, 1.0)
    lp.add_entries(below_maximum, columns.outflow_above, -1.0)


def _soft_volumes(lp: LpBuilder, plan: StagePlan, columns: Columns) -> None:
    """Add soft minimums of storages, and the targets of plants that are being filled.

    A minimum that a dry period makes impossible holds after every chronological block, as a hard one does: the price
    is that of the largest shortfall.
    """
    hydro = plan.data.hydro
    shape = (plan.num_hydros,)
    soft = lp.add_rows("soft_min_storage", shape, hydro.min_storage_hm3, np.inf, columns.storage_below != ABSENT)
    target = lp.add_rows(
        "filling_target", shape, np.nan_to_num(hydro.filling_target_hm3), np.inf, columns.filling_below != ABSENT
    )
    for rows, slack in ((soft, columns.storage_below), (target, columns.filling_below)):
        lp.add_entries(rows, columns.storage[:, -1], 1.0)
        lp.add_entries(rows, slack, 1.0)
    if plan.is_chronological and plan.is_out_of_reach.any():
        within = (plan.in_service & plan.is_out_of_reach)[:, None] & np.ones(plan.storage_points - 1, bool)
        earlier = lp.add_rows("soft_min_storage_within", within.shape, hydro.min_storage_hm3[:, None], np.inf, within)
        lp.add_entries(earlier, columns.storage[:, :-1], 1.0)
        lp.add_entries(earlier, columns.storage_below[:, None], 1.0)


# Power: the balance of every bus and block, limits of hydro plants, planes of the production function.


@dataclass(frozen=True, slots=True)
class PowerRows:
    """Rows whose duals are results: the bus balances, for energy prices, B x K."""

    balance: Indices


def add_power_rows(lp: LpBuilder, plan: StagePlan, columns: Columns) -> PowerRows:
    """Add all rows of the bus balances and of power limits; loads enter the right-hand sides of the balances."""
    balance = lp.add_rows("power_balance", (plan.num_buses, plan.num_blocks), 0.0, 0.0)
    _supply(lp, plan, columns, balance)
    _network(lp, plan, columns, balance)
    _plant_limits(lp, plan, columns)
    _planes(lp, plan, columns)
    return PowerRows(balance)


def _supply(lp: LpBuilder, plan: StagePlan, columns: Columns, balance: Indices) -> None:
    topology = plan.topology
    consumption = plan.pumping_consumption[:, None]
    lp.add_entries(balance[plan.pair_bus], columns.turbined, plan.pair_productivity[:, None])
    lp.add_entries(balance[plan.pair_bus], columns.generation, 1.0)
    lp.add_entries(balance[topology.thermal_bus], columns.thermal, 1.0)
    lp.add_entries(balance[topology.source_bus], columns.source, 1.0)
    lp.add_entries(balance[topology.contract_bus], columns.contract, topology.contract_sign[:, None])
    lp.add_entries(balance[topology.pumping_bus], columns.pumped, -consumption)
    lp.add_entries(balance[:, None, :], columns.deficit, 1.0)
    lp.add_entries(balance, columns.excess, -1.0)


def _network(lp: LpBuilder, plan: StagePlan, columns: Columns, balance: Indices) -> None:
    """Add line flows to the balances: what leaves one bus arrives at the other less the losses."""
    topology = plan.topology
    delivered = 1.0 - plan.data.line.loss_fraction[:, None]
    lp.add_entries(balance[topology.line_source], columns.direct, -1.0)
    lp.add_entries(balance[topology.line_target], columns.direct, delivered)
    lp.add_entries(balance[topology.line_target], columns.reverse, -1.0)
    lp.add_entries(balance[topology.line_source], columns.reverse, delivered)


def _plant_limits(lp: LpBuilder, plan: StagePlan, columns: Columns) -> None:
    """Add minimums of groups with their slacks, and what a plant's own limits demand beyond them.

    A slack of a group counts for its plant too, so that a shortfall is paid for once.
    """
    hydro, pair_shape = plan.data.hydro, (plan.num_pairs, plan.num_blocks)
    several = (plan.feeds_several_buses & plan.in_service)[:, None]
    short_flow, short_power = columns.group_turbined_below, columns.group_generation_below
    flow = lp.add_rows("min_group_turbined", pair_shape, plan.min_pair_turbined, np.inf, short_flow != ABSENT)
    power = lp.add_rows("min_group_generation", pair_shape, plan.min_pair_generation, np.inf, short_power != ABSENT)
    _add_flow(lp, columns, flow, short_flow)
    _add_power(lp, plan, columns, power, short_power)

    flow = _plant_rows(lp, plan, "min_turbined", hydro.min_turbined_m3s, np.inf, columns.turbined_below != ABSENT)
    power = _plant_rows(lp, plan, "min_generation", hydro.min_generation_mw, np.inf, columns.generation_below != ABSENT)
    lp.add_entries(flow, columns.turbined_below, 1.0)
    lp.add_entries(power, columns.generation_below, 1.0)
    _add_flow(lp, columns, flow[plan.pair_hydro], short_flow)
    _add_power(lp, plan, columns, power[plan.pair_hydro], short_power)

    flow = _plant_rows(lp, plan, "max_turbined", -np.inf, hydro.max_turbined_m3s, several)
    power = _plant_rows(lp, plan, "max_generation", -np.inf, hydro.max_generation_mw, several)
    _add_flow(lp, columns, flow[plan.pair_hydro])
    _add_power(lp, plan, columns, power[plan.pair_hydro])


def _plant_rows(lp: LpBuilder, plan: StagePlan, name: str, least: ArrayLike, most: ArrayLike, exists: Flags) -> Indices:
    return lp.add_rows(name, (plan.num_hydros, plan.num_blocks), least, most, exists)


def _add_flow(lp: LpBuilder, columns: Columns, rows: Indices, slack: Indices | None = None) -> None:
    """Add what the pairs turbine, with their slack."""
    lp.add_entries(rows, columns.turbined, 1.0)
    if slack is not None:
        lp.add_entries(rows, slack, 1.0)


def _add_power(lp: LpBuilder, plan: StagePlan, columns: Columns, rows: Indices, slack: Indices | None = None) -> None:
    """Add what the pairs generate, with their slack."""
    lp.add_entries(rows, columns.turbined, plan.pair_productivity[:, None])
    lp.add_entries(rows, columns.generation, 1.0)
    if slack is not None:
        lp.add_entries(rows, slack, 1.0)


def _planes(lp: LpBuilder, plan: StagePlan, columns: Columns) -> None:
    """Limit power by every plane over mean volume, turbined flow and spillage.

    Machines at several buses share what volume and spillage contribute as they share the plant's turbines.
    """
    planes_by_pair = [(pair, plan.data.hydro.planes[hydro]) for pair, hydro in enumerate(plan.pair_hydro.tolist())]
    planes = {pair: of_plant for pair, of_plant in planes_by_pair if of_plant is not None}
    if not planes:
        return
    # Planes of all pairs, one below the other: at 150 plants, a twentieth of the time that rows plant by plant take.
    pair = np.repeat(np.array([*planes]), [len(of_plant) for of_plant in planes.values()])
    hydro, share = plan.pair_hydro[pair], plan.pair_share[pair][:, None]
    constant, by_volume, by_flow, by_spill = (part[:, None] for part in np.concatenate([*planes.values()]).T)
    exists = columns.generation[pair] != ABSENT
    rows = lp.add_labelled_rows(_plane_labels(pair.tobytes(), exists.tobytes()), exists, -np.inf, share * constant)
    lp.add_entries(rows, columns.generation[pair], 1.0)
    lp.add_entries(rows, columns.turbined[pair], -by_flow)
    lp.add_entries(rows, columns.spilled[hydro], -share * by_spill)
    _mean_volume(lp, plan, columns, rows, hydro, share * by_volume / 2.0)


@lru_cache(maxsize=32)
def _plane_labels(pairs: bytes, flags: bytes) -> tuple[str, ...]:
    """Return names such as `plane_3[12,0]`: pair, plane of the pair, block. Stages with the same planes share them."""
    pair = np.frombuffer(pairs, np.int64)
    exists = np.frombuffer(flags, bool).reshape(len(pair), -1)
    number = np.arange(len(pair)) - np.searchsorted(pair, pair)
    plane, block = np.nonzero(exists)
    indices = zip(pair[plane].tolist(), number[plane].tolist(), block.tolist(), strict=True)
    return tuple(f"plane_{of}[{at},{k}]" for of, at, k in indices)


def _mean_volume(
    lp: LpBuilder, plan: StagePlan, columns: Columns, rows: Indices, hydro: Indices, half: np.ndarray
) -> None:
    """Add half of the first and half of the last volume: of the stage, or of the block."""
    last = columns.storage[hydro]
    lp.add_entries(rows, last, -half)
    if plan.is_chronological:
        lp.add_entries(rows[:, 1:], last[:, :-1], -half)
        lp.add_input_terms(rows[:, 0], hydro, half[:, 0])
    else:
        lp.add_input_terms(rows, hydro[:, None], half)


# Thermal power that was decided ahead: delivered now, or carried to later stages.


def add_commitment_rows(lp: LpBuilder, plan: StagePlan, columns: Columns) -> Indices:
    """Keep deliveries on the mean of the stage's hours; blocks share them within the limits of the plant.

    Gives their rows, by thermal plant: their duals say what one more MW would cost.
    """
    _carried(lp, plan, columns)
    return _deliveries(lp, plan, columns)


def _deliveries(lp: LpBuilder, plan: StagePlan, columns: Columns) -> Indices:
    is_committed = plan.data.commitment.is_committed & (columns.thermal != ABSENT).any(axis=1)
    rows = lp.add_rows("delivery", is_committed.shape, 0.0, 0.0, is_committed)
    lp.add_entries(rows[:, None], columns.thermal, plan.hours / plan.total_hours)
    for plant in np.flatnonzero(is_committed).tolist():
        lp.add_input_terms(rows[plant], plan.state_index.input_of(StateSlot(COMMITMENT, plant, 1)), 1.0)
    return rows


def _carried(lp: LpBuilder, plan: StagePlan, columns: Columns) -> None:
    is_carried = plan.data.commitment.is_carried
    rows = lp.add_rows("carried_commitment", is_carried.shape, 0.0, 0.0, is_carried)
    lp.add_entries(rows, columns.commitment, 1.0)
    lp.add_input_terms(rows, plan.state_index.previous_inputs(plan.layout.decided_of(COMMITMENT)), 1.0)

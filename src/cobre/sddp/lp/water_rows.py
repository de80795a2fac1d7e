"""Water: every reservoir's balance, evaporation, limits of outflow, the filling of dead volumes."""

import numpy as np

from cobre.core.arrays import Floats, Indices, sum_in_order
from cobre.core.units import HM3_PER_M3S_HOUR
from cobre.records import dataclass
from cobre.sddp.lp.columns import Columns
from cobre.sddp.lp.lp_builder import ABSENT, LpBuilder
from cobre.sddp.lp.plan import StagePlan
from cobre.sddp.lp.transit_rows import add_transit_rows


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
    """hm3 for one m3/s, by balance: of every block, or of the whole stage when blocks are parallel."""
    tau = HM3_PER_M3S_HOUR * plan.hours
    return tau if plan.is_chronological else np.array([sum_in_order(tau.tolist())])


def _balances(lp: LpBuilder, plan: StagePlan, columns: Columns) -> Indices:
    """Water balance rows: final minus initial volume, with withdrawals on the right-hand side.

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
    """Balance rows by block of some plants; ABSENT for plant -1."""
    rows = np.where((hydro >= 0)[:, None], balance[np.maximum(hydro, 0)], ABSENT)
    return rows if plan.is_chronological else np.repeat(rows, plan.num_blocks, axis=1)


def _flows(lp: LpBuilder, plan: StagePlan, columns: Columns, balance: Indices) -> None:
    """Turbined, spilled, diverted and pumped flows in the balances, block by block."""
    tau = HM3_PER_M3S_HOUR * plan.hours
    topology = plan.topology
    everyone = np.arange(plan.num_hydros)
    below = plan.receiver_of(np.where(plan.has_travel_time, -1, topology.downstream))
    aside = plan.receiver_of(topology.diversion_target)
    owner = plan.pair_hydro
    for flow, source, target in (
        (columns.turbined, owner, below[owner]),
        (columns.spilled, everyone, below),
        (columns.diverted, everyone, aside),
    ):
        lp.add_entries(_balances_by_block(balance, source, plan), flow, tau)
        lp.add_entries(_balances_by_block(balance, target, plan), flow, -tau)
    lp.add_entries(_balances_by_block(balance, topology.pumping_source, plan), columns.pumped, tau)
    lp.add_entries(_balances_by_block(balance, topology.pumping_destination, plan), columns.pumped, -tau)


def _stage_flows(lp: LpBuilder, plan: StagePlan, columns: Columns, balance: Indices) -> None:
    """Natural inflow, evaporation and slacks, which do not differ by block when blocks are parallel."""
    zeta = volumes(plan)
    receiver = plan.receiver
    rows = np.where((receiver >= 0)[:, None], balance[np.maximum(receiver, 0)], ABSENT)
    lp.add_entries(rows, columns.inflow_slack[:, None], -zeta)
    for column, sign in (
        (columns.evaporated, 1.0),
        (columns.withdrawal_less[:, None], -1.0),
        (columns.withdrawal_more[:, None], 1.0),
    ):
        lp.add_entries(balance, column, sign * zeta)
    lp.add_input_terms(rows, plan.inflow_inputs[:, None], zeta)


def _evaporation(lp: LpBuilder, plan: StagePlan, columns: Columns) -> None:
    """Linear in the mean of first and last volume: of the stage, or of the block."""
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
    """Minimum and maximum outflow (turbined and spilled; diverted water does not count)."""
    hydro = plan.data.hydro
    shape = (plan.num_hydros, plan.num_blocks)
    least = lp.add_rows("min_outflow", shape, hydro.min_outflow_m3s, np.inf, columns.outflow_below != ABSENT)
    most = lp.add_rows("max_outflow", shape, -np.inf, hydro.max_outflow_m3s, columns.outflow_above != ABSENT)
    for rows in (least, most):
        lp.add_entries(rows[plan.pair_hydro], columns.turbined, 1.0)
        lp.add_entries(rows, columns.spilled, 1.0)
    lp.add_entries(least, columns.outflow_below, 1.0)
    lp.add_entries(most, columns.outflow_above, -1.0)


def _soft_volumes(lp: LpBuilder, plan: StagePlan, columns: Columns) -> None:
    """Soft minimums of storages, and the targets of plants that are being filled.

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

"""Rows of water in transit between plants: arrivals within the stage, and volumes carried to later stages."""

import numpy as np

from cobre.core.arrays import Floats, Indices
from cobre.core.stage_data import IN_TRANSIT, StateSlot
from cobre.core.units import HM3_PER_M3S_HOUR
from cobre.sddp.lp.columns import Columns
from cobre.sddp.lp.lp_builder import ABSENT, LpBuilder
from cobre.sddp.lp.plan import StagePlan


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
    for target in np.unique(numbers.target).tolist():
        first = plan.state_index.input_of(StateSlot(IN_TRANSIT, target, 1))
        lp.add_input_terms(_balances_by_period(plan, balance, target), first, numbers.carried_arrival[target])


def _balances_by_period(plan: StagePlan, balance: Indices, target: int) -> Indices:
    """Balance rows of the reservoir that receives what arrives at a plant: its own, or the next one downstream."""
    receiver = int(plan.receiver[target])
    return balance[receiver] if receiver >= 0 else np.full(balance.shape[1], ABSENT)


def _released(lp: LpBuilder, plan: StagePlan, rows: Indices, flow: Indices, shares: Floats) -> None:
    """flow: columns x blocks. shares: periods x rows, of what is released in a period."""
    volume = HM3_PER_M3S_HOUR * plan.hours[:, None] * plan.by_block(shares)
    lp.add_entries(rows[None, None, :], flow[:, :, None], -volume[None, :, :])

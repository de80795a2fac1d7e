"""Thermal power that was decided ahead: delivered now, or carried to later stages."""

import numpy as np

from cobre.core.arrays import Indices
from cobre.core.stage_data import COMMITMENT, StateSlot
from cobre.sddp.lp.columns import Columns
from cobre.sddp.lp.lp_builder import ABSENT, LpBuilder
from cobre.sddp.lp.plan import StagePlan


def add_commitment_rows(lp: LpBuilder, plan: StagePlan, columns: Columns) -> Indices:
    """Deliveries are kept on the mean of the stage's hours; blocks share them within the limits of the plant.

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

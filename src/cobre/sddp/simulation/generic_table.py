"""Constraints that users wrote: by how much they are violated, and what that costs."""

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import ABSENT_ID
from cobre.sddp.lp.build import StageLp
from cobre.sddp.simulation.outcome import StageOutcome
from cobre.sddp.simulation.tables import ResultTable, StageRows

VIOLATIONS = ResultTable("violations/generic", ("constraint_id",), ("slack_value", "slack_cost"))


def violation_rows(lp: StageLp) -> StageRows:
    """One for each row of a constraint; without a block where it is about the whole stage."""
    rows = lp.plan.data.generic_rows
    ids = {
        "block_id": np.array([ABSENT_ID if row.block is None else row.block for row in rows], np.int32),
        "constraint_id": np.array([row.constraint_id for row in rows], np.int32),
    }
    return StageRows(VIOLATIONS, ids)


def read_violations(outcome: StageOutcome) -> tuple[Floats, ...]:
    """How far a constraint is from its one bound; with two, negative where it exceeds the upper one."""
    slacks = outcome.lp.generic_slacks
    both = outcome.values(slacks)
    rows = outcome.lp.plan.data.generic_rows
    sign = np.array([-1.0 if np.isfinite(row.lower) else 1.0 for row in rows])
    price = np.append(outcome.lp.cost, 0.0)[slacks]
    cost = both * price
    return both[:, :, 0] + sign * both[:, :, 1], cost[:, :, 0] + cost[:, :, 1]

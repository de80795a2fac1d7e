"""Tables of costs: a stage's costs by component, and violations of constraints that users wrote."""

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from cobre.core.arrays import Floats, Indices
from cobre.core.case import ABSENT_ID
from cobre.sddp.lp.build import StageLp
from cobre.sddp.lp.lp_builder import ABSENT
from cobre.sddp.simulation.network_tables import available_mw
from cobre.sddp.simulation.tables import ColumnsByName, ResultTable, StageOutcome, StageRows, running_sum

# Costs of a stage by component; the components add up to the immediate cost.

# The decisions behind every component, by their names among the LP's columns.
DECISIONS: Mapping[str, tuple[str, ...]] = {
    "thermal_cost": ("thermal",),
    "contract_cost": ("contract",),
    "deficit_cost": ("deficit",),
    "excess_cost": ("excess",),
    "storage_violation_cost": ("storage_below",),
    "filling_target_cost": ("filling_below",),
    "outflow_violation_below_cost": ("outflow_below",),
    "outflow_violation_above_cost": ("outflow_above",),
    "turbined_violation_cost": ("turbined_below", "group_turbined_below"),
    "generation_violation_cost": ("generation_below", "group_generation_below"),
    "evaporation_violation_cost": ("evaporation_less", "evaporation_more"),
    "withdrawal_violation_cost": ("withdrawal_less", "withdrawal_more"),
    "inflow_penalty_cost": ("inflow_slack",),
    "spillage_cost": ("spilled",),
    "diversion_cost": ("diverted",),
    "turbined_cost": ("turbined",),
    "exchange_cost": ("direct", "reverse"),
}

# A source is paid for what it generates: for all that is available, less what is curtailed.
SOURCE_COMPONENTS = ("non_controllable_reward", "curtailment_cost")
COMPONENTS = (*DECISIONS, "generic_violation_cost", *SOURCE_COMPONENTS)

HYDRO_VIOLATIONS = (
    "outflow_violation_below_cost",
    "outflow_violation_above_cost",
    "turbined_violation_cost",
    "generation_violation_cost",
    "evaporation_violation_cost",
    "withdrawal_violation_cost",
)

COSTS = ResultTable(
    "costs",
    (),
    ("total_cost", "immediate_cost", "future_cost", "discount_factor", *COMPONENTS, "hydro_violation_cost"),
)

# Only if a study has thermal plants that decide ahead.
ANTICIPATED_COST = "anticipated_thermal_cost"
COSTS_AHEAD = ResultTable(COSTS.name, COSTS.ids, (*COSTS.numbers, ANTICIPATED_COST))


class CostReader:
    """Knows which column of a stage's LP belongs to which component."""

    def __init__(self, lp: StageLp, discount_factor: float) -> None:
        self._discount_factor = discount_factor
        self._cost = lp.cost
        self._columns = {name: _present(lp, kinds) for name, kinds in DECISIONS.items()}
        self._columns["generic_violation_cost"] = _without_name(lp)
        self.table = COSTS
        if lp.plan.has_commitments:
            self.table = COSTS_AHEAD
            self._columns[ANTICIPATED_COST] = _present(lp, ("commitment",))

    def read(self, outcome: StageOutcome) -> ColumnsByName:
        """Return the columns of the cost table, S numbers each."""
        components = {name: self._sum(outcome, columns) for name, columns in self._columns.items()}
        components |= _source_costs(outcome)
        return components | {
            "total_cost": outcome.total_cost,
            "immediate_cost": outcome.total_cost - outcome.future_cost,
            "future_cost": outcome.future_cost,
            "discount_factor": np.full(outcome.scenarios, self._discount_factor),
            "hydro_violation_cost": running_sum(np.stack([components[name] for name in HYDRO_VIOLATIONS], axis=1)),
        }

    def _sum(self, outcome: StageOutcome, columns: Indices) -> Floats:
        return running_sum(outcome.decisions[:, columns] * self._cost[columns])


def _present(lp: StageLp, kinds: tuple[str, ...]) -> Indices:
    parts: list[Indices] = [getattr(lp.columns, kind).reshape(-1) for kind in kinds]
    index: Indices = np.concatenate(parts)
    present: Indices = index[index != ABSENT]
    return present


def _without_name(lp: StageLp) -> Indices:
    """Return the columns that belong to no kind: slacks of users' constraints."""
    is_known = np.zeros(len(lp.cost), bool)
    is_known[_present(lp, tuple(field.name for field in fields(lp.columns)))] = True
    return np.flatnonzero(~is_known)


def _source_costs(outcome: StageOutcome) -> ColumnsByName:
    plan, source = outcome.lp.plan, outcome.lp.plan.data.source
    price = source.curtailment_cost[:, None] * plan.hours
    available = available_mw(outcome)
    curtailed = available - outcome.values(outcome.lp.columns.source)
    flat = (outcome.scenarios, -1)
    return {
        "non_controllable_reward": 0.0 - running_sum((available * price).reshape(flat)),
        "curtailment_cost": running_sum((curtailed * price).reshape(flat)),
    }


# Constraints that users wrote: by how much they are violated, and what that costs.

VIOLATIONS = ResultTable("violations/generic", ("constraint_id",), ("slack_value", "slack_cost"))


def violation_rows(lp: StageLp) -> StageRows:
    """Return a row for each row of a constraint; without a block if it is about the whole stage."""
    rows = lp.plan.data.generic_rows
    ids = {
        "block_id": np.array([ABSENT_ID if row.block is None else row.block for row in rows], np.int32),
        "constraint_id": np.array([row.constraint_id for row in rows], np.int32),
    }
    return StageRows(VIOLATIONS, ids)


def read_violations(outcome: StageOutcome) -> ColumnsByName:
    """Return the distance of a constraint from its bound; with two bounds, negative if it exceeds the upper one."""
    slacks = outcome.lp.generic_slacks
    both = outcome.values(slacks)
    rows = outcome.lp.plan.data.generic_rows
    sign = np.array([-1.0 if np.isfinite(row.lower) else 1.0 for row in rows])
    price = np.append(outcome.lp.cost, 0.0)[slacks]
    cost = both * price
    return {"slack_value": both[:, :, 0] + sign * both[:, :, 1], "slack_cost": cost[:, :, 0] + cost[:, :, 1]}

"""Thermal power that is decided ahead: what was committed, what is decided, what one more MW would be worth."""

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.core.case import ABSENT_ID
from cobre.core.stage_data import COMMITMENT, StateSlot
from cobre.sddp.lp.build import StageLp
from cobre.sddp.simulation.network_tables import THERMALS, read_thermals
from cobre.sddp.simulation.outcome import StageOutcome
from cobre.sddp.simulation.tables import ResultTable, StageRows

# Numbers that only some rows have: NaN elsewhere.
AHEAD = ("anticipated_committed_mw", "anticipated_decision_mw", "commitment_value_per_mw")
ANTICIPATED_THERMALS = ResultTable(THERMALS.name, THERMALS.ids, (*THERMALS.numbers, *AHEAD))
LANES = ResultTable("anticipated_lanes", ("thermal_id", "delivery_date"), ("deposited_decision_mw",))


def read_anticipated_thermals(outcome: StageOutcome) -> tuple[Floats, ...]:
    """As of all thermal plants, with what is delivered of earlier decisions, and what is decided for later stages."""
    plan = outcome.lp.plan
    power, energy, cost = read_thermals(outcome)
    cost = np.where(plan.data.commitment.is_committed[:, None], 0.0, cost)
    ahead = (_committed(outcome), _decided(outcome), _worth(outcome))
    return power, energy, cost, *(np.broadcast_to(part[:, :, None], power.shape) for part in ahead)


def lane_rows(lp: StageLp, thermal_ids: Ints) -> StageRows:
    """One for each decision that the thermals table has no column for: several at once, or for after the study."""
    lanes = _lanes(lp)
    ids = [thermal_ids[lp.plan.layout.decided_of(COMMITMENT)[lane].entity] for lane in lanes]
    days = [int(lp.plan.data.commitment.delivery_date[lane].item().strftime("%Y%m%d")) for lane in lanes]
    block = np.full(len(lanes), ABSENT_ID, np.int32)
    return StageRows(
        LANES, {"block_id": block, "thermal_id": np.array(ids, np.int32), "delivery_date": np.array(days, np.int32)}
    )


def read_lanes(outcome: StageOutcome) -> tuple[Floats, ...]:
    """The power that is committed for later stages, MW, in the order of `lane_rows`."""
    return (outcome.values(outcome.lp.columns.commitment[_lanes(outcome.lp)]),)


def _lanes(lp: StageLp) -> list[int]:
    shown = _shown(lp)
    return [lane for lane in np.flatnonzero(lp.plan.data.commitment.is_decided).tolist() if lane not in shown]


def _shown(lp: StageLp) -> list[int]:
    """Decisions within the study, where a plant has one alone."""
    numbers, slots = lp.plan.data.commitment, lp.plan.layout.decided_of(COMMITMENT)
    inside = [lane for lane in np.flatnonzero(numbers.is_decided).tolist() if not numbers.is_after_study[lane]]
    owners = [slots[lane].entity for lane in inside]
    return [lane for lane, owner in zip(inside, owners, strict=True) if owners.count(owner) == 1]


def _committed(outcome: StageOutcome) -> Floats:
    """S x J: what earlier stages decided of this one; 0 where an anticipated plant is dispatched as others are."""
    plan = outcome.lp.plan
    values = np.full((outcome.scenarios, len(plan.data.commitment.is_committed)), np.nan)
    slots = (*plan.layout.decided, *plan.layout.passed)
    for plant in {slot.entity for slot in slots if slot.kind == COMMITMENT}:
        component = plan.state_index.component_of(StateSlot(COMMITMENT, plant, 1))
        values[:, plant] = outcome.state[:, component] if plan.data.commitment.is_committed[plant] else 0.0
    return values


def _decided(outcome: StageOutcome) -> Floats:
    plan = outcome.lp.plan
    values = np.full((outcome.scenarios, len(plan.data.commitment.is_committed)), np.nan)
    for lane in _shown(outcome.lp):
        values[:, plan.layout.decided_of(COMMITMENT)[lane].entity] = outcome.values(outcome.lp.columns.commitment[lane])
    return values


def _worth(outcome: StageOutcome) -> Floats:
    """S x J: $ that one more MW of what was committed would have saved."""
    rows, is_committed = outcome.lp.deliveries, outcome.lp.plan.data.commitment.is_committed
    return np.where(is_committed, 0.0 - outcome.duals(rows), np.nan)

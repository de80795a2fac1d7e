"""Tables of water in transit: arrivals by stage, and the last releases, which a following study starts from."""

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.core.case import ABSENT_ID
from cobre.core.stage_data import IN_TRANSIT, StateSlot
from cobre.sddp.lp.build import StageLp
from cobre.sddp.simulation.outcome import StageOutcome, running_sum, sum_into
from cobre.sddp.simulation.tables import ResultTable, StageRows

TRANSIT = ResultTable("in_transit", ("hydro_id", "lag"), ("in_transit_volume_hm3", "delayed_arrival_hm3"))
SEED = ResultTable("transit_seed", ("hydro_id", "start_date", "end_date"), ("value_m3s",))


def transit_rows(lp: StageLp, hydro_ids: Ints) -> StageRows:
    """One for each plant that gets water from afar and each stage in which it may arrive."""
    slots = _slots(lp)
    return StageRows(
        TRANSIT,
        {
            "block_id": np.full(len(slots), ABSENT_ID, np.int32),
            "hydro_id": hydro_ids[[slot.entity for slot in slots]],
            "lag": np.array([slot.distance for slot in slots], np.int32),
        },
    )


def read_transit(outcome: StageOutcome) -> tuple[Floats, ...]:
    """hm3 in transit when the stage ends, and arrivals during the stage, in the row of the nearest volume."""
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
    return volume, arrived


def seed_rows(lp: StageLp, hydro_ids: Ints) -> StageRows:
    """A row for each plant some of whose release in this stage arrives after the study."""
    stage, hydros = lp.plan.data.stage, lp.plan.data.transit.hydro[lp.plan.data.transit.arrives_after_study]
    days = [int(day.strftime("%Y%m%d")) for day in (stage.start_date, stage.end_date)]
    start, end = (np.full(len(hydros), day, np.int32) for day in days)
    block = np.full(len(hydros), ABSENT_ID, np.int32)
    return StageRows(SEED, {"block_id": block, "hydro_id": hydro_ids[hydros], "start_date": start, "end_date": end})


def read_seed(outcome: StageOutcome) -> tuple[Floats, ...]:
    """The mean release of the stage, m3/s, which a following study starts from."""
    plan, columns = outcome.lp.plan, outcome.lp.columns
    released = outcome.values(columns.spilled)
    released = released + sum_into(outcome.values(columns.turbined), plan.pair_hydro, plan.num_hydros)
    mean = running_sum(released * (plan.hours / plan.total_hours))
    return (mean[:, plan.data.transit.hydro[plan.data.transit.arrives_after_study]],)


def _slots(lp: StageLp) -> list[StateSlot]:
    """Water in transit, ordered by the plant where it arrives and then by distance."""
    slots = [slot for slot in (*lp.plan.layout.decided, *lp.plan.layout.passed) if slot.kind == IN_TRANSIT]
    return sorted(slots, key=lambda slot: (slot.entity, slot.distance))

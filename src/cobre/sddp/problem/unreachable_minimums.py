"""Minimum volumes that a dry period leaves out of reach: they hold at a price.

A limit of a stage (constraints/hydro_bounds.parquet) may be above the volume that a plant starts the stage with:
above its initial storage, or above the limit of the stage before. Where water of the driest opening does not fill the
gap, a hard limit makes the stage infeasible. The official models charge for such a violation, and so do we.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from cobre.core.arrays import Flags, Floats
from cobre.core.stage_data import IN_TRANSIT, ResolvedStudy
from cobre.records import dataclass
from cobre.sddp.lp.plan import StagePlan
from cobre.sddp.lp.rows import volumes
from cobre.stochastic.model import NoiseModel

SMALLEST_GAP_HM3 = 1e-6  # ten times what a solver leaves of a violation


@dataclass(frozen=True, slots=True)
class UnreachableMinimum:
    """The first stage that a plant (by position) may end below its minimum, whatever is decided.

    start_hm3: the least volume that it may begin the stage with. most_hm3: what it can hold at its end, from there, in
    the driest opening.
    """

    hydro: int
    stage: int
    start_hm3: float
    limit_hm3: float
    most_hm3: float

    def describe(self, stage_id: int, floor_hm3: float, price: float) -> str:
        """Describe the finding and its consequence."""
        start = "starts the study" if self.stage == 0 else f"may start stage {stage_id}"
        return (
            f"{start} with {self.start_hm3:g} hm3, must end stage {stage_id} with {self.limit_hm3:g} hm3, and reaches "
            f"{max(self.most_hm3, 0.0):g} hm3 in the driest opening: in all stages its minimum may be violated at "
            f"storage_violation_below_cost ({price:,.6g} $/hm3), down to {floor_hm3:g} hm3"
        )


def unreachable_minimums(
    study: ResolvedStudy, noise: NoiseModel, plans: Sequence[StagePlan]
) -> tuple[UnreachableMinimum, ...]:
    """Find plants whose minimum is out of reach in some stage, each with the first such stage.

    A limit is kept if there is any doubt in the first stage: pumps, diversions and releases upstream count with all
    the water that they could bring. In later stages every plant starts from the limit of the stage before, and inflows
    that depend on their past follow a period without any. Cases of format 0.18 start within the limits of the first
    stage, and inflows that may be made up for without limit fill every gap: for both, nothing is found.
    """
    options = plans[0].options
    if not options.keeps_initial_storage or (options.has_inflow_slack and not options.limits_inflow_slack):
        return ()
    by_hydro: dict[int, UnreachableMinimum] = {}
    start = study.initial_storage_hm3
    for stage, plan in enumerate(plans):
        low = plan.data.hydro.min_storage_hm3
        rises = plan.has_hard_minimum & (start < low - SMALLEST_GAP_HM3)
        if rises.any():
            maximum = _most_storage(plan, start, _least_inflow(noise, stage, plan), _arriving(study, stage)).min(axis=0)
            for hydro in np.flatnonzero(rises & (maximum < low - SMALLEST_GAP_HM3)).tolist():
                numbers = float(start[hydro]), float(low[hydro]), float(maximum[hydro])
                by_hydro.setdefault(hydro, UnreachableMinimum(hydro, stage, *numbers))
        start = np.where(plan.has_reservoir, _lowest(plan), start)
    return tuple(by_hydro[hydro] for hydro in sorted(by_hydro))


def flags_of(unreachable: Sequence[UnreachableMinimum], num_hydros: int) -> Flags:
    """Return by plant (N) whether its minimum holds at a price."""
    flags = np.zeros(num_hydros, np.bool_)
    flags[[minimum.hydro for minimum in unreachable]] = True
    return flags


def _lowest(plan: StagePlan) -> Floats:
    return np.where(plan.has_hard_minimum, plan.data.hydro.min_storage_hm3, 0.0)


def _least_inflow(noise: NoiseModel, stage: int, plan: StagePlan) -> Floats:
    """Return the least usable inflows (openings x N), m3/s, with the correction of negative ones."""
    inflow = noise.realise(stage, noise.openings[stage]).inflow_m3s
    if stage == 0:
        inflow = inflow + noise.lag_inflow(0, np.asarray(noise.initial_lags, np.float64)[None])
    return np.where(plan.has_inflow_slack, np.maximum(inflow, 0.0), inflow)


def _arriving(study: ResolvedStudy, stage: int) -> Floats:
    """Return by plant (N) water released before the study that may still arrive, hm3; none is certain later on."""
    arriving = np.zeros(len(study.topology.downstream))
    if stage == 0:
        slots = (*study.layout.decided, *study.layout.passed)
        values = np.concatenate([study.initial_decided, study.initial_passed])
        for slot, value in zip(slots, values.tolist(), strict=True):
            if slot.kind == IN_TRANSIT:
                arriving[slot.entity] += value
    return arriving


def _most_storage(plan: StagePlan, start: Floats, inflow_m3s: Floats, arriving_hm3: Floats) -> Floats:
    """Return the largest volume of each plant (openings x N), hm3, if all plants upstream release as much as possible.

    Withdrawals and evaporation may be violated at a price, so that they take nothing, and bring the most.
    """
    hm3_per_m3s = float(volumes(plan)[0])  # a limit holds at the end of every block where blocks are chronological
    own = inflow_m3s + _brought_m3s(plan)
    water = np.zeros_like(own)
    for hydro, receiver in enumerate(plan.receiver.tolist()):
        if receiver >= 0:
            water[:, receiver] += own[:, hydro] * hm3_per_m3s + arriving_hm3[hydro]
    water += np.where(plan.has_reservoir, start, 0.0)
    below = plan.receiver_of(plan.topology.downstream)
    lowest = _lowest(plan)
    for hydro in _upstream_first(plan):
        if plan.has_reservoir[hydro] and below[hydro] >= 0:
            water[:, below[hydro]] += np.maximum(water[:, hydro] - lowest[hydro], 0.0)
    return water


def _brought_m3s(plan: StagePlan) -> Floats:
    """Return by plant (N) the most that pumps, diversions, negative withdrawals and violated evaporation bring."""
    hydro, topology, n = plan.data.hydro, plan.topology, plan.num_hydros
    evaporated = 2.0 * np.abs(hydro.evaporation_k0 + hydro.evaporation_kv * hydro.max_storage_hm3)
    brought = np.where(hydro.has_evaporation & plan.has_reservoir, evaporated, 0.0)
    brought += np.maximum(-hydro.water_withdrawal_m3s, 0.0)
    diverted = np.where(plan.in_service, hydro.max_diversion_m3s.max(axis=1, initial=0.0), 0.0)
    pumped = plan.data.pumping.max_m3s.max(axis=1, initial=0.0)
    for target, flow in ((topology.diversion_target, diverted), (topology.pumping_destination, pumped)):
        brought += np.bincount(target[target >= 0], flow[target >= 0], n)
    return brought


def _upstream_first(plan: StagePlan) -> Iterator[int]:
    """Yield plants in an order in which water flows."""
    downstream = plan.topology.downstream
    waits_for = np.bincount(downstream[downstream >= 0], minlength=plan.num_hydros)
    ready = np.flatnonzero(waits_for == 0).tolist()
    while ready:
        hydro = ready.pop()
        yield hydro
        below = int(downstream[hydro])
        if below >= 0:
            waits_for[below] -= 1
            if waits_for[below] == 0:
                ready.append(below)

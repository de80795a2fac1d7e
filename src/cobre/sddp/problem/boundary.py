"""The boundary policy: cuts of another study that value the state at the end of this one.

Storages and inflow lags of the two states are matched by name; commitments and water in transit by the days of their
delivery or arrival. What the boundary policy values and this study does not have counts as zero. What this study has
and the policy does not value is an error for storages; anything else has a coefficient of zero. Both are named.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from typing import NamedTuple

import numpy as np

from cobre._native import CUTS_PER_BLOCK
from cobre.comm import SharedMemoryProvider
from cobre.core.arrays import Floats
from cobre.core.case import InflowObservation
from cobre.core.stage_data import COMMITMENT, IN_TRANSIT, ResolvedStudy
from cobre.core.state_names import INFLOW_LAG, STORAGE, StateName, kind_of, owner_of
from cobre.errors import PolicyIncompatibleError
from cobre.records import dataclass
from cobre.sddp.cut_pool import MAX_CHUNK_CUTS, CutPool, CutSet, stored_components
from cobre.sddp.lp.build import StageLp, build_stage_lp
from cobre.sddp.problem.problem import Problem
from cobre.solver.batches import CutRows

ANY_VOLUME_HM3 = 1e6  # more than any river carries in a stage
# Inflow lags at the end of a study are taken to lie within this factor of their usual size, on either side of zero.
LAG_MARGIN = 100.0
# Less than this share of a policy's stage after the last period given counts as rounding: months of 730 hours.
MIN_PART_OF_STAGE = 0.1

Days = Mapping[str, tuple[date, date]]


class Period(NamedTuple):
    """A stage, or a period after the study: its first day, the first day after it, and its hours."""

    start: date
    end: date
    hours: float


class BoundaryMismatchError(PolicyIncompatibleError):
    """A boundary policy does not fit this study. The message says what differs, and what would fit."""


@dataclass(frozen=True, slots=True)
class ExternalCuts:
    """Another study's cuts at the day on which this one ends, on the other study's states.

    state_names: such as `storage:3` or `inflow_lag1:3`. cost_scale: $ per unit of its cuts.
    days: of commitments and water in transit, the first day of delivery or arrival and the first day after it.
    later: the other study's stages after that day; empty where its policy does not have their dates.
    past: inflows before the other study, by ids of this one. notes: how plants were matched, for the user.
    """

    state_names: tuple[str, ...]
    cuts: CutSet
    cost_scale: float
    days: Days = field(default_factory=dict)
    later: tuple[Period, ...] = ()
    past: tuple[InflowObservation, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundaryCuts:
    """A boundary policy's cuts on this study's states, in units of its LP costs.

    dropped: states that the policy values and this study does not have.
    unvalued: states that this study has and the policy does not value.
    """

    cuts: CutSet
    dropped: tuple[str, ...]
    unvalued: tuple[str, ...] = ()

    def rows(self) -> CutRows:
        """Return the cuts as the solver takes them, in place of cuts of the last stage."""
        count, dimension = self.cuts.coefficients.shape
        table = np.zeros((1 + dimension, -(-count // CUTS_PER_BLOCK) * CUTS_PER_BLOCK))
        table[0, :count] = self.cuts.intercepts
        table[1:, :count] = self.cuts.coefficients.T
        starts = range(0, table.shape[1], MAX_CHUNK_CUTS)
        chunks = [np.ascontiguousarray(table[:, start : start + MAX_CHUNK_CUTS]) for start in starts]
        return CutRows(chunks, count, np.ones(count, np.uint8))


class BoundaryCutPool(CutPool):
    """The cut pool of a study whose last stage (or leaves) may have the fixed cuts of a boundary policy.

    boundary: None if the cost after the last stage is zero.
    """

    def __init__(self, memory: SharedMemoryProvider, problem: Problem, boundary: CutRows | None) -> None:
        programs = [stage.program for stage in problem.stages]
        by_stage = stored_components(programs, is_priced=boundary is not None)
        components = [by_stage[stage] for stage in problem.pool_stages]
        super().__init__(memory, problem.num_pools, problem.dimension, components)
        self._boundary = boundary
        self._last = problem.num_last_pools

    @property
    def boundary(self) -> CutRows | None:
        """Cuts of a boundary policy after the last stage; None if the study has none."""
        return self._boundary

    def rows(self, stage: int, *, all_cuts: bool = False) -> CutRows:
        """Return the cuts of a stage for the solver; `all_cuts`: with those that selection deactivated."""
        if self._boundary is not None and stage >= self.num_stages - self._last:
            return self._boundary
        return super().rows(stage, all_cuts=all_cuts)


def fit_boundary(
    policy: ExternalCuts,
    names: Sequence[str],
    cost_scale: float,
    *,
    is_strict: bool,
    days: Days | None = None,
    unstored: Collection[str] = (),
) -> BoundaryCuts:
    """Express a boundary policy's cuts in the states `names` of this study and in its cost scale.

    is_strict: raise BoundaryMismatchError rather than drop a state that this study does not have.
    days: of this study's commitments and water in transit, as in `ExternalCuts`. A commitment that is delivered after
    the study has the share of the policy's coefficient that the common days are of the policy's period: it is power.
    Water is a volume: its coefficient is the mean of the policy's over the days on which it arrives.
    unstored: storages that have one volume only, whose value nothing depends on.
    """
    _require_cuts(policy)
    _require_storages(policy, [name for name in names if name not in unstored])
    shares = _shares(policy, names, days or {})
    dropped = _unmatched(policy, shares)
    if dropped and is_strict:
        raise BoundaryMismatchError(
            f"the boundary policy values state variables that this study does not have: {', '.join(dropped)}; "
            "with policy.boundary.strict = false they count as zero"
        )
    rescale = policy.cost_scale / cost_scale
    coefficients = np.zeros((len(policy.cuts.intercepts), len(names)))
    for (position, source), share in shares.items():
        coefficients[:, position] += share * (rescale * policy.cuts.coefficients[:, source])
    valued = {position for position, _ in shares}
    unvalued = tuple(name for position, name in enumerate(names) if position not in valued)
    return BoundaryCuts(CutSet(rescale * policy.cuts.intercepts, coefficients), dropped, unvalued)


def values_water_in_transit(policy: ExternalCuts, hydro_ids: Collection[int]) -> bool:
    """Return whether some cut depends on water in transit to one of the plants."""
    parsed = [StateName.parse(name) for name in policy.state_names]
    columns = [at for at, name in enumerate(parsed) if name.kind == IN_TRANSIT and name.entity_id in hydro_ids]
    return bool(policy.cuts.coefficients[:, columns].any())


def periods_after(policy: ExternalCuts, given: Sequence[Period], end: date) -> tuple[Period, ...]:
    """Return the periods after a study that ends on `end`: those given for it, then the policy's stages after them."""
    first = given[-1].end if given else end
    periods = list(given)
    for period in policy.later:
        days, left = (period.end - period.start).days, (period.end - max(period.start, first)).days
        if left >= MIN_PART_OF_STAGE * days:
            periods.append(Period(max(period.start, first), period.end, period.hours * left / days))
    return tuple(periods)


def lags_read(policy: ExternalCuts, hydro_ids: Sequence[int]) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return flags [lag, hydro] of what some cut depends on; as many lags as the deepest of them."""
    position_of = {name: position for position, name in enumerate(policy.state_names)}
    read: list[list[bool]] = []
    for lag in range(1, 1 + max((_depth(name) for name in policy.state_names), default=0)):
        positions = [position_of.get(str(StateName(INFLOW_LAG, id_, lag))) for id_ in hydro_ids]
        read.append([at is not None and bool(policy.cuts.coefficients[:, at].any()) for at in positions])
    table = np.array(read, bool).reshape(len(read), len(hydro_ids))
    deepest = np.flatnonzero(table.any(axis=1))
    return table[: deepest[-1] + 1] if len(deepest) else table[:0]


def with_boundary(problem: Problem, study: ResolvedStudy, boundary: BoundaryCuts) -> Problem:
    """Add a future cost after the last stage of a problem; floors are lowered if that cost may be negative."""
    lower = least_value(problem, study, boundary)
    stages: list[StageLp] = []
    for position, lp in enumerate(reversed(problem.stages)):
        plan = lp.plan
        floor = min(0.0, plan.future_cost_floor + lower)
        if position == 0:
            stages.append(build_stage_lp(replace(plan, future_cost_floor=floor, future_cost_ceiling=np.inf)))
        else:
            stages.append(lp if lower == 0.0 else build_stage_lp(replace(plan, future_cost_floor=floor)))
        lower *= plan.data.discount
    return replace(problem, stages=tuple(reversed(stages)))


def least_value(problem: Problem, study: ResolvedStudy, boundary: BoundaryCuts) -> float:
    """Return a lower bound, at most zero, on the boundary cuts' maximum over all reachable states, scaled.

    Each cut's minimum over the box of reachable states bounds the maximum from below; the highest of these is taken.
    """
    low, high = _reachable(problem, study)
    slopes = boundary.cuts.coefficients
    lower = boundary.cuts.intercepts.copy()
    for component, ends in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        lower += np.minimum(slopes[:, component] * ends[0], slopes[:, component] * ends[1])
    return min(0.0, float(lower.max()))


def _reachable(problem: Problem, study: ResolvedStudy) -> tuple[Floats, Floats]:
    """Return the lower and upper corner of a box around all reachable states at the end of the study."""
    noise, hydros = problem.noise, problem.num_hydros
    fullest = np.max([data.hydro.max_storage_hm3 for data in study.stages], axis=0, initial=0.0)
    storage = np.maximum(fullest, problem.initial_state[:hydros])
    inflow = np.max(np.abs(noise.inflow_base) + noise.inflow_sigma, axis=0, initial=0.0)
    usual = np.max(np.abs(problem.initial_lags), axis=0, initial=0.0) + inflow
    lags = np.tile(LAG_MARGIN * usual, len(problem.initial_lags))
    decided, passed = _largest_ahead(study)
    none = np.zeros(hydros + len(decided))
    return (
        np.concatenate([none, -lags, np.zeros(len(passed))]),
        np.concatenate([storage, decided, lags, passed]),
    )


def _largest_ahead(study: ResolvedStudy) -> tuple[Floats, Floats]:
    """Return upper limits of decided and of passed-on states in the layout's order: MW committed, hm3 of water."""
    power = np.max([data.thermal.max_mw for data in study.stages], axis=(0, 2), initial=0.0)
    slots = study.layout.decided_of(COMMITMENT)
    for data in study.stages:
        for slot, largest in zip(slots, data.commitment.max_mw.tolist(), strict=True):
            power[slot.entity] = max(power[slot.entity], largest)
    decided, passed = (
        np.array([power[slot.entity] if slot.kind == COMMITMENT else ANY_VOLUME_HM3 for slot in slots], np.float64)
        for slots in (study.layout.decided, study.layout.passed)
    )
    return np.maximum(decided, study.initial_decided), np.maximum(passed, study.initial_passed)


def _require_cuts(policy: ExternalCuts) -> None:
    if not len(policy.cuts.intercepts):
        raise BoundaryMismatchError(
            "the boundary policy has no cuts at the end of this study: its own study ends there, or it was not trained"
        )


def _require_storages(policy: ExternalCuts, names: Sequence[str]) -> None:
    missing = [owner_of(name) for name in names if kind_of(name) == STORAGE and name not in policy.state_names]
    if missing:
        stored_ids = [owner_of(name) for name in policy.state_names if kind_of(name) == STORAGE]
        raise BoundaryMismatchError(
            f"the boundary policy gives no value to the water of hydros {', '.join(missing)}; "
            f"it covers hydros {', '.join(stored_ids) or 'none'}"
        )


def _shares(policy: ExternalCuts, names: Sequence[str], days: Days) -> dict[tuple[int, int], float]:
    """Return by entries of this study's state and the policy's the share of its coefficient that carries over."""
    position_of = {name: position for position, name in enumerate(policy.state_names)}
    shares = {}
    dated: dict[tuple[str, str], list[str]] = {}
    for other in policy.days:
        dated.setdefault((kind_of(other), owner_of(other)), []).append(other)
    for position, name in enumerate(names):
        kind = kind_of(name)
        if name in days:
            for other in dated.get((kind, owner_of(name)), ()):
                if share := _common_share(kind, days[name], policy.days[other]):
                    shares[position, position_of[other]] = share
        elif name in position_of and kind not in (COMMITMENT, IN_TRANSIT):
            shares[position, position_of[name]] = 1.0
    return shares


def _common_share(kind: str, mine: tuple[date, date], other: tuple[date, date]) -> float:
    """Return the common days of two periods, as a share of this study's period for water, else of the other's."""
    common = (min(mine[1], other[1]) - max(mine[0], other[0])).days
    whole = mine if kind == IN_TRANSIT else other
    return max(0, common) / (whole[1] - whole[0]).days


def _unmatched(policy: ExternalCuts, shares: Mapping[tuple[int, int], float]) -> tuple[str, ...]:
    """Return states with a coefficient in some cut of the policy that this study does not have."""
    sources = {source for _, source in shares}
    columns = enumerate(zip(policy.state_names, policy.cuts.coefficients.T, strict=True))
    return tuple(name for at, (name, slopes) in columns if at not in sources and slopes.any())


def _depth(name: str) -> int:
    """Return the lag of a lagged inflow, 1 or more; 0 for other states."""
    return StateName.parse(name).distance if kind_of(name) == INFLOW_LAG else 0

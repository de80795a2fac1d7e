"""Cuts of another study that price what is left at the end of this one.

The other study's state is matched with this one's by name. What it prices and this study does not have counts as zero;
what this study has and the other does not price is an error for storages, while a lag that the other study does not
read has simply no price.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import numpy as np

from cobre._native import CUTS_PER_BLOCK
from cobre.comm import SharedMemoryProvider
from cobre.core.arrays import Floats
from cobre.core.stage_data import COMMITMENT, ResolvedStudy
from cobre.core.state_names import INFLOW_LAG, STORAGE, StateName, kind_of
from cobre.errors import PolicyIncompatibleError
from cobre.sddp.cuts.components import stored_components
from cobre.sddp.cuts.pool import WIDEST_CHUNK, CutPool, CutSet
from cobre.sddp.lp.build import StageLp, build_stage_lp
from cobre.sddp.problem import Problem
from cobre.solver.batches import CutRows

ANY_VOLUME_HM3 = 1e6  # more than any river carries in a stage
# Inflows at the end of a study are taken to lie within so many times what is usual, either way.
UNUSUAL = 100.0


Days = Mapping[str, tuple[date, date]]


class BoundaryMismatchError(PolicyIncompatibleError):
    """Cuts that cannot price the end of this study: what differs, and what would be right."""


@dataclass(frozen=True, slots=True)
class PricedStates:
    """Another study's cuts at the day on which this one ends. Names such as `storage:3` or `inflow_lag1:3`.

    days: of commitments, the first day of their delivery and the first one after it.
    """

    state_names: tuple[str, ...]
    cuts: CutSet
    cost_scale: float
    days: Days = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Boundary:
    """Cuts on this study's states, in its LP money. `dropped`: what was priced and is not in this study."""

    cuts: CutSet
    dropped: tuple[str, ...]

    def rows(self) -> CutRows:
        """For the solver, in place of cuts of the last stage."""
        count, dimension = self.cuts.coefficients.shape
        table = np.zeros((1 + dimension, -(-count // CUTS_PER_BLOCK) * CUTS_PER_BLOCK))
        table[0, :count] = self.cuts.intercepts
        table[1:, :count] = self.cuts.coefficients.T
        starts = range(0, table.shape[1], WIDEST_CHUNK)
        chunks = [np.ascontiguousarray(table[:, start : start + WIDEST_CHUNK]) for start in starts]
        return CutRows(chunks, count, np.ones(count, np.uint8))


class PricedPool(CutPool):
    """Cuts of all stages, or of all nodes of a tree; those of the last are another study's and never change.

    `end` None: nothing follows.
    """

    def __init__(self, memory: SharedMemoryProvider, problem: Problem, end: CutRows | None) -> None:
        programs = [stage.program for stage in problem.stages]
        by_stage = stored_components(programs, is_priced=end is not None)
        components = [by_stage[stage] for stage in problem.pool_stages]
        super().__init__(memory, problem.num_pools, problem.dimension, components)
        self._end = end
        self._last = problem.last_pools

    @property
    def end(self) -> CutRows | None:
        """Cuts of another study after the last stage, where there are any."""
        return self._end

    def rows(self, stage: int, *, all_cuts: bool = False) -> CutRows:
        """The cuts of a stage for the solver; `all_cuts`: those that selection put aside as well."""
        if self._end is not None and stage >= self.num_stages - self._last:
            return self._end
        return super().rows(stage, all_cuts=all_cuts)


def fit_boundary(
    priced: PricedStates, names: Sequence[str], cost_scale: float, *, is_strict: bool, days: Days | None = None
) -> Boundary:
    """The cuts in this study's terms; `names` are those of its states. Strict: nothing may be dropped.

    What is delivered after the study is priced by the days (`days`, as of the other study) that both have in common.
    """
    _require_cuts(priced)
    _require_storages(priced, names)
    shares = _shares(priced, names, days or {})
    dropped = _priced_but_unknown(priced, shares)
    if dropped and is_strict:
        raise BoundaryMismatchError(
            f"the boundary policy prices what this study does not have: {', '.join(dropped)}; "
            "with policy.boundary.strict = false it would count as zero"
        )
    rescale = priced.cost_scale / cost_scale
    coefficients = np.zeros((len(priced.cuts.intercepts), len(names)))
    for (position, source), share in shares.items():
        coefficients[:, position] += share * (rescale * priced.cuts.coefficients[:, source])
    return Boundary(CutSet(rescale * priced.cuts.intercepts, coefficients), dropped)


def lags_read(priced: PricedStates, hydro_ids: Sequence[int]) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """[lag, hydro]: whether some cut depends on it; as many lags as the deepest that any depends on."""
    place = {name: position for position, name in enumerate(priced.state_names)}
    read: list[list[bool]] = []
    for lag in range(1, 1 + max((_depth(name) for name in priced.state_names), default=0)):
        found = [place.get(str(StateName(INFLOW_LAG, id_, lag))) for id_ in hydro_ids]
        read.append([at is not None and bool(priced.cuts.coefficients[:, at].any()) for at in found])
    table = np.array(read, bool).reshape(len(read), len(hydro_ids))
    deepest = np.flatnonzero(table.any(axis=1))
    return table[: deepest[-1] + 1] if len(deepest) else table[:0]


def with_boundary(problem: Problem, study: ResolvedStudy, boundary: Boundary) -> Problem:
    """The problem whose last stage looks beyond its end, and whose floors allow for what is found there."""
    least = least_value(problem, study, boundary)
    stages: list[StageLp] = []
    for position, lp in enumerate(reversed(problem.stages)):
        plan = lp.plan
        floor = min(0.0, plan.future_cost_floor + least)
        if position == 0:
            stages.append(build_stage_lp(replace(plan, future_cost_floor=floor, future_cost_ceiling=np.inf)))
        else:
            stages.append(lp if least == 0.0 else build_stage_lp(replace(plan, future_cost_floor=floor)))
        least *= plan.data.discount
    return replace(problem, stages=tuple(reversed(stages)))


def least_value(problem: Problem, study: ResolvedStudy, boundary: Boundary) -> float:
    """What the end is worth at the very least in any state that can be reached, in LP money; never above zero.

    The highest of the cuts' least values: the cuts' maximum is nowhere below it.
    """
    low, high = _reachable(problem, study)
    slopes = boundary.cuts.coefficients
    least = boundary.cuts.intercepts.copy()
    for component, ends in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        least += np.minimum(slopes[:, component] * ends[0], slopes[:, component] * ends[1])
    return min(0.0, float(least.max()))


def _reachable(problem: Problem, study: ResolvedStudy) -> tuple[Floats, Floats]:
    """A box around all states at the end."""
    noise, hydros = problem.noise, problem.num_hydros
    fullest = np.max([data.hydro.max_storage_hm3 for data in study.stages], axis=0, initial=0.0)
    storage = np.maximum(fullest, problem.initial_state[:hydros])
    inflow = np.max(np.abs(noise.inflow_base) + noise.inflow_sigma, axis=0, initial=0.0)
    usual = np.max(np.abs(problem.initial_lags), axis=0, initial=0.0) + inflow
    lags = np.tile(UNUSUAL * usual, len(problem.initial_lags))
    decided, passed = _largest_ahead(study)
    none = np.zeros(hydros + len(decided))
    return (
        np.concatenate([none, -lags, np.zeros(len(passed))]),
        np.concatenate([storage, decided, lags, passed]),
    )


def _largest_ahead(study: ResolvedStudy) -> tuple[Floats, Floats]:
    """The most that can be known ahead, in the order of the layout: power at its maximum, any amount of water."""
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


def _require_cuts(priced: PricedStates) -> None:
    if not len(priced.cuts.intercepts):
        raise BoundaryMismatchError(
            "the boundary policy has no cuts at the end of this study: it ends there itself, or it was not trained"
        )


def _require_storages(priced: PricedStates, names: Sequence[str]) -> None:
    missing = [_owner(name) for name in names if kind_of(name) == STORAGE and name not in priced.state_names]
    if missing:
        known = [_owner(name) for name in priced.state_names if kind_of(name) == STORAGE]
        raise BoundaryMismatchError(
            f"the boundary policy does not price the water of hydro(s) {', '.join(missing)}; "
            f"it knows the hydro(s) {', '.join(known) or 'none'}"
        )


def _shares(priced: PricedStates, names: Sequence[str], days: Days) -> dict[tuple[int, int], float]:
    """By entries of this study's state and of the other's: what the first has of the second's price."""
    place = {name: position for position, name in enumerate(priced.state_names)}
    shares = {}
    for position, name in enumerate(names):
        if name in days:
            for other, interval in priced.days.items():
                if _owner(other) == _owner(name) and (share := _common_share(days[name], interval)):
                    shares[position, place[other]] = share
        elif name in place and kind_of(name) != COMMITMENT:
            shares[position, place[name]] = 1.0
    return shares


def _owner(name: str) -> str:
    return name.partition(":")[2]


def _common_share(mine: tuple[date, date], other: tuple[date, date]) -> float:
    """Days that both have, of the other's."""
    common = (min(mine[1], other[1]) - max(mine[0], other[0])).days
    return max(0, common) / (other[1] - other[0]).days


def _priced_but_unknown(priced: PricedStates, shares: Mapping[tuple[int, int], float]) -> tuple[str, ...]:
    """States of the other study that some cut depends on and this study has not."""
    known = {source for _, source in shares}
    columns = enumerate(zip(priced.state_names, priced.cuts.coefficients.T, strict=True))
    return tuple(name for at, (name, slopes) in columns if at not in known and slopes.any())


def _depth(name: str) -> int:
    """The lag of a lagged inflow, 1 or more; 0 for other states."""
    return StateName.parse(name).distance if kind_of(name) == INFLOW_LAG else 0

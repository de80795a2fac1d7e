"""The memory in which the ranks of a team leave their results: counters, paths, and the solves of one stage."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cobre.comm import SharedRegion
from cobre.core.arrays import Indices
from cobre.sddp.problem import Problem
from cobre.solver.batches import CommonBatch, CommonWalk

ALIGNMENT = 64  # a cache line
COUNTERS = 2  # used in turns: while one counts, the leader sets the other one back


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """Where an array lies in the shared region: offset in bytes, dtype and shape."""

    start: int
    dtype: DTypeLike
    shape: tuple[int, ...]

    @property
    def end(self) -> int:
        """The offset after this array, rounded up to a cache line."""
        nbytes = np.dtype(self.dtype).itemsize * prod(self.shape)
        return self.start + -(-nbytes // ALIGNMENT) * ALIGNMENT

    def view(self, memory: NDArray[np.uint8]) -> NDArray[Any]:
        """The array itself, as a view of the region's bytes."""
        nbytes = np.dtype(self.dtype).itemsize * prod(self.shape)
        return memory[self.start : self.start + nbytes].view(self.dtype).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class TeamLayout:
    """Counters, then the tables of a walk, then room for the solves of any stage."""

    states: ArrayPlace
    objective: ArrayPlace
    future_cost: ArrayPlace
    status: tuple[ArrayPlace, ...]  # by stage
    cuts: tuple[ArrayPlace, ...]
    solves: ArrayPlace

    @classmethod
    def of(cls, problem: Problem, paths: int) -> "TeamLayout":
        """The layout for a team with this many forward paths."""
        stages, programs = problem.num_stages, [stage.program for stage in problem.stages]
        costs = (stages, paths)
        room = max(1, paths) * max(opening.count for opening in problem.openings) * (1 + problem.dimension)
        wanted: list[tuple[DTypeLike, tuple[int, ...]]] = [
            (np.float64, (*costs, problem.dimension)),
            (np.float64, costs),
            (np.float64, costs),
            *((np.int8, (paths, len(program.cost) + len(program.row_lower))) for program in programs),
            *((np.int32, (paths, program.states + 1)) for program in programs),
            (np.float64, (room,)),
        ]
        places, end = [], COUNTERS * ALIGNMENT
        for dtype, shape in wanted:
            places.append(ArrayPlace(end, dtype, shape))
            end = places[-1].end
        states, objective, future_cost, *bases, solves = places
        return cls(states, objective, future_cost, tuple(bases[:stages]), tuple(bases[stages:]), solves)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole region."""
        return self.solves.end


class TeamTables:
    """A region with this layout; all members have the same."""

    def __init__(self, region: SharedRegion, layout: TeamLayout, *, is_leader: bool) -> None:
        self._is_leader = is_leader
        self._jobs = 0
        memory: NDArray[np.uint8] = region.as_mut_array(0, region.count)
        self._counters = [ArrayPlace(turn * ALIGNMENT, np.int64, (1,)).view(memory) for turn in range(COUNTERS)]
        self._walk = (
            layout.states.view(memory),
            layout.objective.view(memory),
            layout.future_cost.view(memory),
            [place.view(memory) for place in layout.status],
            [place.view(memory) for place in layout.cuts],
        )
        self._solves = layout.solves.view(memory)

    def walk(self) -> CommonWalk:
        """A job: the paths of a forward pass."""
        return CommonWalk(self._next_counter(), *self._walk)

    def batch(self, count: int, dimension: int) -> CommonBatch:
        """A job: some solves of one stage, with slopes unless `dimension` is 0."""
        end = count * (1 + dimension)
        slopes = self._solves[count:end].reshape(count if dimension else 0, dimension)
        return CommonBatch(self._next_counter(), self._solves[:count], slopes)

    def _next_counter(self) -> Indices:
        """All members begin the same jobs in the same order, and a fence ends each.

        So nobody looks at the other counter any more: the last job is over. The fence at the end of this job tells
        everybody that it is 0 again.
        """
        self._jobs += 1
        if self._is_leader:
            self._counters[(self._jobs + 1) % COUNTERS][0] = 0
        return self._counters[self._jobs % COUNTERS]

"""The memory in which the ranks of a team leave their results: counters, paths, and the solves of one stage."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cobre._native import take_unit
from cobre.comm import SharedRegion
from cobre.core.arrays import Floats, Indices
from cobre.records import dataclass
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import ALIGNMENT, aligned
from cobre.solver.batches import Bases, SharedBatch, SharedPaths
from cobre.solver.program import StageProgram

COUNTERS = 2  # a double buffer: while one counts, the leader resets the other one


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """Position of an array in the shared region: offset in bytes, dtype and shape."""

    start: int
    dtype: DTypeLike
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return np.dtype(self.dtype).itemsize * prod(self.shape)

    @property
    def end(self) -> int:
        """The offset after this array, rounded up to a cache line."""
        return self.start + aligned(self.nbytes)

    def view(self, memory: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the array as a view of the region's bytes."""
        return memory[self.start : self.start + self.nbytes].view(self.dtype).reshape(self.shape)


class LayoutBuilder:
    """Place arrays one after the other in a region, after the counters."""

    def __init__(self) -> None:
        self._end = COUNTERS * ALIGNMENT

    def array(self, dtype: DTypeLike, *shape: int) -> ArrayLayout:
        """Return the layout of the next array."""
        layout = ArrayLayout(self._end, dtype, shape)
        self._end = layout.end
        return layout

    def basis_status(self, program: StageProgram, count: int) -> ArrayLayout:
        """Return the layout of the column and row statuses of some bases."""
        return self.array(np.int8, count, len(program.cost) + len(program.row_lower))

    def basis_cuts(self, program: StageProgram, count: int) -> ArrayLayout:
        """Return the layout of the active cuts of some bases."""
        return self.array(np.int32, count, program.num_decided + 1)


@dataclass(frozen=True, slots=True)
class TeamLayout:
    """Counters, then the tables of a path batch, then space for the solves of any stage.

    finished: by parity of the job and path, the number of its chains that are solved at the present stage
    of a backward pass.
    costs: by parity of the job and solve, so that costs of one stage can be read while others solve the next.
    """

    finished: ArrayLayout
    states: ArrayLayout
    objective: ArrayLayout
    future_cost: ArrayLayout
    status: tuple[ArrayLayout, ...]  # by stage
    cuts: tuple[ArrayLayout, ...]
    costs: ArrayLayout
    bound_status: ArrayLayout  # of the lower bound's bases, by solve of the first stage
    bound_cuts: ArrayLayout
    gradients: ArrayLayout

    @classmethod
    def of(cls, problem: Problem, paths: int) -> "TeamLayout":
        """Return the layout for a team with this many forward paths."""
        stages, programs = problem.num_stages, [stage.program for stage in problem.stages]
        max_solves = max(1, paths) * max(opening.count for opening in problem.openings)
        build = LayoutBuilder()
        return cls(
            finished=build.array(np.int64, COUNTERS, paths),
            states=build.array(np.float64, stages, paths, problem.dimension),
            objective=build.array(np.float64, stages, paths),
            future_cost=build.array(np.float64, stages, paths),
            status=tuple(build.basis_status(program, paths) for program in programs),
            cuts=tuple(build.basis_cuts(program, paths) for program in programs),
            costs=build.array(np.float64, COUNTERS, max_solves),
            bound_status=build.basis_status(programs[0], problem.openings[0].count),
            bound_cuts=build.basis_cuts(programs[0], problem.openings[0].count),
            gradients=build.array(np.float64, max_solves * problem.dimension),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the whole region."""
        return self.gradients.end


class Counters:
    """Number of claimed units of a job: two counters, used by one job after the other alternately.

    All members begin the same jobs in the same order, and a fence ends each. So no member reads the other counter any
    more when a job begins, and the leader resets it; the fence at the end of this job publishes the 0.
    """

    def __init__(self, memory: NDArray[np.uint8], *, is_leader: bool) -> None:
        self._is_leader = is_leader
        self._jobs = 0
        self._counters = [ArrayLayout(parity * ALIGNMENT, np.int64, (1,)).view(memory) for parity in range(COUNTERS)]

    @property
    def parity(self) -> int:
        """Which half of the double buffers the present job uses: 0 or 1."""
        return self._jobs % COUNTERS

    @property
    def present(self) -> Indices:
        """The counter of the present job."""
        return self._counters[self.parity]

    def begin_job(self) -> Indices:
        """Begin a job and return its counter; the leader resets the counter of the job after it."""
        self._jobs += 1
        if self._is_leader:
            self._counters[1 - self.parity][0] = 0
        return self.present


class TeamTables:
    """Tables of paths and solves in a region with a `TeamLayout`; all members see the same memory."""

    def __init__(self, region: SharedRegion, layout: TeamLayout, *, is_leader: bool) -> None:
        memory: NDArray[np.uint8] = region.as_mut_array(0, region.count)
        self._counters = Counters(memory, is_leader=is_leader)
        self._finished = layout.finished.view(memory)
        self._is_leader = is_leader
        self._batches: dict[tuple[int, int, int], SharedBatch] = {}  # by parity, solves and dimension; few differ
        self._states = layout.states.view(memory)
        self._objective, self._future_cost = layout.objective.view(memory), layout.future_cost.view(memory)
        self._status = [table.view(memory) for table in layout.status]
        self._cuts = [table.view(memory) for table in layout.cuts]
        self._costs, self._gradients = layout.costs.view(memory), layout.gradients.view(memory)
        self._bound_bases = layout.bound_status.view(memory), layout.bound_cuts.view(memory)

    def paths(self) -> SharedPaths:
        """Begin a job: the paths of a forward pass."""
        return SharedPaths(
            counter=self._begin_job(),
            states=self._states,
            objective=self._objective,
            future_cost=self._future_cost,
            basis_status=self._status,
            basis_cuts=self._cuts,
        )

    def batch(self, count: int, dimension: int) -> SharedBatch:
        """Begin a job: some solves of one stage, with gradients unless `dimension` is 0."""
        counter, parity = self._begin_job(), self._counters.parity
        batch = self._batches.get((parity, count, dimension))
        if batch is None:
            gradients = self._gradients[: count * dimension].reshape(count, dimension) if dimension else None
            batch = SharedBatch(counter, self._costs[parity, :count], gradients, finished=self._finished[parity])
            self._batches[parity, count, dimension] = batch
        return batch

    def batch_with_bases(self, count: int) -> SharedBatch:
        """Begin a job: solves of the first stage, with bases. Read these before a collective that ends the job."""
        counter, parity = self._begin_job(), self._counters.parity
        status, cuts = (table[:count] for table in self._bound_bases)
        return SharedBatch(counter, self._costs[parity, :count], basis_status=status, basis_cuts=cuts)

    def _begin_job(self) -> Indices:
        """Begin a job and return its counter; the leader resets the tables of the next job, like `Counters`."""
        counter = self._counters.begin_job()
        if self._is_leader:
            self._finished[1 - self._counters.parity] = 0
        return counter


@dataclass(frozen=True, slots=True)
class SolutionLayout:
    """Counters, then two buffers for the scenarios of one stage: one stage is read while the next is written.

    has_solution: with inflows, primal and dual values in addition to costs and leaving states.
    """

    buffers: tuple[ArrayLayout, ...]
    has_solution: bool

    @classmethod
    def of(cls, problem: Problem, scenarios: int, *, has_solution: bool) -> "SolutionLayout":
        """Return the layout for a job of this many scenarios at any stage."""
        width = max(sum(_solution_widths(stage.program, has_solution=has_solution)) for stage in problem.stages)
        build = LayoutBuilder()
        return cls(tuple(build.array(np.float64, scenarios * width) for _ in range(COUNTERS)), has_solution)

    @property
    def nbytes(self) -> int:
        """The size of the whole region."""
        return self.buffers[-1].end


class SolutionTables:
    """Tables of solutions in a region with a `SolutionLayout`; all members see the same memory."""

    def __init__(self, region: SharedRegion, layout: SolutionLayout, *, is_leader: bool) -> None:
        memory: NDArray[np.uint8] = region.as_mut_array(0, region.count)
        self._has_solution = layout.has_solution
        self._counters = Counters(memory, is_leader=is_leader)
        self._buffers = [buffer.view(memory) for buffer in layout.buffers]

    def paths(self, program: StageProgram, scenarios: int) -> SharedPaths:
        """Begin a job: scenarios at one stage; its tables are valid until the job after the next begins."""
        counter = self._counters.begin_job()
        buffer, tables, at = self._buffers[self._counters.parity], [], 0
        for width in _solution_widths(program, has_solution=self._has_solution):
            tables.append(buffer[at : at + scenarios * width].reshape(scenarios, width))
            at += scenarios * width
        objective, future_cost, leaving, *solution = tables
        inflow, primal, dual = ([table] for table in solution) if solution else ([], [], [])
        return SharedPaths(
            counter=counter,
            objective=objective.T,
            future_cost=future_cost.T,
            leaving=leaving,
            inflow=inflow,
            primal=primal,
            dual=dual,
        )


def _solution_widths(program: StageProgram, *, has_solution: bool) -> list[int]:
    """Return the width of each table: objective, future cost, leaving state, solution."""
    solution = [program.num_hydros, len(program.cost), len(program.row_lower)] if has_solution else []
    return [1, 1, program.dimension, *solution]


@dataclass(frozen=True, slots=True)
class TreeNodeLayout:
    """Counters, then for each stage of a tree the results of its nodes: rows of numbers, and bases."""

    rows: tuple[ArrayLayout, ...]
    status: tuple[ArrayLayout, ...]
    cuts: tuple[ArrayLayout, ...]

    @classmethod
    def of(cls, problem: Problem, counts: Sequence[int]) -> "TreeNodeLayout":
        """Return the layout for `counts[t]` nodes of stage t."""
        build = LayoutBuilder()
        by_stage = [
            (
                build.array(np.float64, count, 1 + problem.dimension),
                build.basis_status(stage.program, count),
                build.basis_cuts(stage.program, count),
            )
            for stage, count in zip(problem.stages, counts, strict=True)
        ]
        return cls(*zip(*by_stage, strict=True))

    @property
    def nbytes(self) -> int:
        """The size of the whole region."""
        return self.cuts[-1].end


class TreeNodeTables:
    """Tables of nodes of the scenario tree in a region with a `TreeNodeLayout`; all members see the same memory."""

    def __init__(self, region: SharedRegion, layout: TreeNodeLayout, *, is_leader: bool) -> None:
        self._layout = layout
        self._memory: NDArray[np.uint8] = region.as_mut_array(0, region.count)
        self._counters = Counters(self._memory, is_leader=is_leader)

    def rows(self, stage: int) -> Floats:
        """Return a row of float64 for each of the team's tree nodes of a stage."""
        return self._layout.rows[stage].view(self._memory)

    def bases(self, stage: int) -> Bases:
        """Return a basis for each of the team's tree nodes of a stage."""
        return Bases(self._layout.status[stage].view(self._memory), self._layout.cuts[stage].view(self._memory))

    def claimed_units(self, units: int) -> Iterator[int]:
        """Begin a job: yield the numbers of the units that this rank claims."""
        return claim_units(self._counters.begin_job(), units)

    @property
    def counter(self) -> Indices:
        """Number of claimed units of the present job; tests wait for it."""
        return self._counters.present


def claim_units(counter: Indices, units: int) -> Iterator[int]:
    """Yield numbers below `units` until none is left; no two ranks get the same one."""
    while (number := take_unit(counter)) < units:
        yield number

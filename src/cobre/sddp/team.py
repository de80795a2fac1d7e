"""Ranks with one shared memory form a team: each takes the next unit of work from a counter in that memory.

Post-processing is still split into fixed blocks; only the solves are assigned dynamically, to whichever rank is free. A
solve is a pure function of its inputs, so this changes no bit.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cobre._native import take_unit
from cobre.comm import Communicator, ReduceOp, SharedMemoryProvider, SharedRegion
from cobre.core.arrays import Floats, Indices
from cobre.records import dataclass
from cobre.sddp.problem.problem import Problem
from cobre.sddp.problem.scenario_tree import ScenarioTree
from cobre.sddp.ranks import ALIGNMENT, WorkSplit, aligned, ranks_sharing_memory
from cobre.solver.batches import Bases, SharedBatch, SharedPaths
from cobre.solver.program import StageProgram

# The memory in which the ranks of a team leave their results: counters, paths, and the solves of one stage.

COUNTERS = 2  # a double buffer: while one counts, the leader sets the other one back


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """Position of an array in the shared region: offset in bytes, dtype and shape."""

    start: int
    dtype: DTypeLike
    shape: tuple[int, ...]

    @property
    def end(self) -> int:
        """The offset after this array, rounded up to a cache line."""
        nbytes = np.dtype(self.dtype).itemsize * prod(self.shape)
        return self.start + aligned(nbytes)

    def view(self, memory: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the array as a view of the region's bytes."""
        nbytes = np.dtype(self.dtype).itemsize * prod(self.shape)
        return memory[self.start : self.start + nbytes].view(self.dtype).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class TeamLayout:
    """Counters, then the tables of a path batch, then room for the solves of any stage.

    finished: by parity of the job and path, how many of its chains are solved at the present stage of a backward pass.
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
        costs = (stages, paths)
        room = max(1, paths) * max(opening.count for opening in problem.openings)
        wanted: list[tuple[DTypeLike, tuple[int, ...]]] = [
            (np.int64, (COUNTERS, paths)),
            (np.float64, (*costs, problem.dimension)),
            (np.float64, costs),
            (np.float64, costs),
            *((np.int8, (paths, len(program.cost) + len(program.row_lower))) for program in programs),
            *((np.int32, (paths, program.num_decided + 1)) for program in programs),
            (np.float64, (COUNTERS, room)),
            (np.int8, (problem.openings[0].count, len(programs[0].cost) + len(programs[0].row_lower))),
            (np.int32, (problem.openings[0].count, programs[0].num_decided + 1)),
            (np.float64, (room * problem.dimension,)),
        ]
        layouts, end = [], COUNTERS * ALIGNMENT
        for dtype, shape in wanted:
            layouts.append(ArrayLayout(end, dtype, shape))
            end = layouts[-1].end
        finished, states, objective, future_cost, *bases, solved, status, cuts, gradients = layouts
        by_stage = tuple(bases[:stages]), tuple(bases[stages:])
        return cls(finished, states, objective, future_cost, *by_stage, solved, status, cuts, gradients)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole region."""
        return self.gradients.end


class Counters:
    """How many units of a job were taken: two counters, used by one job after the other alternately.

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

    def bound(self, count: int) -> SharedBatch:
        """Begin a job: solves of the lower bound, with bases. Read these before a collective that ends the job."""
        counter, parity = self._begin_job(), self._counters.parity
        status, cuts = (table[:count] for table in self._bound_bases)
        return SharedBatch(counter, self._costs[parity, :count], basis_status=status, basis_cuts=cuts)

    def _begin_job(self) -> Indices:
        """Begin a job and return its counter; the leader resets what the next job counts in, as `Counters` says."""
        counter = self._counters.begin_job()
        if self._is_leader:
            self._finished[1 - self._counters.parity] = 0
        return counter


@dataclass(frozen=True, slots=True)
class SolutionLayout:
    """Counters, then room for the scenarios of one stage, twice, for alternate jobs.

    While some members still read the results of one stage, others write those of the next. has_solution: with inflows,
    primal and dual values beside costs and leaving states.
    """

    rooms: tuple[ArrayLayout, ...]
    has_solution: bool

    @classmethod
    def of(cls, problem: Problem, scenarios: int, *, has_solution: bool) -> "SolutionLayout":
        """Return the layout for a job of this many scenarios at any stage."""
        width = max(sum(_solution_widths(stage.program, has_solution=has_solution)) for stage in problem.stages)
        first = ArrayLayout(COUNTERS * ALIGNMENT, np.float64, (scenarios * width,))
        return cls((first, ArrayLayout(first.end, np.float64, first.shape)), has_solution)

    @property
    def nbytes(self) -> int:
        """The size of the whole region."""
        return self.rooms[-1].end


class SolutionTables:
    """Tables of solutions in a region with a `SolutionLayout`; all members see the same memory."""

    def __init__(self, region: SharedRegion, layout: SolutionLayout, *, is_leader: bool) -> None:
        memory: NDArray[np.uint8] = region.as_mut_array(0, region.count)
        self._has_solution = layout.has_solution
        self._counters = Counters(memory, is_leader=is_leader)
        self._rooms = [room.view(memory) for room in layout.rooms]

    def paths(self, program: StageProgram, scenarios: int) -> SharedPaths:
        """Begin a job: scenarios at one stage; its tables are valid until the job after the next begins."""
        counter = self._counters.begin_job()
        room, tables, at = self._rooms[self._counters.parity], [], 0
        for width in _solution_widths(program, has_solution=self._has_solution):
            tables.append(room[at : at + scenarios * width].reshape(scenarios, width))
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
    """Return how many numbers one scenario has in each table: objective, future cost, leaving state, solution."""
    solution = [program.num_hydros, len(program.cost), len(program.row_lower)] if has_solution else []
    return [1, 1, program.dimension, *solution]


@dataclass(frozen=True, slots=True)
class TreeNodeLayout:
    """Counters, then for each stage of a tree what its nodes give: rows of numbers, and bases."""

    rows: tuple[ArrayLayout, ...]
    status: tuple[ArrayLayout, ...]
    cuts: tuple[ArrayLayout, ...]

    @classmethod
    def of(cls, problem: Problem, counts: Sequence[int]) -> "TreeNodeLayout":
        """Return the layout for `counts[t]` nodes of stage t."""
        layouts: list[list[ArrayLayout]] = [[], [], []]
        end = COUNTERS * ALIGNMENT
        for stage, count in zip(problem.stages, counts, strict=True):
            program = stage.program
            wanted: list[tuple[DTypeLike, int]] = [
                (np.float64, 1 + problem.dimension),
                (np.int8, len(program.cost) + len(program.row_lower)),
                (np.int32, program.num_decided + 1),
            ]
            for kind, (dtype, width) in zip(layouts, wanted, strict=True):
                kind.append(ArrayLayout(end, dtype, (count, width)))
                end = kind[-1].end
        return cls(*map(tuple, layouts))

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

    def taken(self, units: int) -> Iterator[int]:
        """Begin a job: yield the numbers of the units that this rank takes from the counter."""
        return taken_from(self._counters.begin_job(), units)

    @property
    def counter(self) -> Indices:
        """How many units of the present job were taken; tests wait for it."""
        return self._counters.present


def taken_from(counter: Indices, units: int) -> Iterator[int]:
    """Yield numbers below `units`, each given to one rank alone, until none is left."""
    while (number := take_unit(counter)) < units:
        yield number


class Team:
    """Some ranks, their share of a split, and the tables that they fill together; a team of one has none.

    region: where the tables are. A team of one waits at its region too where other teams have several members: all
    ranks of the world make the same calls.
    """

    def __init__(
        self,
        members: Sequence[int],
        rank: int,
        tables: TeamTables | None = None,
        region: SharedRegion | None = None,
        solutions: SolutionTables | None = None,
        nodes: TreeNodeTables | None = None,
    ) -> None:
        self.members = tuple(members)
        self.rank = rank
        self._tables = tables
        self._region = region
        self._solutions = solutions
        self.nodes = nodes

    @classmethod
    def alone(cls, rank: int) -> "Team":
        """Return a team of one rank."""
        return cls((rank,), rank)

    @classmethod
    def of(cls, comm: Communicator, memory: SharedMemoryProvider, problem: Problem, split: WorkSplit) -> "Team":
        """Form a team of the ranks that share memory with this one. Collective: call on every rank."""
        if comm.size == 1:
            return cls.alone(comm.rank)
        members = ranks_sharing_memory(memory)
        if problem.tree is not None:
            return cls._over_nodes(comm, memory, problem, problem.tree, members)
        layout = TeamLayout.of(problem, _share(split, members))
        region = _region(comm, memory, members, layout.nbytes)
        if region is None or len(members) == 1:
            return cls(members, comm.rank, region=region)
        return cls(members, comm.rank, TeamTables(region, layout, is_leader=memory.is_leader), region)

    @classmethod
    def _over_nodes(
        cls,
        comm: Communicator,
        memory: SharedMemoryProvider,
        problem: Problem,
        tree: ScenarioTree,
        members: tuple[int, ...],
    ) -> "Team":
        splits = [WorkSplit(len(tree.nodes(stage)), comm.size) for stage in range(problem.num_stages)]
        layout = TreeNodeLayout.of(problem, [_share(split, members) for split in splits])
        region = _region(comm, memory, members, layout.nbytes)
        if region is None or len(members) == 1:
            return cls(members, comm.rank, region=region)
        return cls(members, comm.rank, region=region, nodes=TreeNodeTables(region, layout, is_leader=memory.is_leader))

    @classmethod
    def for_scenarios(
        cls,
        comm: Communicator,
        memory: SharedMemoryProvider | None,
        problem: Problem,
        split: WorkSplit,
        *,
        has_solution: bool = False,
    ) -> "Team":
        """Make a team that simulates scenarios stage by stage; `split`: the largest set that it works on.

        A team of one where no memory is given. Collective: call on every rank.
        """
        if comm.size == 1 or memory is None:
            return cls.alone(comm.rank)
        members = ranks_sharing_memory(memory)
        layout = SolutionLayout.of(problem, _share(split, members), has_solution=has_solution)
        region = _region(comm, memory, members, layout.nbytes)
        if region is None or len(members) == 1:
            return cls(members, comm.rank, region=region)
        tables = SolutionTables(region, layout, is_leader=memory.is_leader)
        return cls(members, comm.rank, region=region, solutions=tables)

    def items(self, split: WorkSplit) -> Indices:
        """Return the items of a split that fall to the team: the blocks of its members, one after the other."""
        return np.concatenate([np.array(split.block(rank), np.int64) for rank in self.members])

    def own_rows(self, split: WorkSplit) -> slice:
        """Return the positions of this rank's block in the team's share."""
        before = sum(len(split.block(rank)) for rank in self.members if rank < self.rank)
        return slice(before, before + len(split.block(self.rank)))

    def paths(self) -> SharedPaths | None:
        """Begin the forward pass and return its shared tables; None for a team of one."""
        return self._tables.paths() if self._tables else None

    def solves(self, count: int, dimension: int) -> SharedBatch | None:
        """Begin some solves; return tables for costs and, unless `dimension` is 0, gradients; None when alone."""
        return self._tables.batch(count, dimension) if self._tables else None

    def bound(self, count: int) -> SharedBatch | None:
        """Begin the solves of the lower bound; return tables for costs and bases, None for a team of one."""
        return self._tables.bound(count) if self._tables else None

    def scenarios(self, program: StageProgram, count: int) -> SharedPaths | None:
        """Return shared tables for some scenarios at a stage; None for a team of one."""
        return self._solutions.paths(program, count) if self._solutions else None

    def wait(self, label: str) -> None:
        """Wait until all members have finished their units; every job that is begun together ends with it."""
        if self._region is not None:
            self._region.fence(label=label)

    def close(self) -> None:
        """Release the shared tables."""
        if self._region is not None:
            self._region.close()


def _share(split: WorkSplit, members: Sequence[int]) -> int:
    return sum(len(split.block(rank)) for rank in members)


def _region(
    comm: Communicator, memory: SharedMemoryProvider, members: Sequence[int], nbytes: int
) -> SharedRegion | None:
    """Create a region for a team's tables, of one size everywhere; None if all ranks of the world are alone."""
    largest = np.array([len(members), nbytes], np.int64)
    comm.allreduce(largest.copy(), largest, ReduceOp.MAX, label="teams")
    if largest[0] == 1:
        return None
    return memory.create_shared_region(int(largest[1]), np.uint8, label="tables of the team")


def share_bases(comm: Communicator, team: Team, own: list[Bases]) -> list[Bases]:
    """Send the bases of the first path, which rank 0 and its team have, to all ranks."""
    if len(team.members) == comm.size:
        return own
    status = np.concatenate([basis.status.reshape(-1) for basis in own])
    cuts = np.concatenate([basis.cuts.reshape(-1) for basis in own])
    comm.broadcast(status, 0, label="bases")
    comm.broadcast(cuts, 0, label="cuts of bases")
    shared, at, cut_at = [], 0, 0
    for basis in own:
        width, cut_width = basis.status.size, basis.cuts.size
        shared.append(
            Bases(
                status[at : at + width].reshape(basis.status.shape).copy(),
                cuts[cut_at : cut_at + cut_width].reshape(basis.cuts.shape).copy(),
            )
        )
        at, cut_at = at + width, cut_at + cut_width
    return shared

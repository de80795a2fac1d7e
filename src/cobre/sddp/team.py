"""Ranks with one shared memory form a team: each takes the next unit of work from a counter in that memory.

Post-processing is still split into fixed blocks; only the solves are assigned dynamically, to whichever rank is free. A
solve is a pure function of its inputs, so this changes no bit.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from cobre.comm import Communicator, ReduceOp, SharedMemoryProvider, SharedRegion
from cobre.core.arrays import Indices
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import WorkSplit, ranks_sharing_memory
from cobre.sddp.team_tables import (
    SolutionLayout,
    SolutionTables,
    TeamLayout,
    TeamTables,
    TreeNodeLayout,
    TreeNodeTables,
)
from cobre.solver.batches import Bases, SharedBatch, SharedPaths
from cobre.solver.program import StageProgram

Tables = TypeVar("Tables")


class Team:
    """Some ranks, their part of a split, and the tables that they fill together; a team of one has none.

    region: holds the tables. If other teams have several members, a team of one waits at its region too: all ranks of
    the world make the same calls.
    """

    def __init__(
        self,
        members: Sequence[int],
        rank: int,
        region: SharedRegion | None = None,
        tables: TeamTables | None = None,
        solutions: SolutionTables | None = None,
        nodes: TreeNodeTables | None = None,
    ) -> None:
        self.members = tuple(members)
        self.rank = rank
        self._region = region
        self._tables = tables
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
        if (tree := problem.tree) is not None:
            splits = [WorkSplit(len(tree.nodes(stage)), comm.size) for stage in range(problem.num_stages)]
            node_layout = TreeNodeLayout.of(problem, [_count_items(split, members) for split in splits])

            def make_nodes(region: SharedRegion) -> TreeNodeTables:
                return TreeNodeTables(region, node_layout, is_leader=memory.is_leader)

            region, nodes = _create_tables(comm, memory, members, node_layout.nbytes, make_nodes)
            return cls(members, comm.rank, region, nodes=nodes)
        layout = TeamLayout.of(problem, _count_items(split, members))

        def make_tables(region: SharedRegion) -> TeamTables:
            return TeamTables(region, layout, is_leader=memory.is_leader)

        return cls(members, comm.rank, *_create_tables(comm, memory, members, layout.nbytes, make_tables))

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
        """Form a team that simulates scenarios stage by stage; `split`: the largest set that it works on.

        A team of one if no memory is given. Collective: call on every rank.
        """
        if comm.size == 1 or memory is None:
            return cls.alone(comm.rank)
        members = ranks_sharing_memory(memory)
        layout = SolutionLayout.of(problem, _count_items(split, members), has_solution=has_solution)

        def make_tables(region: SharedRegion) -> SolutionTables:
            return SolutionTables(region, layout, is_leader=memory.is_leader)

        region, solutions = _create_tables(comm, memory, members, layout.nbytes, make_tables)
        return cls(members, comm.rank, region, solutions=solutions)

    def items(self, split: WorkSplit) -> Indices:
        """Return the team's items of a split: the blocks of its members, one after the other."""
        return np.concatenate([np.array(split.block(rank), np.int64) for rank in self.members])

    def own_rows(self, split: WorkSplit) -> slice:
        """Return the positions of this rank's block in `items`."""
        before = sum(len(split.block(rank)) for rank in self.members if rank < self.rank)
        return slice(before, before + len(split.block(self.rank)))

    def paths(self) -> SharedPaths | None:
        """Begin the forward pass and return its shared tables; None for a team of one."""
        return self._tables.paths() if self._tables else None

    def solves(self, count: int, dimension: int) -> SharedBatch | None:
        """Begin some solves; return tables for costs and gradients, None for a team of one."""
        return self._tables.batch(count, dimension) if self._tables else None

    def first_stage(self, count: int, *, has_bases: bool) -> SharedBatch | None:
        """Begin the solves of the lower bound; return tables for costs and perhaps bases, None for a team of one."""
        if self._tables is None:
            return None
        return self._tables.batch_with_bases(count) if has_bases else self._tables.batch(count, 0)

    def scenarios(self, program: StageProgram, count: int) -> SharedPaths | None:
        """Return shared tables for some scenarios at a stage; None for a team of one."""
        return self._solutions.paths(program, count) if self._solutions else None

    def wait(self, label: str) -> None:
        """Wait until all members have finished their units; this ends a job."""
        if self._region is not None:
            self._region.fence(label=label)

    def close(self) -> None:
        """Release the shared tables."""
        if self._region is not None:
            self._region.close()


def _count_items(split: WorkSplit, members: Sequence[int]) -> int:
    return sum(len(split.block(rank)) for rank in members)


def _create_tables(
    comm: Communicator,
    memory: SharedMemoryProvider,
    members: Sequence[int],
    nbytes: int,
    make: Callable[[SharedRegion], Tables],
) -> tuple[SharedRegion | None, Tables | None]:
    """Create the tables of a team in a region that has one size everywhere.

    A team of one has no tables. It has no region either if all teams of the world have one member.
    """
    largest = np.array([len(members), nbytes], np.int64)
    comm.allreduce(largest.copy(), largest, ReduceOp.MAX, label="teams")
    if largest[0] == 1:
        return None, None
    region = memory.create_shared_region(int(largest[1]), np.uint8, label="tables of the team")
    return region, None if len(members) == 1 else make(region)


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

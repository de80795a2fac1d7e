"""Ranks with one shared memory form a team: each takes the next unit of work from a counter in that memory.

Post-processing is still split into fixed blocks; only the solves are assigned dynamically, to whichever rank is free. A
solve is a pure function of its inputs, so this changes no bit.
"""

from collections.abc import Sequence

import numpy as np

from cobre.comm import Communicator, ReduceOp, SharedMemoryProvider, SharedRegion
from cobre.core.arrays import Indices
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks.visibility import ranks_sharing_memory
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.training.team_tables import (
    SolutionLayout,
    SolutionTables,
    TeamLayout,
    TeamTables,
    TreeNodeLayout,
    TreeNodeTables,
)
from cobre.sddp.tree.scenario_tree import ScenarioTree
from cobre.solver.batches import Outputs, SharedBatch, SharedPathBatch
from cobre.solver.program import StageProgram


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
        """A team of one rank."""
        return cls((rank,), rank)

    @classmethod
    def of(cls, comm: Communicator, memory: SharedMemoryProvider, problem: Problem, split: WorkSplit) -> "Team":
        """The ranks that share memory with this one; every rank must ask."""
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
    def for_solutions(
        cls,
        comm: Communicator,
        memory: SharedMemoryProvider | None,
        problem: Problem,
        split: WorkSplit,
        outputs: Outputs,
        solves_per_item: int = 1,
    ) -> "Team":
        """A team for solves of one stage after the other, with their solutions; `split`: the largest that it works on.

        A team of one where no memory is given.
        """
        if comm.size == 1 or memory is None:
            return cls.alone(comm.rank)
        members = ranks_sharing_memory(memory)
        layout = SolutionLayout.of(problem, solves_per_item * _share(split, members), outputs)
        region = _region(comm, memory, members, layout.nbytes)
        if region is None or len(members) == 1:
            return cls(members, comm.rank, region=region)
        tables = SolutionTables(region, layout, is_leader=memory.is_leader)
        return cls(members, comm.rank, region=region, solutions=tables)

    def indices(self, split: WorkSplit) -> Indices:
        """What of a split falls to the team: the blocks of its members, one after the other."""
        return np.concatenate([np.array(split.block(rank), np.int64) for rank in self.members])

    def own(self, split: WorkSplit) -> slice:
        """The positions of this rank's block in the team's share."""
        before = sum(len(split.block(rank)) for rank in self.members if rank < self.rank)
        return slice(before, before + len(split.block(self.rank)))

    def paths(self) -> SharedPathBatch | None:
        """Shared tables for the forward pass; None for a team of one."""
        return self._tables.paths() if self._tables else None

    def solves(self, count: int, dimension: int) -> SharedBatch | None:
        """Shared tables for costs and, unless `dimension` is 0, gradients of some solves; None for a team of one."""
        return self._tables.batch(count, dimension) if self._tables else None

    def solutions(self, program: StageProgram, count: int) -> SharedBatch | None:
        """Where costs, states and, where it is kept, the solution of some solves of a stage go."""
        return self._solutions.batch(program, count) if self._solutions else None

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
    """Room for the tables of every team, of one size everywhere; None where all ranks of the world are alone."""
    largest = np.array([len(members), nbytes], np.int64)
    comm.allreduce(largest.copy(), largest, ReduceOp.MAX, label="teams")
    if largest[0] == 1:
        return None
    return memory.create_shared_region(int(largest[1]), np.uint8, label="tables of the team")

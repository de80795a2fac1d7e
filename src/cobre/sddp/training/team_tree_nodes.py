"""The nodes of one stage of the scenario tree, as a team shares them out."""

from collections.abc import Iterator

import numpy as np

from cobre.core.arrays import Floats, Indices
from cobre.records import dataclass
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.training.context import TrainingContext
from cobre.solver.batches import Bases

LEAVES_PER_UNIT = 8  # of a team: a call of the solver for each leaf would cost more than its LP


@dataclass(frozen=True, slots=True)
class TeamTreeNodes:
    """Nodes of the scenario tree, of one stage, that fall to this rank's team. numbers: in the stage, from 0."""

    context: TrainingContext
    stage: int
    split: WorkSplit
    numbers: Indices

    @classmethod
    def of(cls, context: TrainingContext, stage: int, count: int) -> "TeamTreeNodes":
        """The team's share of a stage with `count` nodes."""
        split = WorkSplit(count, context.comm.size)
        return cls(context, stage, split, context.team.indices(split))

    def new_rows(self) -> Floats:
        """Numbers of each node, an intercept or cost beside an entry for each state; all members see them."""
        nodes = self.context.team.nodes
        shape = (len(self.numbers), 1 + self.context.problem.dimension)
        return np.zeros(shape) if nodes is None else nodes.rows(self.stage)

    def new_bases(self) -> Bases:
        """A table for one basis of each of the team's nodes, to be filled."""
        if (nodes := self.context.team.nodes) is not None:
            return nodes.bases(self.stage)
        none, count = Bases.none(self.context.problem.stages[self.stage].program), len(self.numbers)
        return Bases(np.zeros((count, none.status.shape[1]), np.int8), np.zeros((count, none.cuts.shape[1]), np.int32))

    def taken(self) -> Iterator[slice]:
        """Groups of the team's nodes that this rank takes: each is one call of the solver.

        A node has cuts of its own. Leaves have none and go together.
        """
        nodes, total = self.context.team.nodes, len(self.numbers)
        is_leaf = self.stage == self.context.problem.num_stages - 1
        width = 1 if not is_leaf else max(1, total) if nodes is None else LEAVES_PER_UNIT
        groups = [slice(first, min(first + width, total)) for first in range(0, total, width)]
        yield from groups if nodes is None else (groups[number] for number in nodes.taken(len(groups)))

    def gathered(self, rows: Floats, purpose: str) -> Floats:
        """The rows of all nodes of the stage, once all members have solved what they took."""
        self.context.team.wait(purpose)
        # A copy: who has all rows may begin the next job, whose results lie in the same memory.
        own = rows[self.context.team.own(self.split)].copy()
        return self.context.gather(self.split, own, purpose)

"""The chains of the lower bound, which are the same in every iteration."""

import numpy as np

from cobre.comm import Communicator
from cobre.core.arrays import Flags, Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.training.team import Team
from cobre.solver.batches import Bases, Chains

OPENINGS_PER_CHAIN = 5  # fixed, so that the bits do not depend on how many ranks or threads share the work


@dataclass(frozen=True, slots=True)
class LowerBoundPlan:
    """What is the same in every iteration: neighbouring openings of the first stage, a few in each chain.

    own: this rank's chains among those of the team. mask: chains x `OPENINGS_PER_CHAIN`, false where
    the last chain has no opening any more.
    """

    split: WorkSplit
    team: Team
    own: slice
    mask: Flags
    states: Floats
    start: Ints
    realisation_index: Ints

    @classmethod
    def of(cls, comm: Communicator, problem: Problem, team: Team) -> "LowerBoundPlan":
        """The chains of a rank's team."""
        opening = problem.openings[0]
        split = WorkSplit(-(-opening.count // OPENINGS_PER_CHAIN), comm.size)
        if problem.tree is not None:  # a root has one opening, and the team's tables are for nodes
            team = Team.alone(comm.rank)
        positions = _positions(team.indices(split), opening.count)
        lengths = (positions >= 0).sum(axis=1)
        return cls(
            split=split,
            team=team,
            own=team.own(split),
            mask=positions >= 0,
            states=np.tile(problem.initial_state, (len(positions), 1)),
            start=np.concatenate([[0], np.add.accumulate(lengths)]).astype(np.int32),
            realisation_index=opening.order[positions[positions >= 0]],
        )

    def chains(self, bases: Bases) -> Chains:
        """All of them start from the first of the bases, or from nothing."""
        index = np.full(len(self.states), 0 if len(bases.status) else -1, np.int32)
        return Chains(self.states, self.start, self.realisation_index, bases, index)


def _positions(numbers: Indices, openings: int) -> Indices:
    """Chains x OPENINGS_PER_CHAIN: positions in the order of openings; -1 beyond the last opening."""
    positions = OPENINGS_PER_CHAIN * numbers[:, None] + np.arange(OPENINGS_PER_CHAIN)
    return np.where(positions < openings, positions, -1)

"""Chains: which openings are solved one after the other, and which solve starts from which basis.

Along a chain each solve starts from the basis of the one before. Chains are the units that threads and ranks share, so
with few forward passes there must be many of them, and each costs a jump from where it starts to its first opening.
*Large* stages are those of `Problem.is_large`. Chains start

| in            | small stage                                      | large stage                                       |
|---------------|--------------------------------------------------|---------------------------------------------------|
| forward pass  | from the first path of the last iteration        | from the path's basis of the stage before;        |
|               |                                                  | the first stage from the nearest opening's basis  |
| backward pass | two chains from the sampled opening, whose basis | `StageBlocks`: from the optimum of the central    |
|               | the forward path has                             | opening, or the first opening of the first block  |
| lower bound   | five openings from the first path                | each opening from its basis of the last bound     |
| simulation    | from scenario 0, which starts cold               | from scenario 0, which carries its basis from     |
|               |                                                  | stage to stage                                    |
| tree          | forward pass and simulation: cold;               | forward pass: from the stage's first node;        |
|               | backward pass: from the node's forward basis     | simulation: from scenario 0; backward: likewise   |

A run starts cold in its first iteration. No basis depends on ranks or threads, and so no bit does.

In a large stage the openings of a trial point are split into blocks. How many depends only on the number of forward
passes and of openings. Which openings form a block follows from how much they differ: blocks are joined from single
openings where that saves most, as routes of vehicles are that all leave one depot. With many openings the depot is the
central one of the stage, from whose optimum all blocks of a trial point start. With few, whose jump to the centre would
weigh more, blocks leave the sampled opening, and start from the optimum of the first opening of the first block; a
single block leaves the sampled opening, too. In a small stage two chains go from the sampled opening to the wettest and
to the driest: its solves are cheaper than handing them to another thread.
"""

from dataclasses import field
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre._native import OpeningBlocks, opening_blocks, opening_distances
from cobre.comm import Communicator
from cobre.core.arrays import Flags, Floats, Ints
from cobre.records import dataclass
from cobre.sddp.problem.openings import StageOpenings
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.team import Team
from cobre.solver.batches import Bases, Chains, Realisations

# (forward passes, blocks): most blocks up to that number of passes. With 20 openings 8 blocks take 13 to 22 % more work
# than one, and 4 take 7 %; two chains to the wettest and to the driest opening take 12 % more.
BLOCKS_BY_PASSES = ((32, 8), (256, 4), (1024, 2))
# Up to this number of passes a thread may get a single block, and all blocks have one size. With more passes, long
# blocks are solved first, and short ones keep threads busy until the last one ends.
PASSES_OF_EVEN_BLOCKS = 32
MIN_OPENINGS_PER_BLOCK = 2.5  # on average; shorter blocks are mostly jumps
# From this number of openings on blocks leave the central one. With 20 openings that takes 3 to 9 % fewer pivots than
# to leave the sampled one, with 10 it takes 6 % more; nothing between was measured.
MIN_OPENINGS_AROUND_CENTRE = 16


def number_of_blocks(forward_passes: int, openings: int) -> int:
    """Return the number of blocks that the openings of a trial point of a large stage are split into."""
    blocks = next((most for passes, most in BLOCKS_BY_PASSES if forward_passes <= passes), 1)
    return max(1, min(blocks, int(openings / MIN_OPENINGS_PER_BLOCK)))


def block_limits(forward_passes: int, openings: int) -> Ints:
    """Return the size limit of each block, the longest first: all the same, or in the ratio of 4 : 3 : 2 : 1."""
    blocks = number_of_blocks(forward_passes, openings)
    is_even = forward_passes <= PASSES_OF_EVEN_BLOCKS
    parts = np.ones(blocks, np.int64) if is_even else np.arange(blocks, 0, -1)
    limits: Ints = (-(-openings * parts // parts.sum())).astype(np.int32)  # rounded up
    return limits


@dataclass(frozen=True, slots=True)
class StageBlocks:
    """The blocks of one large stage, by the opening that they leave; computed when they are first needed."""

    openings: StageOpenings
    limits: Ints  # by block: how many openings it may have
    noise: Floats  # openings x components: inflows, loads and availabilities
    distances: Floats  # openings x openings
    blocks: dict[int, OpeningBlocks] = field(default_factory=dict)

    @classmethod
    def of(cls, openings: StageOpenings, limits: Ints) -> "StageBlocks":
        """Measure the distances between the openings of a stage."""
        noise = _as_table(openings.realisations)
        return cls(openings, limits, noise, opening_distances(noise, noise))

    def positions(self, sampled: Realisations, realisation_index: Ints) -> Ints:
        """Return the position, in the order of openings, of the one nearest to each path's realisation."""
        if sampled is self.openings.realisations:
            return self.openings.position[realisation_index]
        distances = opening_distances(self.noise, _as_table(sampled.take(realisation_index)))
        nearest: Ints = self.openings.position[distances.argmin(axis=1)]
        return nearest

    def chains(self, states: Floats, bases: Bases, positions: Ints) -> Chains:
        """Return chains, one for each trial point and block of openings; results by trial point and opening."""
        points, openings, num_blocks = len(positions), self.openings.count, len(self.limits)
        first: Ints | None = None
        if num_blocks > 1 and openings >= MIN_OPENINGS_AROUND_CENTRE:
            by_point = [self._blocks_from(self.centre)] * points
            first = np.full(points, self.centre, np.int32)
        else:
            by_point = [self._blocks_from(int(opening)) for opening in self.openings.order[positions]]
            if num_blocks > 1:
                first = np.array([blocks.order[0] for blocks in by_point], np.int32)
        order = np.array([blocks.order for blocks in by_point], np.int32).reshape(points, openings)
        sizes = np.array([blocks.sizes for blocks in by_point], np.int32).reshape(points * num_blocks)
        start = np.concatenate([np.zeros(1, np.int32), np.add.accumulate(sizes, dtype=np.int32)])
        basis_index = np.repeat(np.arange(points, dtype=np.int32), num_blocks)
        result_index = (np.arange(points, dtype=np.int32)[:, None] * np.int32(openings) + order).reshape(-1)
        noise = self.openings.realisations
        return Chains(states, start, noise, order.reshape(-1), bases, basis_index, result_index, num_blocks, first)

    @property
    def centre(self) -> int:
        """The opening with the shortest distances to all others."""
        return int(np.add.accumulate(self.distances, axis=1)[:, -1].argmin())

    def order_from(self, opening: int) -> Ints:
        """Return all openings, block by block, with the first block from an opening on."""
        order: Ints = np.array(self._blocks_from(opening).order, np.int32)
        return order

    def _blocks_from(self, opening: int) -> OpeningBlocks:
        if opening not in self.blocks:
            self.blocks[opening] = opening_blocks(self.distances, opening, self.limits)
        return self.blocks[opening]


class BackwardChains:
    """The chains of all stages of a problem, for one number of forward passes."""

    def __init__(self, problem: Problem, forward_passes: int) -> None:
        self._problem = problem
        self._passes = forward_passes
        self._blocks: dict[int, StageBlocks] = {}  # by large stage

    def blocks(self, stage: int) -> int:
        """Return the number of blocks for the openings of a trial point; 1 in a small stage."""
        problem = self._problem
        return number_of_blocks(self._passes, problem.openings[stage].count) if problem.is_large(stage) else 1

    def positions(self, stage: int, sampled: Realisations, realisation_index: Ints) -> Ints:
        """Return the position, in the order of openings, of the one nearest to each path's sampled realisation."""
        return self._openings(stage).positions(sampled, realisation_index)

    def chains(self, stage: int, states: Floats, bases: Bases, positions: Ints) -> Chains:
        """Return chains, one for each trial point and block of openings.

        bases: by trial point, optimal for the realisation at its position.
        """
        return self._openings(stage).chains(states, bases, positions)

    def _openings(self, stage: int) -> StageBlocks | StageOpenings:
        openings = self._problem.openings[stage]
        if not self._problem.is_large(stage):
            return openings
        if stage not in self._blocks:
            self._blocks[stage] = StageBlocks.of(openings, block_limits(self._passes, openings.count))
        return self._blocks[stage]


def _as_table(noise: Realisations) -> Floats:
    table: Floats = np.concatenate([noise.inflow_m3s, noise.load_mw, noise.availability], axis=1)
    return np.ascontiguousarray(table)


OPENINGS_PER_CHAIN = 5  # fixed, so that the bits do not depend on how many ranks or threads share the work


@dataclass(frozen=True, slots=True)
class FirstStageSplit:
    """The split of the first stage's openings over teams, in chains of some neighbours each.

    work: split of the chains over ranks. own_rows: this rank's chains among the team's. mask: chains x openings of a
    chain, false if the last chain has no more openings. order: all openings, chain by chain. start and
    realisation_index: as in `Chains`.
    """

    work: WorkSplit
    team: Team
    own_rows: slice
    mask: Flags
    order: Ints
    state: Floats
    start: Ints
    realisations: Realisations
    realisation_index: Ints

    @classmethod
    def of(cls, comm: Communicator, problem: Problem, team: Team, openings_per_chain: int) -> "FirstStageSplit":
        """Return the chains of a rank's team."""
        opening = problem.openings[0]
        work = WorkSplit(-(-opening.count // openings_per_chain), comm.size)
        if problem.tree is not None:  # a root has one opening, and the team's tables are for nodes
            team = Team.alone(comm.rank)
        order = opening.order
        if problem.is_large(0) and openings_per_chain > 1:
            order = StageBlocks.of(opening, np.array([opening.count], np.int32)).order_from(int(order[0]))
        positions = openings_per_chain * team.items(work)[:, None] + np.arange(openings_per_chain)
        positions = np.where(positions < opening.count, positions, -1)
        lengths = (positions >= 0).sum(axis=1)
        return cls(
            work=work,
            team=team,
            own_rows=team.own_rows(work),
            mask=positions >= 0,
            order=order,
            state=problem.initial_state[None],
            start=np.concatenate([[0], np.add.accumulate(lengths)]).astype(np.int32),
            realisations=opening.realisations,
            realisation_index=order[positions[positions >= 0]],
        )

    def from_stage_basis(self, bases: Bases) -> Chains:
        """Return the chains, all starting from the first of the bases, or cold if there are none.

        In a large stage they start from the optimum of the first opening, which is the same on every rank.
        """
        chains = len(self.mask)
        index = np.full(chains, 0 if len(bases.status) else -1, np.int32)
        state, chains_per_point = (self.state, chains) if chains else (self.state[:0], 1)
        return Chains(
            state,
            self.start,
            self.realisations,
            self.realisation_index,
            bases,
            index,
            chains_per_point=chains_per_point,
            first_realisation=self.order[: len(state)],
        )

    def from_opening_bases(self, bases: Bases) -> Chains:
        """Return chains of a single opening each, which starts from its own basis."""
        states = np.tile(self.state, (len(self.mask), 1))
        index = self.realisation_index
        return Chains(states, self.start, self.realisations, index, bases, index)

    def by_chain(self, results: NDArray[Any]) -> NDArray[Any]:
        """Arrange results of the team's openings in one row for each chain, with zeros after the last opening."""
        rows = np.zeros((*self.mask.shape, *results.shape[1:]), results.dtype)
        rows[self.mask] = results
        return rows.reshape(len(rows), prod(rows.shape[1:]))

    def by_opening(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Arrange the rows of all ranks' chains, as `by_chain` returns them, in one row for each opening."""
        openings = len(self.order)
        table = rows.reshape(rows.shape[0] * self.mask.shape[1], -1)[:openings]
        ordered = np.empty_like(table)
        ordered[self.order] = table
        return ordered


class FirstStageChains:
    """The chains of the lower bound, for a rank's team.

    keeps_bases: the optimal basis of every opening is kept for the next lower bound.
    """

    def __init__(self, comm: Communicator, problem: Problem, team: Team) -> None:
        self.keeps_bases = problem.is_large(0) and problem.tree is None
        self._split = cache(partial(FirstStageSplit.of, comm, problem, team))

    def chains(self, stage_basis: Bases, opening_bases: Bases | None) -> tuple[FirstStageSplit, Chains]:
        """Return the split of the openings and the team's chains: of single openings once each has a basis."""
        if opening_bases is None:
            split = self._split(OPENINGS_PER_CHAIN)
            return split, split.from_stage_basis(stage_basis)
        split = self._split(1)
        return split, split.from_opening_bases(opening_bases)

"""State of a training run; everything in it is the same on all ranks unless it says `own`."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from math import prod
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.core.arrays import Flags, Floats, Indices, Ints
from cobre.core.bounds import UpperBound
from cobre.core.policy_cost import CostSample
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import WorkSplit, gather_rows
from cobre.sddp.records import Phase, TrialPoints
from cobre.sddp.stage_solve import NameFailure, StageSolve, sampled, solve_paths, solve_stage
from cobre.sddp.team import Team
from cobre.sddp.training.opening_blocks import BackwardChains, StageBlocks
from cobre.sddp.training.risk_draws import RiskDraws
from cobre.sddp.training.visited_states import SelectionStates, VisitedStates
from cobre.solver.batches import (
    Bases,
    Batch,
    Chains,
    FailedInputs,
    LpSolver,
    Outputs,
    PathBatch,
    PathOutputs,
    Realisations,
    SolveStatistics,
    Step,
    Work,
    numbers_of,
)

# How many bytes ranks exchange in an iteration, by purpose.

# What no way of sharing the work can do without: what each path costs, each cut, and the states that selection reads.
NEEDED = frozenset({"path costs", "cuts", "trial states"})


class Traffic:
    """Bytes that one rank makes and the others read, each counted once however many ranks read it.

    A byte goes to every other rank, or once to every other node where ranks of a node share memory. With one rank there
    is none.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._bytes: dict[str, int] = {}

    def add(self, purpose: str, nbytes: int) -> None:
        """Count the bytes that all ranks together exchanged for a purpose."""
        if self._size > 1:
            self._bytes[purpose] = self._bytes.get(purpose, 0) + nbytes

    @property
    def by_purpose(self) -> Mapping[str, int]:
        """Bytes by purpose, in the order in which purposes first occurred."""
        return dict(self._bytes)


def total_traffic(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add the traffic of several iterations by purpose."""
    total: dict[str, int] = {}
    for part in parts:
        for purpose, nbytes in part.items():
            total[purpose] = total.get(purpose, 0) + nbytes
    return total


def least_traffic(exchanged: Mapping[str, int]) -> int:
    """Return how many of the exchanged bytes the method needs however work is split."""
    return sum(nbytes for purpose, nbytes in exchanged.items() if purpose in NEEDED)


# The chains of the lower bound.

OPENINGS_PER_CHAIN = 5  # fixed, so that the bits do not depend on how many ranks or threads share the work


@dataclass(frozen=True, slots=True)
class LowerBoundPlan:
    """Chains of the lower bound: a few neighbouring openings of the first stage each, or a single one.

    own: this rank's chains among those of the team. order: the openings, chain by chain. mask: chains x openings of a
    chain, false where the last chain has no more openings.
    """

    split: WorkSplit
    team: Team
    own: slice
    mask: Flags
    order: Ints
    state: Floats
    start: Ints
    realisations: Realisations
    realisation_index: Ints

    @classmethod
    def of(cls, comm: Communicator, problem: Problem, team: Team, chain: int = OPENINGS_PER_CHAIN) -> "LowerBoundPlan":
        """Plan the chains of a rank's team, with so many openings each."""
        opening = problem.openings[0]
        split = WorkSplit(-(-opening.count // chain), comm.size)
        if problem.tree is not None:  # a root has one opening, and the team's tables are for nodes
            team = Team.alone(comm.rank)
        order = opening.order
        if problem.is_large(0) and chain > 1:
            order = StageBlocks.of(opening, np.array([opening.count], np.int32)).order_from(int(order[0]))
        positions = chain * team.indices(split)[:, None] + np.arange(chain)
        positions = np.where(positions < opening.count, positions, -1)
        lengths = (positions >= 0).sum(axis=1)
        return cls(
            split=split,
            team=team,
            own=team.own(split),
            mask=positions >= 0,
            order=order,
            state=problem.initial_state[None],
            start=np.concatenate([[0], np.add.accumulate(lengths)]).astype(np.int32),
            realisations=opening.realisations,
            realisation_index=order[positions[positions >= 0]],
        )

    def chains(self, bases: Bases, own: Bases | None = None) -> Chains:
        """Return the chains; all start from the first of the bases, or cold without any.

        In a large stage they start from the optimum of the first opening, on every rank of the same one. own: a basis
        for each opening, from which chains of a single one start.
        """
        chains = len(self.mask)
        if own is not None:
            states = np.tile(self.state, (chains, 1))
            return Chains(states, self.start, self.realisations, self.realisation_index, own, self.realisation_index)
        index = np.full(chains, 0 if len(bases.status) else -1, np.int32)
        points = (self.state, chains) if chains else (self.state[:0], 1)
        first = self.order[: len(points[0])]
        return Chains(
            points[0],
            self.start,
            self.realisations,
            self.realisation_index,
            bases,
            index,
            chains_per_point=points[1],
            first_realisation=first,
        )

    def by_chain(self, found: NDArray[Any]) -> NDArray[Any]:
        """Return rows of the team's openings chain by chain, one row for each; zeros beyond the last opening."""
        rows = np.zeros((*self.mask.shape, *found.shape[1:]), found.dtype)
        rows[self.mask] = found
        return rows.reshape(len(rows), prod(rows.shape[1:]))

    def by_opening(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return what `by_chain` made, of all ranks, by opening."""
        opening = len(self.order)
        table = rows.reshape(rows.shape[0] * self.mask.shape[1], -1)[:opening]
        ordered = np.empty_like(table)
        ordered[self.order] = table
        return ordered


NO_WORK = tuple(SolveStatistics().numbers)


@dataclass
class SolveCounter:
    """Statistics of the solver on this rank in one iteration; plain numbers, because a stage may take a millisecond."""

    sums: dict[Phase, tuple[float, ...]] = field(default_factory=dict)

    def add(self, phase: Phase, work: Work) -> None:
        """Add what one call of the solver did."""
        done = numbers_of(work)
        self.sums[phase] = tuple(map(add, self.sums[phase], done)) if phase in self.sums else done

    @property
    def numbers(self) -> list[float]:
        """Statistics by phase, as `records.from_numbers` reads them."""
        return [number for phase in Phase for number in self.sums.get(phase, NO_WORK)]

    @property
    def total(self) -> SolveStatistics:
        """Statistics of all phases together."""
        return SolveStatistics.from_numbers(
            [sum(column) for column in zip(*self.sums.values(), strict=True)] or NO_WORK
        )


@dataclass(frozen=True, slots=True)
class IterationMark:
    """State to restore when the next iteration is dropped: everything that an iteration changes."""

    cuts: int
    active: NDArray[np.uint8]
    bases: list[Bases]
    bound_bases: Bases | None
    states_added: int
    chances: list[Floats] | None
    upper_bound: UpperBound | None


@dataclass
class TrainingContext:
    """Everything that the steps of a training run read and change."""

    comm: Communicator
    problem: Problem
    solver: LpSolver
    sampler: Sampler
    pool: CutPool
    split: WorkSplit
    team: Team  # the ranks that solve together with this one
    bases: list[Bases]  # by stage: where paths start, one basis or none
    selection_states: SelectionStates = field(default_factory=SelectionStates)
    state_window: int | None = None  # latest iterations whose states cut selection reads; None: all
    risk_draws: RiskDraws | None = None  # of forward paths by the weights of the risk measure, where some are
    keeps_states: bool = False  # trial points are wanted for their own sake, with all their entries
    bound_bases: Bases | None = None  # by opening of a large first stage: optimal in the last lower bound
    reads_first_stage: bool = False  # a stopping rule reads the state at the end of the first stage
    upper_bound: UpperBound | None = None  # of the last iteration, where a stopping rule wanted one
    failure_folder: Path | None = None  # where an LP goes that cannot be solved
    counter: SolveCounter = field(default_factory=SolveCounter)
    traffic: Traffic = field(init=False)
    visited: VisitedStates = field(init=False)  # filled only where cut selection or an export reads them
    began: float = field(default_factory=time.monotonic)
    team_paths: Indices = field(init=False)  # the forward passes of this rank and those of its team
    own: slice = field(init=False)  # positions of its own ones among these
    lower_bound_plan: LowerBoundPlan = field(init=False)
    own_start_plan: LowerBoundPlan = field(init=False)  # where openings have bases of their own to start from
    backward_chains: BackwardChains = field(init=False)
    carried_from: dict[int, Ints | None] = field(default_factory=dict)  # by stage: where statuses of bases come from

    def __post_init__(self) -> None:
        self.team_paths = self.team.indices(self.split)
        self.own = self.team.own(self.split)
        self.lower_bound_plan = LowerBoundPlan.of(self.comm, self.problem, self.team)
        self.own_start_plan = LowerBoundPlan.of(self.comm, self.problem, self.team, 1)
        self.backward_chains = BackwardChains(self.problem, self.split.total)
        self.visited = VisitedStates(self.pool, keeps_all=self.keeps_states, window=self.state_window)
        self.start_counting()

    def start_counting(self) -> None:
        """Set the counts of solves and bytes back to zero, at the beginning of an iteration."""
        self.counter = SolveCounter()
        self.traffic = Traffic(self.comm.size)

    def mark(self) -> IterationMark:
        """Remember where the run is, between two iterations."""
        chances = None if self.risk_draws is None else list(self.risk_draws.chances)
        active, added = self.pool.active.copy(), self.visited.times_added
        return IterationMark(self.pool.count, active, self.bases, self.bound_bases, added, chances, self.upper_bound)

    def go_back_to(self, mark: IterationMark) -> None:
        """Forget the iteration that was begun after `mark`. Its cuts and states stay in memory and are overwritten."""
        self.pool.forget_slots(mark.cuts, mark.active)
        self.bases, self.bound_bases, self.upper_bound = mark.bases, mark.bound_bases, mark.upper_bound
        if self.risk_draws is not None and mark.chances is not None:
            self.risk_draws.chances[:] = mark.chances
        if self.visited.times_added > mark.states_added:
            self.visited.forget_last()

    def gather(self, split: WorkSplit, own: NDArray[Any], purpose: str) -> NDArray[Any]:
        """Gather the rows of all ranks in the order of the split, counted as traffic under `purpose`."""
        table = gather_rows(self.comm, split, own, purpose)
        self.traffic.add(purpose, table.nbytes)
        return table

    def step(self, iteration: int, stage: int) -> Step:
        """Return the forward step of one stage for the team's paths."""
        noise, realisation_index = sampled(self.problem, self.sampler, iteration, self.team_paths, stage)
        if (draws := self.risk_draws) is not None:
            noise, realisation_index = draws.mixed(iteration, self.team_paths, stage, (noise, realisation_index))
        if stage == 0 and (bases := self.bound_bases) is not None:
            positions = self.backward_chains.positions(stage, noise, realisation_index)
            nearest = self.problem.openings[stage].order[positions]
            return Step(stage, self.pool.rows(stage), noise, realisation_index, bases, basis_index=nearest)
        carries_basis = self.problem.carries_basis(stage)
        if carries_basis and stage not in self.carried_from:
            self.carried_from[stage] = self.problem.carried_from(stage)
        carried = (carries_basis, self.carried_from.get(stage))
        return Step(stage, self.pool.rows(stage), noise, realisation_index, self.bases[stage], *carried)

    @property
    def samples_policy_cost(self) -> bool:
        """Whether some paths tell what the policy costs: drawn by weight, or from openings that count alike."""
        return self.risk_draws is not None or (self.problem.is_risk_neutral and self.sampler.is_representative)

    def drawn_openings(self, step: Step) -> Indices:
        """Return, by path of the team, the opening that it draws in a step; -1 where its noise is not an opening."""
        opening, index = self.problem.openings[step.stage], step.realisation_index.astype(np.int64)
        if step.realisations is opening.realisations:
            return index
        first = len(step.realisations.inflow_m3s) - opening.count  # `RiskDraws.mixed` puts openings last
        return np.where(index >= first, index - first, -1)

    def solve(self, phase: Phase, iteration: int, work: StageSolve) -> Batch:
        """Solve chains of a stage under the present policy, counted in a phase."""
        batch = solve_stage(self, work, self._failure_namer(phase, iteration, work.chains.chains_per_point))
        self.counter.add(phase, batch)
        return batch

    def solve_paths(
        self, phase: Phase, iteration: int, steps: Sequence[Step], states: Floats, out: PathOutputs
    ) -> PathBatch:
        """Take paths (rows of `states`) through some stages under the present policy, counted in a phase."""
        batch = solve_paths(self, steps, states, out, self._failure_namer(phase, iteration))
        self.counter.add(phase, batch)
        return batch

    def _failure_namer(self, phase: Phase, iteration: int, chains_per_point: int = 1) -> NameFailure:
        def name_failure(inputs: FailedInputs) -> tuple[str, str]:
            where = f"iteration {iteration}, {self._trial_point(phase, inputs.chain // chains_per_point)}"
            return where, f"iteration{iteration}-stage{inputs.stage}-rank{self.comm.rank}"

        return name_failure

    def _trial_point(self, phase: Phase, number: int) -> str:
        """Name a trial point in messages; a forward pass has the same number on any rank."""
        if phase in (Phase.FORWARD, Phase.BACKWARD) and self.problem.tree is None:
            return f"trial point {self.team_paths[number]}"
        return f"trial point {number} of rank {self.comm.rank}"

    def basis_from(self, bases: Bases) -> Bases:
        """Copy the first basis; a rank without paths gets an empty one, to receive it from another rank."""
        if not len(bases.status):
            widths = bases.status.shape[1], bases.cuts.shape[1]
            return Bases(np.zeros((1, widths[0]), np.int8), np.full((1, widths[1]), -1, np.int32))
        return Bases(bases.status[:1].copy(), bases.cuts[:1].copy())


# The lower bound: the risk-adjusted cost of the first stage over all its openings.


def lower_bound(context: TrainingContext, iteration: int) -> float:
    """Return the lower bound in $, with all cuts that were ever made, also those that selection deactivated."""
    return lower_bound_of(context, first_stage_costs(context, iteration))


def lower_bound_of(context: TrainingContext, costs: Floats) -> float:
    """Return the risk of the costs of the first stage's openings (1 x openings, scaled), in $."""
    problem = context.problem
    return float(weighted(problem.risk[0].weights(costs), costs)[0]) * problem.cost_scale


def first_stage_costs(context: TrainingContext, iteration: int) -> Floats:
    """Solve the first stage for each of its openings with all cuts; return scaled costs, 1 x openings."""
    plan = context.lower_bound_plan if context.bound_bases is None else context.own_start_plan
    keeps_bases = context.problem.is_large(0) and context.problem.tree is None
    count = len(plan.realisation_index)
    shared = plan.team.bound(count) if keeps_bases else plan.team.solves(count, 0)
    chains = plan.chains(context.bases[0], context.bound_bases)
    work = StageSolve(0, chains, Outputs(basis=keeps_bases, shared=shared), all_cuts=True)
    batch = context.solve(Phase.LOWER_BOUND, iteration, work)
    plan.team.wait("lower bound")
    if keeps_bases:
        tables = (batch.basis_status, batch.basis_cuts)
        context.bound_bases = Bases(*(_of_all_openings(context, plan, table) for table in tables))
    # The gathering ends the job: no member begins another one before all have read the tables.
    table = context.gather(plan.split, plan.by_chain(batch.objective)[plan.own], "lower bound")
    return np.ascontiguousarray(plan.by_opening(table).T)


def _of_all_openings(context: TrainingContext, plan: LowerBoundPlan, found: NDArray[Any]) -> NDArray[Any]:
    """Return rows of the team's openings by opening, with those of other teams; in memory of this rank's own."""
    rows = plan.by_chain(found)
    if len(plan.team.members) < context.comm.size:
        rows = context.gather(plan.split, rows[plan.own], "bases of the lower bound")
    return plan.by_opening(rows)


def expected_first_stage_end(context: TrainingContext, iteration: int) -> tuple[float, ...] | None:
    """Return the mean over openings of the state at the end of the first stage, with all cuts; None but on rank 0.

    Rank 0 solves the first stage once more for this, without the others.
    """
    if context.comm.rank != 0:
        return None
    problem, opening = context.problem, context.problem.openings[0]
    states = np.tile(problem.initial_state, (opening.count, 1))
    numbers = np.arange(opening.count, dtype=np.int32)
    chains = Chains.single(states, opening.realisations, numbers, context.bases[0])
    if (bases := context.bound_bases) is not None:  # optimal, as `first_stage_costs` has left them
        chains = Chains(states, chains.start, opening.realisations, numbers, bases, numbers)
    batch = context.solve(Phase.LOWER_BOUND, iteration, StageSolve(0, chains, Outputs(), all_cuts=True))
    ends = problem.stages[0].program.next_states(states, batch.decided, batch.inflow)
    return tuple((np.add.accumulate(ends, axis=0)[-1] / opening.count).tolist())


# Measures where the time of an iteration goes.


class Clock:
    """Wall seconds of this rank by phase, and of each piece of work between two exchanges."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self.seconds = dict.fromkeys(("forward", "backward", "bound", "exchange"), 0.0)
        self.work: list[float] = []

    def lap(self, phase: str) -> None:
        """Count the time since the last lap under this phase."""
        now = time.monotonic()
        elapsed, self._last = now - self._last, now
        self.seconds[phase] += elapsed
        if phase != "exchange":
            self.work.append(elapsed)


# The results of one iteration, before they become a record of the history.


@dataclass(frozen=True, slots=True)
class IterationResult:
    """Bounds and costs of an iteration; costs are those of all ranks' paths."""

    iteration: int
    lower_bound: float
    costs: Floats
    clock: Clock
    exact: float | None = None  # what the policy costs in $, where all paths took part
    trial_points: TrialPoints | None = None
    cost_sample: CostSample | None = None  # of the policy that the forward pass followed
    first_stage_end: tuple[float, ...] | None = None  # on rank 0, where a stopping rule reads it

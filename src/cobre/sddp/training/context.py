"""What a training run carries from step to step; everything in it is the same on all ranks unless it says `own`."""

import time
from dataclasses import field
from operator import add
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.core.arrays import Floats, Indices
from cobre.records import dataclass
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.records.phases import Phase
from cobre.sddp.records.upper_bound import UpperBound
from cobre.sddp.stage_simulation import sampled
from cobre.sddp.stage_solve import StageSolve, solve_stage
from cobre.sddp.training.exchange import gather_rows
from cobre.sddp.training.lower_bound_plan import LowerBoundPlan
from cobre.sddp.training.opening_blocks import BackwardChains
from cobre.sddp.training.risk_draws import RiskDraws
from cobre.sddp.training.selection import SelectionStates
from cobre.sddp.training.team import Team
from cobre.sddp.training.traffic import Traffic
from cobre.sddp.training.visited import VisitedStates
from cobre.solver.batches import (
    Bases,
    Batch,
    LpSolver,
    Step,
    Work,
)
from cobre.solver.statistics import SolveStatistics, numbers_of

NO_WORK = tuple(SolveStatistics().numbers)


@dataclass
class SolveCounter:
    """What the solver did on this rank in one iteration; plain numbers, because a stage may take a millisecond."""

    sums: dict[Phase, tuple[float, ...]] = field(default_factory=dict)

    def add(self, phase: Phase, work: Work) -> None:
        """Add what one call of the solver did."""
        done = numbers_of(work)
        self.sums[phase] = tuple(map(add, self.sums[phase], done)) if phase in self.sums else done

    @property
    def numbers(self) -> list[float]:
        """What was solved in each phase, as `phases.from_numbers` reads it."""
        return [number for phase in Phase for number in self.sums.get(phase, NO_WORK)]

    @property
    def total(self) -> SolveStatistics:
        """What was solved in all phases together."""
        return SolveStatistics.from_numbers(
            [sum(column) for column in zip(*self.sums.values(), strict=True)] or NO_WORK
        )


@dataclass(frozen=True, slots=True)
class IterationMark:
    """What a run can go back to when the next iteration is dropped: what that one changes, as it was before it."""

    cuts: int
    active: NDArray[np.uint8]
    bases: list[Bases]
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
    upper_bound: UpperBound | None = None  # of the last iteration, where a stopping rule wanted one
    failure_folder: Path | None = None  # where an LP goes that cannot be solved
    counter: SolveCounter = field(default_factory=SolveCounter)
    traffic: Traffic = field(init=False)
    visited: VisitedStates = field(init=False)  # filled only where cut selection or an export reads them
    began: float = field(default_factory=time.monotonic)
    team_paths: Indices = field(init=False)  # the forward passes of this rank and those of its team
    own: slice = field(init=False)  # where in these its own ones lie
    lower_bound_plan: LowerBoundPlan = field(init=False)
    backward_chains: BackwardChains = field(init=False)

    def __post_init__(self) -> None:
        self.team_paths = self.team.indices(self.split)
        self.own = self.team.own(self.split)
        self.lower_bound_plan = LowerBoundPlan.of(self.comm, self.problem, self.team)
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
        return IterationMark(self.pool.count, active, self.bases, added, chances, self.upper_bound)

    def go_back_to(self, mark: IterationMark) -> None:
        """Forget the iteration that was begun after `mark`. Cuts and states in memory are overwritten by none."""
        self.pool.forget_slots(mark.cuts, mark.active)
        self.bases, self.upper_bound = mark.bases, mark.upper_bound
        if self.risk_draws is not None and mark.chances is not None:
            self.risk_draws.chances[:] = mark.chances
        if self.visited.times_added > mark.states_added:
            self.visited.forget_last()

    def gather(self, split: WorkSplit, own: Floats, purpose: str) -> Floats:
        """The rows of all ranks, in the order of the split; counted as traffic under `purpose`."""
        table = gather_rows(self.comm, split, own, purpose)
        self.traffic.add(purpose, table.nbytes)
        return table

    def step(self, iteration: int, stage: int) -> Step:
        """A stage on the way of the team's paths."""
        noise, realisation_index = sampled(self.problem, self.sampler, iteration, self.team_paths, stage)
        if (draws := self.risk_draws) is not None:
            noise, realisation_index = draws.mixed(iteration, self.team_paths, stage, (noise, realisation_index))
        carries_basis = self.problem.carries_basis(stage)
        return Step(stage, self.pool.rows(stage), noise, realisation_index, self.bases[stage], carries_basis)

    @property
    def samples_policy_cost(self) -> bool:
        """Whether some paths tell what the policy costs: drawn by weight, or from openings that count alike."""
        return self.risk_draws is not None or (self.problem.is_risk_neutral and self.sampler.is_in_sample)

    def drawn_openings(self, step: Step) -> Indices:
        """By path of the team: the opening that it draws in a step, -1 where its noise is none."""
        opening, index = self.problem.openings[step.stage], step.realisation_index.astype(np.int64)
        if step.realisations is opening.realisations:
            return index
        first = len(step.realisations.inflow_m3s) - opening.count  # `RiskDraws.mixed` puts openings last
        return np.where(index >= first, index - first, -1)

    def solve(self, phase: Phase, iteration: int, work: StageSolve) -> Batch:
        """Solve chains of a stage under the present policy, counted in a phase."""

        def name_failure(chain: int) -> tuple[str, str]:
            where = f"iteration {iteration}, {self._trial_point(phase, chain // work.chains.chains_per_point)}"
            return where, f"iteration{iteration}-stage{work.stage}-rank{self.comm.rank}"

        batch = solve_stage(self, work, name_failure)
        self.counter.add(phase, batch)
        return batch

    def _trial_point(self, phase: Phase, number: int) -> str:
        """The name of a trial point in messages; a forward pass has the same number on any rank."""
        if phase in (Phase.FORWARD, Phase.BACKWARD) and self.problem.tree is None:
            return f"trial point {self.team_paths[number]}"
        return f"trial point {number} of rank {self.comm.rank}"

    def basis_from(self, bases: Bases) -> Bases:
        """A copy of the first basis; a rank without paths gets an empty one, to receive it from another rank."""
        if not len(bases.status):
            widths = bases.status.shape[1], bases.cuts.shape[1]
            return Bases(np.zeros((1, widths[0]), np.int8), np.full((1, widths[1]), -1, np.int32))
        return Bases(bases.status[:1].copy(), bases.cuts[:1].copy())

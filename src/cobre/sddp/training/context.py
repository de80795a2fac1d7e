"""The context of a training run: what is fixed for the run, and the state that its iterations change.

Everything is the same on all ranks, except where a description says that it belongs to a rank or to its team.
"""

import time
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.core.arrays import Floats, Indices, Ints
from cobre.core.bounds import UpperBound
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.iteration_records import IterationMeter, Phase
from cobre.sddp.lp.failure import FailedSolve, StageFailedError
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import WorkSplit, gather_rows
from cobre.sddp.team import Team
from cobre.sddp.training.chains import BackwardChains, FirstStageChains
from cobre.sddp.training.risk_draws import RiskDraws
from cobre.sddp.training.select_cuts import SelectionStates
from cobre.sddp.training.visited_states import VisitedStates
from cobre.solver.batches import (
    Bases,
    Batch,
    Chains,
    LpSolver,
    Outputs,
    PathBatch,
    PathOutputs,
    Realisations,
    SolveFailedError,
    Step,
)


@dataclass(frozen=True, slots=True)
class StateMark:
    """A copy of the state between two iterations, as far as it is not append-only."""

    cuts: int
    active: NDArray[np.uint8]
    bases: list[Bases]
    first_stage_bases: Bases | None
    states_added: int
    sampling_probabilities: list[Floats] | None
    upper_bound: UpperBound | None


@dataclass
class TrainingState:
    """Everything that an iteration changes; checkpoints store all of it but `selection_states` and `upper_bound`.

    bases: by stage, the basis that forward paths start from; none before the first iteration. first_stage_bases: by
    opening of a large first stage, optimal in the last lower bound. risk_draws: if forward paths are drawn by the
    weights of the risk measure. upper_bound: of the last iteration, if a stopping rule needed one. began: monotonic
    start time, minus the time spent in earlier runs.
    """

    pool: CutPool
    bases: list[Bases]
    visited: VisitedStates
    first_stage_bases: Bases | None = None
    risk_draws: RiskDraws | None = None
    selection_states: SelectionStates = field(default_factory=SelectionStates)
    upper_bound: UpperBound | None = None
    began: float = field(default_factory=time.monotonic)

    def mark(self) -> StateMark:
        """Return the state that `restore` needs to drop the next iteration."""
        draws = self.risk_draws
        return StateMark(
            cuts=self.pool.count,
            active=self.pool.active.copy(),
            bases=self.bases,
            first_stage_bases=self.first_stage_bases,
            states_added=self.visited.times_added,
            sampling_probabilities=None if draws is None else list(draws.sampling_probabilities),
            upper_bound=self.upper_bound,
        )

    def restore(self, mark: StateMark) -> None:
        """Drop the iteration that began after `mark`. Its cuts and states stay in memory and are overwritten."""
        self.pool.forget_slots(mark.cuts, mark.active)
        self.bases, self.first_stage_bases, self.upper_bound = mark.bases, mark.first_stage_bases, mark.upper_bound
        if self.risk_draws is not None and mark.sampling_probabilities is not None:
            self.risk_draws.sampling_probabilities[:] = mark.sampling_probabilities
        if self.visited.times_added > mark.states_added:
            self.visited.forget_last()


@dataclass(frozen=True)  # without slots: cached properties are stored in the instance
class TrainingContext:
    """Fixed part of a training run, with the state that iterations change and the meter of the current one.

    split: the split of the forward passes over ranks. team: the ranks that solve together with this one.
    failure_folder: where an LP is saved that cannot be solved; None: nowhere.
    """

    comm: Communicator
    problem: Problem
    solver: LpSolver
    sampler: Sampler
    split: WorkSplit
    team: Team
    backward_chains: BackwardChains
    state: TrainingState
    failure_folder: Path | None = None

    @property
    def pool(self) -> CutPool:
        """The cuts of the policy."""
        return self.state.pool

    @cached_property
    def meter(self) -> IterationMeter:
        """Time, solves and traffic of the current iteration."""
        return IterationMeter(self.comm.size)

    @cached_property
    def team_paths(self) -> Indices:
        """The forward passes of this rank's team; tables of the team have a row for each."""
        return self.team.items(self.split)

    @cached_property
    def own_rows(self) -> slice:
        """The rows of this rank's forward passes in tables of its team."""
        return self.team.own_rows(self.split)

    @cached_property
    def first_stage_chains(self) -> FirstStageChains:
        """Chains of the lower bound."""
        return FirstStageChains(self.comm, self.problem, self.team)

    @cached_property
    def basis_sources(self) -> list[tuple[bool, Ints | None]]:
        """`Problem.basis_sources`, computed once."""
        return self.problem.basis_sources()

    @property
    def samples_policy_cost(self) -> bool:
        """Whether paths are a sample of the policy's cost: drawn by weight, or from openings that count alike."""
        return self.state.risk_draws is not None or (self.problem.is_risk_neutral and self.sampler.is_representative)

    def gather(self, split: WorkSplit, own: NDArray[Any], purpose: str) -> NDArray[Any]:
        """Gather the rows of all ranks in the order of the split, counted as traffic under `purpose`."""
        table = gather_rows(self.comm, split, own, purpose)
        self.meter.count_bytes(purpose, table.nbytes)
        return table

    def solve(
        self,
        phase: Phase,
        iteration: int,
        stage: int,
        chains: Chains,
        out: Outputs,
        *,
        all_cuts: bool = False,
        node: int | None = None,
    ) -> Batch:
        """Solve chains of a stage under the current policy, counted in a phase.

        all_cuts: with inactive cuts as well. node: of a tree, whose cuts the stage has; None: the stage's. Where an LP
        fails, raise `StageFailedError` and save the LP.
        """
        rows = self.pool.rows(stage if node is None else node, all_cuts=all_cuts)
        try:
            batch = self.solver.solve(stage, rows, chains, out)
        except SolveFailedError as error:
            point = error.inputs.chain // chains.chains_per_point
            raise self._explained(error, phase, iteration, point, chains.realisations) from error
        self.meter.solves.add(phase, batch)
        return batch

    def solve_paths(
        self, phase: Phase, iteration: int, steps: Sequence[Step], states: Floats, out: PathOutputs
    ) -> PathBatch:
        """Take paths (rows of `states`) through some stages, counted in a phase; failures are those of `solve`."""
        try:
            batch = self.solver.solve_paths(steps, states, out)
        except SolveFailedError as error:
            [failed] = [step for step in steps if step.stage == error.inputs.stage]
            raise self._explained(error, phase, iteration, error.inputs.chain, failed.realisations) from error
        self.meter.solves.add(phase, batch)
        return batch

    def _explained(
        self, error: SolveFailedError, phase: Phase, iteration: int, point: int, noise: Realisations
    ) -> StageFailedError:
        where, stage = f"trial point {point} of rank {self.comm.rank}", error.inputs.stage
        if phase in (Phase.FORWARD, Phase.BACKWARD) and self.problem.tree is None:
            where = f"trial point {self.team_paths[point]}"  # a forward pass has the same number on any rank
        failed = FailedSolve.of(self.problem.stages[stage], f"iteration {iteration}, {where}", error, noise)
        file_name = f"iteration{iteration}-stage{stage}-rank{self.comm.rank}"
        return failed.as_error(self.problem.names, self.solver, self.failure_folder, file_name)

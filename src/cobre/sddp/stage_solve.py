"""One call of the solver at a stage under a policy: with the policy's cuts, and an explanation where an LP fails."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from cobre.records import dataclass
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.lp.failure import FailedSolve
from cobre.sddp.problem.problem import Problem
from cobre.solver.batches import Batch, Chains, LpSolver, Outputs, Realisations, SharedBatch, SolveFailedError

# From the number of the chain that failed: where that is in words, and the name of the files that are left.
NameFailure = Callable[[int], tuple[str, str]]


class SolvedPolicy(Protocol):
    """Who solves stages: training, or a simulation."""

    @property
    def problem(self) -> Problem:
        """The study whose stages are solved."""

    @property
    def solver(self) -> LpSolver:
        """The solver that all stages are loaded into."""

    @property
    def pool(self) -> CutPool:
        """The cuts of the policy."""

    @property
    def failure_folder(self) -> Path | None:
        """Where an LP goes that cannot be solved; None: nowhere."""


@dataclass(frozen=True, slots=True)
class StageSolve:
    """What is solved at a stage, and what is wanted of it.

    all_cuts: with inactive cuts as well. pool_number: whose cuts, where a stage has several nodes; None: the stage's.
    shared: together with the team.
    """

    stage: int
    chains: Chains
    noise: Realisations
    outputs: Outputs
    all_cuts: bool = False
    pool_number: int | None = None
    shared: SharedBatch | None = None


def solve_stage(policy: SolvedPolicy, work: StageSolve, name_failure: NameFailure) -> Batch:
    """Solve chains of a stage; raises `StageFailedError`, and leaves the LP for a closer look, where one fails."""
    rows = policy.pool.rows(work.stage if work.pool_number is None else work.pool_number, all_cuts=work.all_cuts)
    try:
        return policy.solver.solve(work.stage, rows, work.chains, work.noise, work.outputs, work.shared)
    except SolveFailedError as error:
        where, name = name_failure(error.chain)
        failed = FailedSolve.of(policy.problem.stages[work.stage], where, error, work.chains, work.noise)
        folder = policy.failure_folder
        raise failed.as_error(policy.problem.names, policy.solver, work.stage, folder, name) from error

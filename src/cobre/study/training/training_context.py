"""The context of a study's training: for training itself, for bounds of a policy, and for timing."""

from pathlib import Path

from cobre.comm import Backend
from cobre.core.config import TrainingConfig
from cobre.sddp.problem.boundary import BoundaryCutPool
from cobre.sddp.problem.prepared import PreparedStudy
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.risk_draws import RiskDraws
from cobre.sddp.training.team import Team
from cobre.solver.batches import Bases, LpSolver


def training_context(
    comm: Backend, study: PreparedStudy, solver: LpSolver, paths: int, failure_folder: Path | None = None
) -> TrainingContext:
    """A context for that many forward passes, with no cuts but those of a boundary policy; every rank must ask."""
    problem, config = study.problem, study.case.config
    split = WorkSplit(paths, comm.size)
    return TrainingContext(
        comm=comm,
        problem=problem,
        solver=solver,
        sampler=study.noise.training_sampler,
        pool=BoundaryCutPool(comm, problem, study.boundary),
        split=split,
        team=Team.of(comm, comm, problem, split),
        bases=[Bases.none(stage.program) for stage in problem.stages],
        state_window=config.training.cut_selection.state_window,
        risk_draws=_risk_draws(problem, config.training),
        keeps_states=config.exports.states,
        failure_folder=failure_folder,
    )


def _risk_draws(problem: Problem, config: TrainingConfig) -> RiskDraws | None:
    """Draws by the weights of the risk measure, where the case asks for them."""
    passes = config.weighted_passes
    return RiskDraws.of(problem, passes, config.tree_seed) if passes and problem.tree is None else None

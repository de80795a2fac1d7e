"""The context of a study's training: for training itself, for bounds of a policy, and for timing."""

from pathlib import Path

from cobre.comm import Backend
from cobre.sddp.problem.boundary import BoundaryCutPool
from cobre.sddp.problem.prepared import PreparedStudy
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.training.context import TrainingContext
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
        keeps_states=config.exports.states,
        failure_folder=failure_folder,
    )

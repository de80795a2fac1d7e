"""A training run from beginning to end, on whatever communicator it is given."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cobre.comm import Communicator, SharedMemoryProvider
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.events import IterationRecord
from cobre.sddp.plugins.cut_selection import cut_selection
from cobre.sddp.plugins.stopping import stopping_rules
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.loop import train
from cobre.sddp.work_split import WorkSplit
from cobre.solver.batches import Bases, LpSolver
from cobre.study.digest import training_digest
from cobre.study.prepare import PreparedStudy

Listener = Callable[[IterationRecord], None]


@dataclass(frozen=True, slots=True)
class TrainedStudy:
    """A policy as it lies in memory, with the run that made it."""

    study: PreparedStudy
    solver: LpSolver
    context: TrainingContext
    history: tuple[IterationRecord, ...]
    stop_reason: str
    digest: str
    training_s: float


def train_study(
    comm: Communicator,
    memory: SharedMemoryProvider,
    study: PreparedStudy,
    solver: LpSolver,
    listener: Listener,
    failure_folder: Path | None = None,
) -> TrainedStudy:
    """Train until a rule of the case says stop; an LP that cannot be solved is left in the failure folder."""
    config = study.case.config.training
    problem = study.problem
    context = TrainingContext(
        comm=comm,
        problem=problem,
        solver=solver,
        sampler=study.noise.training_sampler,
        pool=CutPool(memory, problem.num_stages, problem.dimension),
        split=WorkSplit(config.forward_passes, comm.size),
        bases=[Bases.none(stage.program) for stage in problem.stages],
        failure_folder=failure_folder,
    )
    outcome = train(context, stopping_rules(config), cut_selection(config.cut_selection), listener)
    return TrainedStudy(
        study=study,
        solver=solver,
        context=context,
        history=outcome.history,
        stop_reason=outcome.stop_reason,
        digest=training_digest(outcome.history, context.pool),
        training_s=outcome.history[-1].elapsed_s,
    )

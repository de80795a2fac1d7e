"""A training run from beginning to end, on whatever communicator it is given."""

import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cobre.comm import Communicator, SharedMemoryProvider
from cobre.io.atomic import finally_do
from cobre.policy.object import Policy
from cobre.policy.store import fill_pool
from cobre.runs.summary import WorkerReport
from cobre.sddp.boundary import PricedPool
from cobre.sddp.events import IterationRecord
from cobre.sddp.plugins.cut_selection import cut_selection
from cobre.sddp.plugins.stopping import stopping_rules
from cobre.sddp.prepared import PreparedStudy
from cobre.sddp.stop import Stop
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.hooks import Interruption, TrainingHooks, keep_nothing
from cobre.sddp.training.loop import train
from cobre.sddp.training.team import Team
from cobre.sddp.work_split import WorkSplit
from cobre.solver.batches import Bases, LpSolver
from cobre.study.checkpoints import Checkpoint, CheckpointPlan, CheckpointWriter, check_same_run, restore
from cobre.study.digest import training_digest
from cobre.study.fingerprint import Fingerprint

Listener = Callable[[IterationRecord], None]


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How a run begins, what it leaves on the way, and who may end it. Everything is the same on all ranks.

    start: go on from there. warm_start: begin with these cuts. failure_folder: where an LP goes that cannot be solved.
    """

    on_iteration: Listener = lambda _: None
    on_checkpoint: Callable[[int, Path, float], None] = lambda *_: None
    interruption: Callable[[], Interruption] = lambda: Interruption.NONE
    failure_folder: Path | None = None
    checkpoints: CheckpointPlan | None = None
    start: Checkpoint | None = None
    warm_start: Policy | None = None


@dataclass(frozen=True, slots=True)
class TrainedStudy:
    """A policy as it lies in memory, with the run that made it."""

    study: PreparedStudy
    solver: LpSolver
    context: TrainingContext
    history: tuple[IterationRecord, ...]
    stop: Stop
    digest: str
    training_s: float
    workers: tuple[WorkerReport, ...] = field(default=())

    @property
    def bound(self) -> dict[str, Any] | None:
        """What a stopping rule found for the policy after the last iteration; None where none asked."""
        return None if (found := self.context.upper_bound) is None else found.as_dict()


def train_study(
    comm: Communicator,
    memory: SharedMemoryProvider,
    study: PreparedStudy,
    solver: LpSolver,
    options: TrainingOptions | None = None,
) -> TrainedStudy:
    """Train until a rule of the case, or an interruption, says stop."""
    options = options or TrainingOptions()
    began = time.monotonic()
    config = study.case.config.training
    fingerprint = Fingerprint.of(study, solver)
    context = _context(comm, memory, study, solver, options)
    history = options.start.history if options.start else ()
    writer = _writer(comm, options, fingerprint)
    spent_s = history[-1].elapsed_s if history else 0.0
    rules, selection = stopping_rules(config, spent_s), cut_selection(config.cut_selection)
    with finally_do(writer.close if writer else _nothing), finally_do(context.team.close):
        hooks = TrainingHooks(
            options.on_iteration, writer.after_iteration if writer else keep_nothing, options.interruption
        )
        outcome = train(context, rules, selection, hooks, history)
    wall_s = time.monotonic() - began
    return TrainedStudy(
        study=study,
        solver=solver,
        context=context,
        history=outcome.history,
        stop=outcome.stop,
        digest=training_digest(outcome.history, context.pool),
        training_s=outcome.history[-1].elapsed_s,
        workers=gather_reports(comm, outcome.history[len(history) :], wall_s),
    )


def _nothing() -> None:
    """No checkpoints are written here."""


def _context(
    comm: Communicator,
    memory: SharedMemoryProvider,
    study: PreparedStudy,
    solver: LpSolver,
    options: TrainingOptions,
) -> TrainingContext:
    problem = study.problem
    split = WorkSplit(1 if problem.tree else study.case.config.training.forward_passes, comm.size)
    context = TrainingContext(
        comm=comm,
        problem=problem,
        solver=solver,
        sampler=study.noise.training_sampler,
        pool=PricedPool(memory, problem, study.end),
        split=split,
        team=Team.of(comm, memory, problem, split),
        bases=[Bases.none(stage.program) for stage in problem.stages],
        keeps_states=study.case.config.exports.states,
        failure_folder=options.failure_folder,
    )
    if options.start is not None:
        check_same_run(options.start, Fingerprint.of(study, solver))
        restore(context, options.start)
    elif options.warm_start is not None:
        fill_pool(context.pool, options.warm_start, study)
    return context


def _writer(comm: Communicator, options: TrainingOptions, fingerprint: Fingerprint) -> CheckpointWriter | None:
    if options.checkpoints is None or comm.rank != 0:
        return None
    resumed_at = options.start.iteration if options.start else 0
    return CheckpointWriter(options.checkpoints, fingerprint, options.on_checkpoint, resumed_at)


def gather_reports(comm: Communicator, history: Sequence[IterationRecord], wall_s: float) -> tuple[WorkerReport, ...]:
    """Who took part, and how long each rank waited; the same on all ranks."""
    width = 256
    host = np.frombuffer(socket.gethostname().encode()[:width].ljust(width, b"\0"), np.uint8)
    hosts = np.empty((comm.size, width), np.uint8)
    comm.allgatherv(host, hosts.reshape(-1), [width] * comm.size, label="hosts of the ranks")
    own = np.array([os.getpid(), wall_s], np.float64)
    numbers = np.empty((comm.size, 2))
    comm.allgatherv(own, numbers.reshape(-1), [2] * comm.size, label="times of the ranks")
    return tuple(
        WorkerReport(
            rank=rank,
            host=hosts[rank].tobytes().rstrip(b"\0").decode(),
            pid=int(numbers[rank, 0]),
            backend=comm.backend,
            wall_s=float(numbers[rank, 1]),
            busy_s=sum(record.loads[rank].busy_s for record in history),
            waiting_s=sum(record.loads[rank].waiting_s for record in history),
            imbalance_s=sum(record.loads[rank].imbalance_s for record in history),
        )
        for rank in range(comm.size)
    )

"""Training on all ranks, from the starting point to the digest and the cost of the final policy."""

import hashlib
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from cobre.comm import Backend, Communicator
from cobre.core.config import TrainingConfig
from cobre.core.policy_cost import NO_POLICY_COST, PolicyCost
from cobre.core.stopping import Stop, rules_in_force
from cobre.core.verdict import BoundHistory, ComputedBound
from cobre.io.storage.atomic import cleanup
from cobre.policy.object import Policy
from cobre.records import dataclass
from cobre.runs.events import Event, EventListener, iteration_event, new_event, no_events, resumed_event
from cobre.runs.summary import WorkerReport, bound_history
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.iteration_records import IterationRecord
from cobre.sddp.plugins.cut_selection import cut_selection
from cobre.sddp.problem.boundary import BoundaryCutPool
from cobre.sddp.problem.problem import PreparedStudy, Problem
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.team import Team
from cobre.sddp.training.chains import BackwardChains
from cobre.sddp.training.context import TrainingContext, TrainingState
from cobre.sddp.training.loop import (
    Interruption,
    IterationDropped,
    TrainingHooks,
    TrainingOutcome,
    no_checkpoint,
    train,
)
from cobre.sddp.training.risk_draws import RiskDraws
from cobre.sddp.training.visited_states import VisitedStates
from cobre.sddp.upper_bounds.policy_costs import final_policy_cost
from cobre.solver.batches import LpSolver, no_bases
from cobre.study.preparation.on_ranks import ReadyStudy, prepare_on_ranks
from cobre.study.requests import DEFAULT_TRAINING, CaseRequest, TrainingRequest
from cobre.study.results import TrainingResult
from cobre.study.training.checkpoints import Checkpoint, CheckpointPlan, CheckpointWriter
from cobre.study.training.initial_policy import find_starting_point, restore_start
from cobre.study.training.iteration_callback import ReplyPipe
from cobre.study.training.iteration_progress import IterationProgress
from cobre.study.training.stop_request import StopRequest

OnCheckpoint = Callable[[TrainingState, Sequence[IterationRecord], bool], None]
"""See `TrainingHooks.on_checkpoint`."""


def training_digest(history: Sequence[IterationRecord], pool: CutPool) -> str:
    """Return SHA-256 over both bounds of every iteration and all cuts, by stage and slot: equal digests, equal bits."""
    digest = hashlib.sha256()
    for record in history:
        digest.update(struct.pack("<idd", record.iteration, record.lower_bound, record.upper_bound))
    for stage in range(pool.num_stages):
        digest.update(pool.active[stage].tobytes())
        digest.update(pool.intercepts(stage).astype("<f8").tobytes())
        for block in pool.blocks(stage, pool.count):
            digest.update(block.coefficients.astype("<f8", copy=False).data)
    return digest.hexdigest()


def training_context(
    comm: Backend, study: PreparedStudy, solver: LpSolver, paths: int, failure_folder: Path | None = None
) -> TrainingContext:
    """Create a context for `paths` forward passes, without cuts except those of a boundary policy. Collective."""
    problem, config = study.problem, study.case.config
    split, pool = WorkSplit(paths, comm.size), BoundaryCutPool(comm, problem, study.boundary)
    window = config.training.cut_selection.window
    state = TrainingState(
        pool=pool,
        bases=[no_bases(stage.program) for stage in problem.stages],
        visited=VisitedStates(pool, has_all_entries=config.exports.states, window=window),
        risk_draws=_risk_draws(problem, config.training),
    )
    return TrainingContext(
        comm=comm,
        problem=problem,
        solver=solver,
        sampler=study.noise.training_sampler,
        split=split,
        team=Team.of(comm, comm, problem, split),
        backward_chains=BackwardChains(problem, paths),
        state=state,
        failure_folder=failure_folder,
    )


def _risk_draws(problem: Problem, config: TrainingConfig) -> RiskDraws | None:
    """Return draws by the weights of the risk measure; None if the case has none."""
    passes = config.weighted_passes
    return RiskDraws.of(problem, passes, config.tree_seed) if passes and problem.tree is None else None


@dataclass(frozen=True, slots=True)
class TrainedStudy:
    """A trained policy, in the pool of its training context, with the history of the run.

    is_dropped: an iteration was dropped, so that ranks may be gone: no more collectives.
    policy_cost: cost of the final policy if sampling it was affordable, else of the last iterations.
    """

    ready: ReadyStudy
    context: TrainingContext
    history: tuple[IterationRecord, ...]
    stop: Stop
    digest: str
    training_s: float
    workers: tuple[WorkerReport, ...] = field(default=())
    is_dropped: bool = False
    policy_cost: PolicyCost | None = None

    @property
    def study(self) -> PreparedStudy:
        """The study that was trained."""
        return self.ready.study

    @property
    def solver(self) -> LpSolver:
        """The solver that trained it."""
        return self.ready.solver

    @property
    def bound(self) -> dict[str, Any] | None:
        """The upper bound that the stopping rule `upper_bound` computed last; None without such a rule."""
        return None if (bound := self.context.state.upper_bound) is None else bound.as_dict()

    def cuts_for_simulation(self) -> Policy | CutPool:
        """Return the cuts in the slots of the stored policy: the pool, or a copy without its gaps."""
        pool = self.context.pool
        return Policy.of(self.study, pool, self.history) if pool.has_gaps else pool

    @property
    def bounds(self) -> BoundHistory:
        """The bounds of all iterations, with the bound or the cost of the final policy."""
        last, is_risk_averse = self.history[-1], self.study.is_risk_averse
        computed = ComputedBound.of_run(
            last.lower_bound, self.outcome_fields, is_exact=last.is_exact, is_risk_averse=is_risk_averse
        )
        cost = None if self.policy_cost is None else self.policy_cost.value
        return bound_history(self.history, is_risk_averse=is_risk_averse, computed=computed, policy_cost=cost)

    @property
    def outcome_fields(self) -> dict[str, Any]:
        """How training ended, by the names that events, summary.json and `TrainingResult` share."""
        return {
            "stop_reason": self.stop.reason,
            "stop_kind": self.stop.kind,
            "bound": self.bound,
            **(NO_POLICY_COST if self.policy_cost is None else self.policy_cost.as_dict()),
            "digest": self.digest,
            "training_seconds": self.training_s,
        }


def train_rank(
    comm: Backend,
    case: CaseRequest,
    request: TrainingRequest,
    result_on_all_ranks: bool,
    emit: EventListener,
    stop: StopRequest | None = None,
) -> TrainingResult | None:
    """Prepare the case and train; return the result on rank 0, or on all ranks."""
    ready = prepare_on_ranks(comm, case, emit)
    trained = train_study(comm, ready, request, emit, stop)
    pool = trained.context.pool
    result = None
    if result_on_all_ranks or comm.rank == 0:
        result = TrainingResult(
            policy=Policy.of(trained.study, pool, trained.history),  # copies the cuts
            history=trained.history,
            warnings=ready.warnings,
            workers=trained.workers,
            shared_bytes=ready.shared_bytes + pool.nbytes,
            saved_bytes=ready.saved_bytes + pool.saved_bytes,
            is_risk_averse=ready.study.is_risk_averse,
            **trained.outcome_fields,
        )
    pool.close()
    return result


def train_study(
    comm: Backend,
    ready: ReadyStudy,
    request: TrainingRequest = DEFAULT_TRAINING,
    emit: EventListener = no_events,
    stop: StopRequest | None = None,
    *,
    on_start: Callable[[], None] = lambda: None,
    save: Callable[["TrainedStudy"], None] | None = None,
) -> TrainedStudy:
    """Train on all ranks, from the starting point of a request, until a stopping rule or a stop request ends it.

    stop: by default signals and the time limit of the request. on_start: called as soon as training cannot be
    refused any more. save: called with the result, in place of saving the prepared study to the cache; a signal waits
    for it, unless it is the third.
    """
    stop = stop or StopRequest(request.time_limit_s)
    start = find_starting_point(comm, ready, request, emit)
    on_start()
    comm.check_failures()
    with stop:
        stop.allow_dropping(comm)
        trained = _train_from(comm, ready, start, request, emit, stop)
        if save is not None:
            save(trained)
        elif comm.rank == 0:
            ready.save_to_cache()
        stop.raise_if_signalled_late(trained.stop.kind)
        return trained


def _train_from(
    comm: Backend,
    ready: ReadyStudy,
    start: Checkpoint | Policy | None,
    request: TrainingRequest,
    emit: EventListener,
    stop: StopRequest,
) -> TrainedStudy:
    """Train from a starting point. stop: entered by the caller."""
    study = ready.study
    emit(_phase_event(study))
    with ReplyPipe(request.reply_pipe if comm.rank == 0 else None) as replies:
        began = time.monotonic()
        paths = 1 if study.problem.tree else study.case.config.training.forward_passes
        context = training_context(comm, study, ready.solver, paths, request.failure_folder)
        history = restore_start(context, study, start)
        if history:
            emit(resumed_event(history, is_risk_averse=study.is_risk_averse))
        session = _TrainingSession(ready, context, history, stop, replies, emit)
        with _open_checkpoints(comm, ready, request, emit, len(history)) as on_checkpoint, cleanup(context.team.close):
            outcome = session.run(on_checkpoint)
            was_interrupted = outcome.is_dropped or outcome.stop.kind.is_interruption
            cost = final_policy_cost(context, outcome.history, was_interrupted=was_interrupted)
    wall_s = time.monotonic() - began
    new_iterations = outcome.history[len(history) :]
    return TrainedStudy(
        ready=ready,
        context=context,
        is_dropped=outcome.is_dropped,
        history=outcome.history,
        stop=outcome.stop,
        digest=training_digest(outcome.history, context.pool),
        training_s=outcome.history[-1].elapsed_s,
        workers=() if outcome.is_dropped else gather_reports(comm, new_iterations, wall_s),
        policy_cost=cost,
    )


def _phase_event(study: PreparedStudy) -> Event:
    config = study.case.config.training
    is_plain = study.problem.is_risk_neutral and study.noise.training_sampler.is_representative
    return new_event(
        "phase",
        name="training",
        iteration_limit=config.iteration_limit,
        is_exact=config.is_enumerated,
        is_risk_averse=study.is_risk_averse,
        has_policy_cost=study.problem.tree is None and (is_plain or config.weighted_passes > 0),
    )


@dataclass(frozen=True, slots=True)
class _TrainingSession:
    """The training loop of a rank, with its stop requests, the replies of a script, and its progress.

    history: the iterations of the checkpoint that training resumes from.
    """

    ready: ReadyStudy
    context: TrainingContext
    history: tuple[IterationRecord, ...]
    stop: StopRequest
    replies: ReplyPipe
    emit: EventListener

    def run(self, on_checkpoint: OnCheckpoint) -> TrainingOutcome:
        """Iterate until a stopping rule or a stop request ends training."""
        case, plugins, solver = self.ready.study.case, self.ready.plugins, self.ready.solver
        config, spent_s = case.config.training, self.history[-1].elapsed_s if self.history else 0.0
        all_rules = (*config.stopping_rules, *plugins.stopping_rules)
        rules = rules_in_force([rule.resumed(spent_s) for rule in all_rules], config.stopping_mode)
        selection = plugins.cut_selection or cut_selection(config.cut_selection, case.format_version)
        stage_ids = [stage.id for stage in case.horizon.stages]
        progress = IterationProgress(
            self.context, stage_ids, self.emit, len(self.history), self.stop.check, config.iteration_limit
        )
        iteration_guard = progress.around(self.stop.iterating)
        hooks = TrainingHooks(self._on_iteration, on_checkpoint, self.stop.interruption, iteration_guard)
        solver.poll = progress.check
        try:
            return train(self.context, rules, selection, hooks, self.history)
        except IterationDropped as dropped:
            raise self.stop.no_policy_error(dropped.interruption) from None
        finally:
            solver.poll = None

    def _on_iteration(self, record: IterationRecord) -> None:
        self.emit(iteration_event(record, is_risk_averse=self.ready.study.is_risk_averse))
        if self.replies.wants_stop(self.stop.is_requested):
            self.stop.request_stop(Interruption.REQUESTED)


@contextmanager
def _open_checkpoints(
    comm: Communicator, ready: ReadyStudy, request: TrainingRequest, emit: EventListener, resumed_at: int
) -> Iterator[OnCheckpoint]:
    """Yield the callback that writes checkpoints: on rank 0, if the request has a folder for them."""
    plan = CheckpointPlan.of(request, ready.study.case.config)
    if plan is None or comm.rank != 0:
        yield no_checkpoint
        return

    def on_written(iteration: int, path: Path, seconds: float) -> None:
        emit(new_event("checkpoint", iteration=iteration, path=str(path), seconds=seconds))

    writer = CheckpointWriter(plan, lambda: ready.fingerprint, on_written, resumed_at)
    with cleanup(writer.close):
        yield writer.on_checkpoint


def gather_reports(comm: Communicator, history: Sequence[IterationRecord], wall_s: float) -> tuple[WorkerReport, ...]:
    """Gather host, process and times of each rank. Collective; the same on all ranks."""
    width = 256
    host = np.frombuffer(socket.gethostname().encode()[:width].ljust(width, b"\0"), np.uint8)
    hosts = np.empty((comm.size, width), np.uint8)
    comm.allgatherv(host, hosts.reshape(-1), [width] * comm.size, label="hosts of the ranks")
    pid_and_time = np.array([os.getpid(), wall_s], np.float64)
    numbers = np.empty((comm.size, 2))
    comm.allgatherv(pid_and_time, numbers.reshape(-1), [2] * comm.size, label="times of the ranks")
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

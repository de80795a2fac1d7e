"""What every rank of a study does, from the case to the results; each function here runs on all ranks alike."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cobre.comm import Backend, Communicator
from cobre.core.case import Case
from cobre.core.config import IterationLimit
from cobre.io.case import load_case_with_problems
from cobre.io.policy_file import read_policy_bytes
from cobre.policy.object import Policy
from cobre.policy.store import check_fit, decode_policy, policy_file
from cobre.runs.events import EventListener, iteration_event, new_event
from cobre.runs.trained_case import case_of_run, changes_since
from cobre.sddp.events import IterationRecord
from cobre.sddp.prepared import PreparedStudy
from cobre.sddp.sharing import share
from cobre.sddp.training.hooks import Interruption
from cobre.solver.batches import LpSolver
from cobre.study.checkpoints import (
    Checkpoint,
    check_same_run,
    list_checkpoints,
    newest_content,
    parse_checkpoint,
)
from cobre.study.fingerprint import Fingerprint, agree_on
from cobre.study.iteration_callback import Answers
from cobre.study.policy_origin import case_of_policy, other_problem
from cobre.study.prepare import make_solver, prepare
from cobre.study.requests import CaseRequest, Overrides, TrainingRequest
from cobre.study.results import SimulationResult, TrainingResult
from cobre.study.simulation import simulate_policy
from cobre.study.stop_request import StopRequest
from cobre.study.training import TrainedStudy, TrainingOptions, train_study

FOREIGN_CUTS = "its cuts may be too high for this one, and so may the lower bound"
FOREIGN_POLICY = "the simulated costs are valid for this case, but the lower bound stored with the policy is not"


@dataclass(frozen=True, slots=True)
class ReadyStudy:
    """A study that all ranks agree upon. folder: the directory of its case; None for one that was in memory.

    shared_bytes: what ranks of a node hold once; saved_bytes: what that saves.
    """

    study: PreparedStudy
    solver: LpSolver
    warnings: tuple[str, ...]
    shared_bytes: int = 0
    saved_bytes: int = 0
    folder: Path | None = None


def get_ready(comm: Backend, request: CaseRequest, emit: EventListener) -> ReadyStudy:
    """Read the case and build its LPs, once for each node; make sure that all ranks have the same ones."""

    def build() -> tuple[PreparedStudy, tuple[str, ...]]:
        case, warnings = as_case(request.case, request.overrides)
        emit(new_event("phase", name="building"))
        study = prepare(case)
        return study, (*warnings, *study.notes)

    shared = share(comm, build)
    study, warnings = shared.value
    if isinstance(request.case, Case):  # which the caller keeps anyway
        study = replace(study, case=request.case)
    for warning in warnings:
        emit(new_event("warning", message=warning))
    solver = make_solver(study, request.threads)
    agree_on(comm, Fingerprint.of(study, solver))
    folder = request.case if isinstance(request.case, Path) else None
    return ReadyStudy(study, solver, warnings, shared.shared_bytes, shared.saved_bytes, folder)


def train_here(
    comm: Backend,
    ready: ReadyStudy,
    request: TrainingRequest,
    emit: EventListener,
    stop: StopRequest | None = None,
    before: Callable[[], None] = lambda: None,
) -> TrainedStudy:
    """Train on all ranks; signals, the time limit and whoever holds `stop` end it between two iterations.

    before: called when nothing can refuse the run any more.
    """
    stop = stop or StopRequest(request.time_limit_s)
    heard = Answers(request.answers if comm.rank == 0 else None)

    def after_iteration(record: IterationRecord) -> None:
        emit(iteration_event(record))
        if heard.says_stop(stop.is_wanted):
            stop.ask(Interruption.REQUESTED)

    options = TrainingOptions(
        on_iteration=after_iteration,
        on_checkpoint=lambda iteration, path, seconds: emit(
            new_event("checkpoint", iteration=iteration, path=str(path), seconds=seconds)
        ),
        failure_folder=request.failure_folder,
        checkpoints=request.checkpoints,
    )
    if (request.resume or request.resume_if_possible) and request.checkpoints is not None:
        start = share_checkpoint(comm, request.checkpoints.folder, emit, is_needed=request.resume)
        if start is not None:
            was = case_of_run(request.checkpoints.folder.parent)
            check_same_run(start, Fingerprint.of(ready.study, ready.solver), changes_since(was, ready.folder))
        options = replace(options, start=start)
    if request.warm_start is not None and options.start is not None:
        message = "a run that is resumed has its cuts already: the policy to begin with is not read"
        emit(new_event("warning", message=message))
    elif request.warm_start is not None:
        policy = share_policy(comm, request.warm_start)
        check_fit(policy, ready.study)
        warn_of_other_problem(ready, policy, request.warm_start, emit, FOREIGN_CUTS)
        options = replace(options, warm_start=policy)
    before()
    comm.check_failures()
    case = ready.study.case
    facts = {"is_exact": case.config.training.is_enumerated, "is_risk_averse": case.is_risk_averse}
    emit(new_event("phase", name="training", iteration_limit=iteration_limit(case), **facts))
    with stop, heard:
        return train_study(comm, comm, ready.study, ready.solver, replace(options, interruption=stop.interruption))


def iteration_limit(case: Case) -> int | None:
    """Of training; None when no rule has one."""
    config = case.config.training
    limits = [rule.limit for rule in config.stopping_rules if isinstance(rule, IterationLimit)]
    return (min if config.stopping_mode == "any" else max)(limits, default=None)


def training_result(trained: TrainedStudy, ready: ReadyStudy) -> TrainingResult:
    """For a script."""
    return TrainingResult(
        policy=Policy.of(trained.study, trained.context.pool, trained.history),
        history=trained.history,
        stop_reason=trained.stop.reason,
        stop_kind=trained.stop.kind,
        digest=trained.digest,
        training_seconds=trained.training_s,
        warnings=ready.warnings,
        workers=trained.workers,
        shared_bytes=ready.shared_bytes + trained.context.pool.nbytes,
        saved_bytes=ready.saved_bytes + trained.context.pool.saved_bytes,
        is_risk_averse=ready.study.case.is_risk_averse,
        bound=trained.bound,
    )


def train_rank(
    comm: Backend,
    case: CaseRequest,
    request: TrainingRequest,
    everywhere: bool,
    emit: EventListener,
    stop: StopRequest | None = None,
) -> TrainingResult | None:
    """Train; rank 0 gives the result, or all ranks do."""
    ready = get_ready(comm, case, emit)
    trained = train_here(comm, ready, request, emit, stop)
    result = training_result(trained, ready) if everywhere or comm.rank == 0 else None
    trained.context.pool.close()
    return result


def simulate_rank(
    comm: Backend,
    case: CaseRequest,
    policy: Policy | Path,
    scenarios: int | None,
    everywhere: bool,
    emit: EventListener,
) -> SimulationResult | None:
    """Simulate; rank 0 gives the result, or all ranks do, of which rank 0 alone has the tables."""
    ready = get_ready(comm, case, emit)
    shared = share_policy(comm, policy)
    count = scenarios or ready.study.case.config.simulation.num_scenarios
    warnings = (*ready.warnings, *warn_of_other_problem(ready, shared, policy, emit, FOREIGN_POLICY))
    result = simulate_policy(comm, comm, ready.study, ready.solver, shared, count, warnings)
    return result if everywhere or comm.rank == 0 else None


def as_case(case: Case | Path, overrides: Overrides | None) -> tuple[Case, tuple[str, ...]]:
    """A case that was given, or the one in a directory, with its warnings."""
    if isinstance(case, Case):
        if overrides:
            raise ValueError("config_overrides act while a case is read: give the directory, or pass them to load_case")
        return case, ()
    loaded, problems = load_case_with_problems(case, overrides)
    return loaded, tuple(str(problem) for problem in problems.warnings)


def share_checkpoint(comm: Communicator, folder: Path, emit: EventListener, *, is_needed: bool) -> Checkpoint | None:
    """The newest checkpoint of a folder that only rank 0 needs to see; None when there is none and none is needed."""
    content, path = b"", folder
    if comm.rank == 0 and (is_needed or list_checkpoints(folder)):
        path, content = newest_content(folder, lambda message: emit(new_event("warning", message=message)))
    comm.check_failures()
    shared = share_bytes(comm, content, "checkpoint")
    return parse_checkpoint(path, shared) if shared else None


def share_policy(comm: Communicator, policy: Policy | Path) -> Policy:
    """A policy that was given, or that of a file that only rank 0 needs to see."""
    if isinstance(policy, Policy):
        return policy
    path = policy_file(policy)
    content = read_policy_bytes(path) if comm.rank == 0 else b""
    comm.check_failures()
    return decode_policy(path, share_bytes(comm, content, "policy"))


def warn_of_other_problem(
    ready: ReadyStudy, policy: Policy, source: Policy | Path, emit: EventListener, consequence: str
) -> tuple[str, ...]:
    """Emit and return the warning that a policy was trained on another problem."""
    how = other_problem(policy, ready.study, case_of_policy(source), ready.folder)
    if how is None:
        return ()
    message = f"{how}: {consequence}"
    emit(new_event("warning", message=message))
    return (message,)


def share_bytes(comm: Communicator, content: bytes, label: str) -> bytes:
    """Rank 0's bytes, on all ranks."""
    size = np.array([len(content)], np.int64)
    comm.broadcast(size, 0, label=f"size of the {label}")
    buffer = np.frombuffer(content, np.uint8).copy() if comm.rank == 0 else np.empty(int(size[0]), np.uint8)
    comm.broadcast(buffer, 0, label=label)
    return buffer.tobytes()

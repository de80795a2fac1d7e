"""A whole run: load, train, simulate, write. What the command `cobre run` does, on every rank."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from cobre import __version__
from cobre.comm import Backend
from cobre.core.case import Case
from cobre.core.config import Config
from cobre.core.verdict import FoundBound, Verdict, verdict
from cobre.io.atomic import WriteError, finally_do, write_file
from cobre.io.confined import no_links_below
from cobre.io.output.results import write_results
from cobre.io.output.table_pieces import table_pieces
from cobre.policy.object import Policy
from cobre.policy.store import check_fit, save_pool
from cobre.runs.convergence import bound_history, convergence_table
from cobre.runs.events import Event, EventListener, new_event
from cobre.runs.files import CHECKPOINTS, FAILURES, SIMULATION, SUMMARY_FILE, TRAINING
from cobre.runs.summary import RunSummary
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.events import IterationRecord
from cobre.sddp.phases import Phase, PhaseStatistics, added, as_dict
from cobre.sddp.stop import StopKind
from cobre.sddp.training.exchange import gather_rows
from cobre.sddp.training.traffic import least_traffic, total_traffic
from cobre.sddp.work_split import WorkSplit
from cobre.solver.counting import CountingSolver
from cobre.solver.statistics import SolveStatistics
from cobre.study.bound import PolicyBound, write_bound
from cobre.study.checkpoints import CheckpointPlan, list_checkpoints
from cobre.study.cost_note import cost_note
from cobre.study.exports.writing import write_state_export, write_study_exports
from cobre.study.fingerprint import Fingerprint
from cobre.study.output_lock import output_lock
from cobre.study.previous_run import clear_former_run, refuse_to_replace
from cobre.study.ranks import (
    FOREIGN_POLICY,
    ReadyStudy,
    get_ready,
    share_policy,
    train_here,
    warn_of_other_problem,
)
from cobre.study.requests import RunRequest, TrainingRequest
from cobre.study.results import SimulationResult
from cobre.study.run_log import RunLog
from cobre.study.simulation import StreamedSimulation
from cobre.study.study_file import write_study_file
from cobre.study.training import TrainedStudy

DEFAULT_INTERVAL = 10
DEFAULT_SECONDS = 300.0
# The last iteration is kept all the same: it is what --resume goes on from.
NEVER = 10**9


def run_study(comm: Backend, request: RunRequest, emit: EventListener) -> RunSummary:
    """Load, train, simulate and write; results appear whole or not at all, and rank 0 alone writes them."""
    began = time.monotonic()
    with _logged(comm, request, emit) as log:
        emit_all = emit if log is None else log.emit
        emit_all(_started(comm, request))
        ready = get_ready(comm, request.case, emit_all)
        trained, policy = _train_or_load(comm, ready, request, emit_all, lambda: _begin(request, ready, log))
        is_interrupted = trained is not None and trained.stop.kind.is_interruption
        simulation = None
        if ready.study.case.config.simulation.enabled and not is_interrupted:
            simulation = _simulate(comm, ready, request, trained, policy, emit_all)
        summary = _summary(request, ready, trained, policy, simulation)
        if comm.rank == 0:
            if simulation is not None:
                summary = replace(summary, cost_note=_cost_note(request.output, ready.study.case))
            write_file(request.output / SUMMARY_FILE, (json.dumps(summary.as_dict(), indent=1) + "\n").encode())
        comm.check_failures()
        emit_all(new_event("run_finished", seconds=time.monotonic() - began))
        return summary


@contextmanager
def _logged(comm: Backend, request: RunRequest, emit: EventListener) -> Iterator[RunLog | None]:
    """Rank 0 holds the output directory and keeps the log there; a failure is its last line."""
    if comm.rank != 0:
        with no_links_below(request.output):  # an LP that cannot be solved is written by the rank that has it
            yield None
        return
    with output_lock(request.output):
        refuse_to_replace(request)
        log = RunLog(request.output, append=request.resume or request.resume_if_possible, emit=emit)
        with finally_do(log.close), _failure_told(log):
            yield log


@contextmanager
def _failure_told(log: RunLog) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        event = new_event("run_failed", error=str(error) or type(error).__name__, kind=type(error).__name__)
        with suppress(WriteError):  # that the log cannot be written either is not what went wrong first
            log.end_with(event)
        raise


def _begin(request: RunRequest, ready: ReadyStudy, log: RunLog | None) -> None:
    """Everything that can refuse a run has been asked: what the directory held before is no longer its result."""
    if log is not None:
        config = ready.study.case.config
        clear_former_run(
            request.output,
            is_resumed=_is_resumed(request, config),
            has_training=config.training.enabled,
            keeps_policy=config.policy.mode == "warm_start" and request.warm_start is None,
        )
        log.begin()
        write_study_file(request.output, ready, request.case)
        write_study_exports(request.output, ready.study)


def _is_resumed(request: RunRequest, config: Config) -> bool:
    is_wanted = request.resume or request.resume_if_possible or config.policy.mode == "resume"
    return is_wanted and bool(list_checkpoints(request.output / CHECKPOINTS))


def _started(comm: Backend, request: RunRequest) -> Event:
    case = request.case.case
    return new_event(
        "run_started",
        case=str(case) if isinstance(case, Path) else case.name,
        output=str(request.output),
        version=__version__,
        host=socket.gethostname(),
        pid=os.getpid(),
        backend=comm.backend,
        ranks=comm.size,
        threads=request.case.threads,
        is_resumed=request.resume,
    )


def _train_or_load(
    comm: Backend, ready: ReadyStudy, request: RunRequest, emit: EventListener, begin: Callable[[], None]
) -> tuple[TrainedStudy | None, Policy | CutPool]:
    """A trained policy; where the case trains nothing, the one that it names.

    The cuts of a pool are not copied, unless a simulation of the stored policy would see them in other slots.
    """
    config = ready.study.case.config
    stored = request.output / config.policy.path
    if not config.training.enabled:
        policy = share_policy(comm, request.warm_start or stored)
        check_fit(policy, ready.study)
        warn_of_other_problem(ready, policy, request.warm_start or stored, emit, FOREIGN_POLICY)
        begin()
        comm.check_failures()
        return None, policy
    warm = request.warm_start or (stored if config.policy.mode == "warm_start" else None)
    trained = train_here(
        comm,
        ready,
        TrainingRequest(
            checkpoints=checkpoint_plan(request, config),
            resume=request.resume or config.policy.mode == "resume",
            resume_if_possible=request.resume_if_possible,
            warm_start=warm,
            time_limit_s=request.time_limit_s,
            failure_folder=request.output / FAILURES,
            answers=request.answers,
        ),
        emit,
        before=begin,
    )
    pool = trained.context.pool
    if comm.rank == 0:
        _write_training(request.output, stored, trained)
    trained.context.visited.close()
    comm.check_failures()
    emit(_trained_event(trained))
    return trained, Policy.of(trained.study, pool, trained.history) if pool.has_gaps else pool


def checkpoint_plan(request: RunRequest, config: Config) -> CheckpointPlan | None:
    """What the command line says, then what the case says, then every ten iterations; and every few minutes."""
    asked = config.policy.checkpointing
    every, first = DEFAULT_INTERVAL, None
    if request.checkpoint_every is not None:
        every = request.checkpoint_every or NEVER
    elif asked.enabled is False:
        every = NEVER
    elif asked.enabled:
        every, first = asked.interval_iterations, asked.initial_iteration
    seconds = None if every == NEVER else request.checkpoint_seconds or DEFAULT_SECONDS
    return CheckpointPlan(request.output / CHECKPOINTS, every, first, request.keep_checkpoints, seconds)


def _write_training(output: Path, policy_folder: Path, trained: TrainedStudy) -> None:
    save_pool(policy_folder, trained.study, trained.context.pool, trained.history)
    facts = {
        "digest": trained.digest,
        "stop_reason": trained.stop.reason,
        "stop_kind": trained.stop.kind,
        "solver": trained.solver.version,
    }
    write_results(output / TRAINING, {"convergence": convergence_table(trained.history)}, facts)
    if (bound := trained.context.upper_bound) is not None:
        write_bound(output, PolicyBound(bound, trained.study.case.is_risk_averse))
    visited = trained.context.visited
    write_state_export(output, trained.study, visited, len(trained.history) - len(visited.iterations) + 1)


def _trained_event(trained: TrainedStudy) -> Event:
    last = trained.history[-1]
    return new_event(
        "training_finished",
        iterations=len(trained.history),
        stop_reason=trained.stop.reason,
        stop_kind=trained.stop.kind,
        lower_bound=last.lower_bound,
        upper_bound=last.upper_bound,
        half_width=last.half_width,
        gap=last.gap,
        bound=trained.bound,
        digest=trained.digest,
        training_seconds=trained.training_s,
        workers=[report.as_dict() for report in trained.workers],
        solver=as_dict(added(record.solver for record in trained.history)),
    )


def _simulate(
    comm: Backend,
    ready: ReadyStudy,
    request: RunRequest,
    trained: TrainedStudy | None,
    policy: Policy | CutPool,
    emit: EventListener,
) -> SimulationResult:
    emit(new_event("phase", name="simulation"))
    config = ready.study.case.config.simulation
    count = config.num_scenarios
    streamed = StreamedSimulation(
        request.output / SIMULATION,
        # A policy from elsewhere has no digest to be known by: its simulation begins anew.
        "" if trained is None else f"{Fingerprint.of(ready.study, ready.solver)} {trained.digest} {config}",
        resume=trained is not None and (request.resume or request.resume_if_possible),
        failure_folder=request.output / FAILURES,
    )
    solver = CountingSolver(ready.solver)
    result = streamed.run(comm, ready.study, solver, policy, count)
    result = replace(result, solver=_of_all_ranks(comm, solver.statistics))
    emit(
        new_event(
            "simulation_finished",
            scenarios=count,
            mean_cost=result.mean_cost,
            std_cost=result.std_cost,
            half_width=result.half_width,
            digest=result.digest,
            seconds=result.seconds,
            solver={} if result.solver is None else result.solver.as_dict(),
        )
    )
    return result


def _of_all_ranks(comm: Backend, own: SolveStatistics) -> SolveStatistics:
    table = gather_rows(comm, WorkSplit(comm.size, comm.size), np.array([own.numbers]), "solves of the simulation")
    return sum((SolveStatistics.from_numbers(row) for row in table.tolist()), SolveStatistics())


def _solver(trained: TrainedStudy | None, simulation: SimulationResult | None) -> PhaseStatistics:
    """What all ranks' solvers did by phase, in the whole run."""
    parts: list[PhaseStatistics] = [] if trained is None else [record.solver for record in trained.history]
    if simulation is not None and simulation.solver is not None:
        parts.append({Phase.SIMULATION: simulation.solver})
    return added(parts)


def _final_bounds(policy: Policy | CutPool, last: IterationRecord | None) -> tuple[float | None, float | None, int]:
    """Both bounds and the number of iterations, of a policy that was loaded or of the last iteration."""
    if isinstance(policy, Policy):
        return policy.final_lower_bound, policy.final_upper_bound, policy.iterations
    return (None, None, 0) if last is None else (last.lower_bound, last.upper_bound, last.iteration)


def _verdict(trained: TrainedStudy | None) -> Verdict | None:
    if trained is None:
        return None
    found = FoundBound.of(trained.bound, is_enough=trained.stop.kind is StopKind.UPPER_BOUND)
    history = bound_history(trained.history, is_risk_averse=trained.study.case.is_risk_averse, found=found)
    return verdict(history, is_interrupted=trained.stop.kind.is_interruption)


def _cost_note(output: Path, case: Case) -> str | None:
    """Of the simulation that was just written."""
    folder = output / SIMULATION
    return cost_note(lambda name, columns: table_pieces(folder / f"{name}.parquet", columns), case)


def _summary(
    request: RunRequest,
    ready: ReadyStudy,
    trained: TrainedStudy | None,
    policy: Policy | CutPool,
    simulation: SimulationResult | None,
) -> RunSummary:
    pool = None if trained is None else trained.context.pool
    last = None if trained is None else trained.history[-1]
    lower, upper, iterations = _final_bounds(policy, last)
    judged = _verdict(trained)
    traffic = {} if trained is None else total_traffic(record.traffic_bytes for record in trained.history)
    return RunSummary(
        lower_bound=lower,
        upper_bound=upper,
        upper_bound_half_width=None if last is None else last.half_width,
        verdict=None if judged is None else judged.words,
        verdict_kind=None if judged is None else judged.kind,
        upper_bound_is_exact=last is not None and last.is_exact,
        is_risk_averse=ready.study.case.is_risk_averse,
        gap=None if last is None else last.gap,
        bound=None if trained is None else trained.bound,
        iterations=iterations,
        stop_reason="a stored policy was used" if trained is None else trained.stop.reason,
        stop_kind=None if trained is None else trained.stop.kind,
        is_interrupted=trained is not None and trained.stop.kind.is_interruption,
        digest="" if trained is None else trained.digest,
        training_seconds=0.0 if trained is None else trained.training_s,
        output=str(request.output),
        workers=() if trained is None else trained.workers,
        shared_bytes=ready.shared_bytes + (0 if pool is None else pool.nbytes),
        saved_bytes=ready.saved_bytes + (0 if pool is None else pool.saved_bytes),
        traffic_bytes=traffic,
        traffic_least_bytes=least_traffic(traffic),
        simulated_scenarios=None if simulation is None else len(simulation.scenario_costs),
        simulated_mean_cost=None if simulation is None else simulation.mean_cost,
        simulated_std_cost=None if simulation is None else simulation.std_cost,
        simulation_digest=None if simulation is None else simulation.digest,
        solver=as_dict(_solver(trained, simulation)),
    )

"""A whole run: load, train, simulate, write. What the command `cobre run` does, on every rank."""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cobre import __version__
from cobre.comm import Backend
from cobre.core.case import Case
from cobre.core.config import Config
from cobre.io.output.growing_tables import table_pieces
from cobre.io.storage.stored_json import write_json
from cobre.policy.object import Policy
from cobre.policy.store import check_fit
from cobre.runs.events import Event, EventListener, new_event
from cobre.runs.files import CHECKPOINTS, FAILURES, SIMULATION, SUMMARY_FILE
from cobre.runs.summary import RunSummary
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.problem.problem import PreparedStudy
from cobre.sddp.records import added, as_dict
from cobre.study.config_outline import with_config_document
from cobre.study.output.run_output import begin_output, is_resumed, open_output, write_training
from cobre.study.output.run_results import simulation_event, summarize_run
from cobre.study.preparation.study_cache import ReadyStudy, prepare_on_ranks
from cobre.study.requests import RunRequest, TrainingRequest
from cobre.study.results.cost_note import cost_note
from cobre.study.results.script_results import SimulationResult
from cobre.study.resume.starting_point import POLICY_OF_ANOTHER_PROBLEM, share_policy, warn_of_other_problem
from cobre.study.simulation.simulate_policy import SimulatedPolicy, StreamedSimulation
from cobre.study.training.train_study import TrainedStudy, train_study


def run_study(
    comm: Backend,
    request: RunRequest,
    emit: EventListener,
    on_ready: Callable[[PreparedStudy], None] = lambda _: None,
) -> RunSummary:
    """Load, train, simulate and write; results appear whole or not at all, and rank 0 alone writes them.

    on_ready: called with the prepared study, on every rank.
    """
    began = time.monotonic()
    request = replace(request, case=with_config_document(request.case))
    with open_output(comm, request, emit) as log:
        emit_all = emit if log is None else log.emit
        emit_all(_started(comm, request))
        ready = prepare_on_ranks(comm, request.case, emit_all)
        on_ready(ready.study)

        def begin() -> None:
            begin_output(request, ready, log)

        source = _train_or_load(comm, ready, request, emit_all, begin)
        is_interrupted = isinstance(source, TrainedStudy) and source.stop.kind.is_interruption
        simulation = None
        if ready.study.case.config.simulation.enabled and not is_interrupted:
            simulation = _simulate(comm, ready, request, source, emit_all)
        summary = summarize_run(ready, source, simulation, str(request.output))
        if comm.rank == 0:
            if simulation is not None:
                summary = replace(summary, cost_note=_cost_note(request.output, ready.study.case))
            write_json(request.output / SUMMARY_FILE, summary.as_dict())
        comm.check_failures()
        emit_all(new_event("run_finished", seconds=time.monotonic() - began))
        return summary


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
        split_reason=request.split_reason,
        is_resumed=is_resumed(request),
    )


def _train_or_load(
    comm: Backend, ready: ReadyStudy, request: RunRequest, emit: EventListener, begin: Callable[[], None]
) -> TrainedStudy | Policy:
    """Train; where the case trains nothing, the policy that the request or the case names."""
    config = ready.study.case.config
    stored = request.output / config.policy.path
    if not config.training.enabled:
        named = request.training.warm_start or stored
        policy = share_policy(comm, named)
        check_fit(policy, ready.study)
        warn_of_other_problem(ready, policy, named, emit, POLICY_OF_ANOTHER_PROBLEM)
        begin()
        comm.check_failures()
        return policy

    def keep(trained: TrainedStudy) -> None:
        write_training(request.output, stored, trained)

    trained = train_study(comm, ready, training_of(request, config), emit, before=begin, keep=keep)
    trained.context.visited.close()
    comm.check_failures()
    emit(_trained_event(trained))
    return trained


def training_of(request: RunRequest, config: Config) -> TrainingRequest:
    """What the request asks of training, completed by its output directory and by what the case says."""
    training = request.training
    is_warm = config.policy.mode == "warm_start"
    return replace(
        training,
        checkpoints=request.output / CHECKPOINTS,
        failure_folder=request.output / FAILURES,
        resume=training.resume or config.policy.mode == "resume",
        warm_start=training.warm_start or (request.output / config.policy.path if is_warm else None),
    )


def _trained_event(trained: TrainedStudy) -> Event:
    last = trained.history[-1]
    return new_event(
        "training_finished",
        iterations=len(trained.history),
        lower_bound=last.lower_bound,
        upper_bound=last.upper_bound,
        half_width=last.half_width,
        gap=last.gap,
        policy_gap=None if trained.policy_cost is None else trained.policy_cost.gap(last.lower_bound),
        **trained.end,
        workers=[report.as_dict() for report in trained.workers],
        solver=as_dict(added(record.solver for record in trained.history)),
    )


def _simulate(
    comm: Backend,
    ready: ReadyStudy,
    request: RunRequest,
    source: TrainedStudy | Policy,
    emit: EventListener,
) -> SimulationResult:
    emit(new_event("phase", name="simulation"))
    config = ready.study.case.config.simulation
    trained = source if isinstance(source, TrainedStudy) else None
    streamed = StreamedSimulation(
        request.output / SIMULATION,
        # A policy from elsewhere has no digest to be known by: its simulation begins anew.
        "" if trained is None else f"{ready.fingerprint} {trained.digest} {config}",
        resume=trained is not None and request.training.may_resume,
        failure_folder=request.output / FAILURES,
    )
    result = streamed.run(comm, SimulatedPolicy(ready.study, ready.solver, _cuts(source), config.num_scenarios))
    emit(simulation_event(result))
    return result


def _cuts(source: TrainedStudy | Policy) -> Policy | CutPool:
    """Cuts of a pool are not copied, unless a simulation of the stored policy would see them in other slots."""
    if isinstance(source, Policy):
        return source
    pool = source.context.pool
    return Policy.of(source.study, pool, source.history) if pool.has_gaps else pool


def _cost_note(output: Path, case: Case) -> str | None:
    """The note on penalties for the simulation that was just written."""
    folder = output / SIMULATION
    return cost_note(lambda name, columns: table_pieces(folder / f"{name}.parquet", columns), case)

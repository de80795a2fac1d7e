"""A run with an output directory, step by step, on every rank: prepare, train, simulate, summarise.

`cobre run` and `cobre.run` call it. `cobre.train` and `cobre.simulate`, with results in memory, are
`training.train_rank` and `simulation.simulate_rank`.
"""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cobre import __version__
from cobre.comm import Backend
from cobre.core.config import Config
from cobre.core.file_names import CHECKPOINTS, FAILURES, SIMULATION
from cobre.policy.object import Policy
from cobre.policy.store import check_fit
from cobre.runs.events import Event, EventListener, new_event
from cobre.runs.summary import RunSummary
from cobre.sddp.iteration_records import phases_as_dict, sum_by_phase
from cobre.sddp.problem.problem import PreparedStudy
from cobre.study.cost_note import stored_cost_note
from cobre.study.output.run_output import RunOutput, open_output
from cobre.study.output.summarize import simulation_event, summarize_run
from cobre.study.preparation.on_ranks import ReadyStudy, prepare_on_ranks
from cobre.study.requests import RunRequest, TrainingRequest
from cobre.study.results import SimulationResult
from cobre.study.simulation.rank_simulation import simulate_to_folder
from cobre.study.training.initial_policy import POLICY_OF_ANOTHER_PROBLEM, share_policy, warn_of_other_problem
from cobre.study.training.train import TrainedStudy, train_study


def run_study(
    comm: Backend,
    request: RunRequest,
    emit: EventListener,
    on_ready: Callable[[PreparedStudy], None] = lambda _: None,
) -> RunSummary:
    """Prepare, train, simulate and write; only rank 0 writes, and results appear whole or not at all.

    on_ready: called with the prepared study, on every rank.
    """
    began = time.monotonic()
    with open_output(comm, request, emit) as output:
        output.emit(_started_event(comm, request, is_resumed=output.is_resumed))
        ready = prepare_on_ranks(comm, request.case, output.emit)
        on_ready(ready.study)
        config = ready.study.case.config
        source: TrainedStudy | Policy
        if config.training.enabled:
            source = _train_and_write(comm, ready, request, output)
            is_interrupted = source.stop.kind.is_interruption
        else:
            source = _load_policy(comm, ready, request, output)
            is_interrupted = False
        simulation = note = None
        if config.simulation.enabled and not is_interrupted:
            simulation = _simulate_and_write(comm, ready, request, source, output)
            if comm.rank == 0:
                note = stored_cost_note(request.output / SIMULATION, ready.study.case)
        summary = replace(summarize_run(ready, source, simulation, str(request.output)), cost_note=note)
        output.write_summary(summary)
        comm.check_failures()
        output.emit(new_event("run_finished", seconds=time.monotonic() - began))
        return summary


def _started_event(comm: Backend, request: RunRequest, *, is_resumed: bool) -> Event:
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
        is_resumed=is_resumed,
    )


def _train_and_write(comm: Backend, ready: ReadyStudy, request: RunRequest, output: RunOutput) -> TrainedStudy:
    """Train from a cold start, a checkpoint or the cuts of a policy; write the policy and the bounds."""
    trained = train_study(
        comm,
        ready,
        _complete_training_request(request, ready.study.case.config),
        output.emit,
        on_start=lambda: output.take_over(ready),
        save=output.write_training,
    )
    trained.context.state.visited.close()
    comm.check_failures()
    output.emit(_trained_event(trained))
    return trained


def _complete_training_request(request: RunRequest, config: Config) -> TrainingRequest:
    """Add the folders of the output directory and the policy mode of the case to the training request."""
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
        gap=trained.bounds.gap,
        policy_gap=None if trained.policy_cost is None else trained.policy_cost.gap(last.lower_bound),
        **trained.outcome_fields,
        workers=[report.as_dict() for report in trained.workers],
        solver=phases_as_dict(sum_by_phase(record.solver for record in trained.history)),
    )


def _load_policy(comm: Backend, ready: ReadyStudy, request: RunRequest, output: RunOutput) -> Policy:
    """Read the policy that the request or the case names, for a run without training."""
    path = request.training.warm_start or request.output / ready.study.case.config.policy.path
    policy = share_policy(comm, path)
    check_fit(policy, ready.study)
    warn_of_other_problem(ready, policy, path, output.emit, POLICY_OF_ANOTHER_PROBLEM)
    output.take_over(ready)
    comm.check_failures()
    return policy


def _simulate_and_write(
    comm: Backend, ready: ReadyStudy, request: RunRequest, source: TrainedStudy | Policy, output: RunOutput
) -> SimulationResult:
    """Simulate the policy and write its tables; an interrupted simulation of the same policy is continued."""
    output.emit(new_event("phase", name="simulation"))
    if isinstance(source, TrainedStudy):
        policy = source.cuts_for_simulation()
        identity = f"{ready.fingerprint} {source.digest} {ready.study.case.config.simulation}"
    else:
        policy, identity = source, ""  # a stored policy has no digest: its simulation is not resumable
    result = simulate_to_folder(
        comm,
        ready,
        policy,
        request.output / SIMULATION,
        identity=identity,
        resume=bool(identity) and output.is_resumed,
        failure_folder=request.output / FAILURES,
    )
    output.emit(simulation_event(result))
    return result

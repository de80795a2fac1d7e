"""What a run does to its output directory: the log, the results of earlier runs, the files of training."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cobre.comm import Backend
from cobre.errors import error_details
from cobre.io.output.results import write_results
from cobre.io.storage.atomic import WriteError, cleanup
from cobre.io.storage.confined import no_links_below
from cobre.policy.store import save_pool
from cobre.runs.convergence import convergence_table
from cobre.runs.events import EventListener, new_event
from cobre.runs.files import CHECKPOINTS, CONVERGENCE, TRAINING
from cobre.study.config_outline import ConfigOutline
from cobre.study.inspection.bound import PolicyBound, write_bound
from cobre.study.output.exports.writing import write_state_export, write_study_exports
from cobre.study.output.output_lock import output_lock
from cobre.study.output.previous_run import clear_previous_run, refuse_to_replace
from cobre.study.output.run_log import RunLog
from cobre.study.output.study_file import write_study_file
from cobre.study.preparation.ready_study import ReadyStudy
from cobre.study.requests import RunRequest
from cobre.study.resume.checkpoints import list_checkpoints
from cobre.study.training.train_study import TrainedStudy


@contextmanager
def open_output(comm: Backend, request: RunRequest, emit: EventListener) -> Iterator[RunLog | None]:
    """Rank 0 holds the output directory and keeps the log there; a failure is its last line."""
    if comm.rank != 0:
        with no_links_below(request.output):  # an LP that cannot be solved is written by the rank that has it
            yield None
        return
    with output_lock(request.output):
        refuse_to_replace(request)
        log = RunLog(request.output, append=request.training.may_resume, emit=emit)
        with cleanup(log.close), _failure_logged(log):
            yield log


@contextmanager
def _failure_logged(log: RunLog) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        event = new_event("run_failed", error=str(error) or type(error).__name__, **error_details(error))
        with suppress(WriteError):  # that the log cannot be written either is not what went wrong first
            log.end_with(event)
        raise


def begin_output(request: RunRequest, ready: ReadyStudy, log: RunLog | None) -> None:
    """Clear the results of an earlier run and begin the log; called once nothing can refuse the run any more."""
    if log is not None:
        config = ready.study.case.config
        clear_previous_run(
            request.output,
            is_resumed=is_resumed(request),
            has_training=config.training.enabled,
            keeps_policy=config.policy.mode == "warm_start" and request.training.warm_start is None,
        )
        log.begin()
        write_study_file(request.output, ready, request.case)
        write_study_exports(request.output, ready.study)


def is_resumed(request: RunRequest) -> bool:
    """Whether the run continues from a checkpoint in its output directory, as the request or its case wants."""
    is_wanted = request.training.may_resume or ConfigOutline.of(request.case).policy_mode == "resume"
    return is_wanted and bool(list_checkpoints(request.output / CHECKPOINTS))


def write_training(output: Path, policy_folder: Path, trained: TrainedStudy) -> None:
    """The policy, the tables of training, and what the case wants exported."""
    save_pool(policy_folder, trained.study, trained.context.pool, trained.history)
    facts = {
        "digest": trained.digest,
        "stop_reason": trained.stop.reason,
        "stop_kind": trained.stop.kind,
        "solver": trained.solver.version,
    }
    write_results(output / TRAINING, {CONVERGENCE: convergence_table(trained.history)}, facts)
    if (bound := trained.context.upper_bound) is not None:
        write_bound(
            output,
            PolicyBound(bound, trained.study.case.is_risk_averse, lower_bound_is_valid=trained.study.problem.is_convex),
        )
    visited = trained.context.visited
    write_state_export(output, trained.study, visited, len(trained.history) - len(visited.iterations) + 1)

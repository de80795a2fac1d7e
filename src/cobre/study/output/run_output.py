"""The output directory of a run in progress: its log, and the files that it writes."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cobre.comm import Backend
from cobre.core.file_names import CONVERGENCE, EVENT_FILE, STUDY_FILE, SUMMARY_FILE, TRAINING
from cobre.errors import error_details
from cobre.io.output.results import write_results
from cobre.io.storage.atomic import WriteError, cleanup
from cobre.io.storage.confined import no_links_below
from cobre.io.storage.stored_json import write_json
from cobre.policy.store import save_pool
from cobre.runs.events import Event, EventListener, EventLog, new_event
from cobre.runs.summary import RunSummary, convergence_table
from cobre.study.bound import PolicyBound, write_bound
from cobre.study.output.exports import write_state_export, write_study_exports
from cobre.study.output.output_lock import output_lock
from cobre.study.output.previous_run import (
    clear_previous_run,
    is_resumed,
    require_apart_from_case,
    require_replaceable,
)
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.requests import RunRequest
from cobre.study.study_record import study_record
from cobre.study.training.train import TrainedStudy
from cobre.study.unchecked_config import UncheckedConfig


class RunOutput:
    """The output directory of a run and its event log. Ranks other than 0 only forward events.

    Nothing of an earlier run is touched before `take_over`: a run that is refused at the start leaves the directory
    unchanged. is_resumed: whether the run continues from a checkpoint in the directory.
    """

    def __init__(self, request: RunRequest, config: UncheckedConfig, emit: EventListener, *, is_writer: bool) -> None:
        self.is_resumed = is_resumed(request, config)
        self._request = request
        self._listener = emit
        self._is_writer = is_writer
        self._buffered_events: list[Event] = []
        has_log = (request.output / EVENT_FILE).exists()
        self._log = self._open_log() if is_writer and not has_log else None

    def _open_log(self) -> EventLog:
        return EventLog(self._request.output, append=self.is_resumed)

    def emit(self, event: Event) -> None:
        """Write an event to the log and forward it to the listener."""
        if self._log is not None:
            self._log.emit(event)
        elif self._is_writer:
            self._buffered_events.append(event)
        self._listener(event)

    def take_over(self, ready: ReadyStudy) -> None:
        """Clear the results of an earlier run, open the log, and write study.json.

        Called once the run cannot be refused any more.
        """
        if not self._is_writer:
            return
        request, config = self._request, ready.study.case.config
        clear_previous_run(
            request.output,
            is_resumed=self.is_resumed,
            has_training=config.training.enabled,
            keeps_policy=config.policy.mode == "warm_start" and request.training.warm_start is None,
        )
        if self._log is None:
            self._log = self._open_log()
            for event in self._buffered_events:
                self._log.emit(event)
        write_json(request.output / STUDY_FILE, study_record(ready, request.case))
        if not config.training.enabled:  # otherwise after training: the first iteration does not wait for them
            write_study_exports(request.output, ready.study)

    def write_training(self, trained: TrainedStudy) -> None:
        """Write the policy, the table of bounds and the requested exports; save the prepared study to the cache."""
        if not self._is_writer:
            return
        output, study, history = self._request.output, trained.study, trained.history
        save_pool(output / study.case.config.policy.path, study, trained.context.pool, history)
        facts = {
            "digest": trained.digest,
            "stop_reason": trained.stop.reason,
            "stop_kind": trained.stop.kind,
            "solver": trained.solver.version,
        }
        write_results(output / TRAINING, {CONVERGENCE: convergence_table(history)}, facts)
        if (bound := trained.context.state.upper_bound) is not None:
            is_valid = study.problem.is_convex
            write_bound(output, PolicyBound(bound, study.is_risk_averse, lower_bound_is_valid=is_valid))
        write_study_exports(output, study)
        visited = trained.context.state.visited
        write_state_export(output, study, visited, len(history) - len(visited.iterations) + 1)
        trained.ready.save_to_cache()

    def write_summary(self, summary: RunSummary) -> None:
        """Write summary.json, which marks the run as complete."""
        if self._is_writer:
            write_json(self._request.output / SUMMARY_FILE, summary.as_dict())

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    @contextmanager
    def failure_logged(self) -> Iterator[None]:
        """Log an error in the block as the last event; the listener does not get it."""
        try:
            yield
        except BaseException as error:
            event = new_event("run_failed", error=str(error) or type(error).__name__, **error_details(error))
            if self._log is not None:
                with suppress(WriteError):  # the first error counts
                    self._log.emit(event)
            raise


@contextmanager
def open_output(comm: Backend, request: RunRequest, emit: EventListener) -> Iterator[RunOutput]:
    """Lock the output directory on rank 0 and yield it.

    Raises OutputInUseError while another run has it, OutputHoldsRunError if an earlier run would be lost, and
    OutputIsCaseError for the case directory.
    """
    config = UncheckedConfig.of(request.case)
    if comm.rank != 0:
        with no_links_below(request.output):  # each rank writes its LPs that cannot be solved
            yield RunOutput(request, config, emit, is_writer=False)
        return
    require_apart_from_case(request)
    with output_lock(request.output):
        require_replaceable(request, config)
        output = RunOutput(request, config, emit, is_writer=True)
        with cleanup(output.close), output.failure_logged():
            yield output

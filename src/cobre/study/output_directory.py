"""The output directory of a run: its lock, results of earlier runs, its log, and the files of training."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from cobre.comm import Backend
from cobre.errors import OutputError, error_details
from cobre.io.output.growing_tables import UNFINISHED
from cobre.io.output.results import write_results
from cobre.io.storage.atomic import WriteError, as_write_error, check_writable, cleanup, remove_leftovers
from cobre.io.storage.confined import UntrustedFileError, no_links_below, open_own, remove_file, remove_tree
from cobre.io.storage.stored_json import write_json
from cobre.policy.store import save_pool
from cobre.records import dataclass
from cobre.runs.content import logged_run, stored_policy_path, stored_study
from cobre.runs.events import Event, EventListener, EventLog, new_event
from cobre.runs.files import (
    BOUND_FILE,
    CHECKPOINTS,
    CONVERGENCE,
    EVENT_FILE,
    FAILURES,
    HYDRO_MODELS,
    LOCK_FILE,
    MANIFEST_FILE,
    POLICY,
    POLICY_FILE,
    REPORT_FILE,
    SIMULATION,
    STATES,
    STOCHASTIC,
    STUDY_FILE,
    SUMMARY_FILE,
    TRAINING,
    has_results,
)
from cobre.runs.run_state import RunState
from cobre.runs.summary import RunSummary, convergence_table
from cobre.runs.view import RunView
from cobre.study.bound import PolicyBound, write_bound
from cobre.study.checkpoints import list_checkpoints
from cobre.study.exports import write_state_export, write_study_exports
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.requests import RunRequest
from cobre.study.study_facts import study_facts
from cobre.study.training import TrainedStudy
from cobre.study.unchecked_config import UncheckedConfig
from cobre.wording import counted, printable

# One run at a time in an output directory.

LOCK_ATTEMPTS = 10
LOCK_PAUSE_S = 0.02


class OutputInUseError(OutputError):
    """Another run writes to this directory."""


@contextmanager
def output_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a directory, remove partial files of killed runs, and write through no links below it.

    The kernel releases the lock however this process ends; the file may remain. Raises OutputInUseError.
    """
    path = folder / LOCK_FILE
    with no_links_below(folder):
        check_writable(folder)
        with as_write_error(path):
            descriptor = _open_locked(path)
        with cleanup(lambda: _release(path, descriptor)):
            with as_write_error(path):
                os.truncate(descriptor, 0)
                os.pwrite(descriptor, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                remove_leftovers(folder)
            yield


def _release(path: Path, descriptor: int) -> None:
    try:
        with as_write_error(path):
            remove_file(path)  # while it is locked: no other process can lock it in between
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock the file, with retries: `is_in_use` of another process holds the lock for a moment."""
    for attempt in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt == LOCK_ATTEMPTS - 1:
                raise
            time.sleep(LOCK_PAUSE_S)
        else:
            return


def _open_locked(path: Path) -> int:
    """Open and lock the file of this name, and return its descriptor; retry if it was unlinked meanwhile."""
    while True:
        descriptor = open_own(path, os.O_RDWR | os.O_CREAT)
        try:
            _lock(descriptor)
        except BlockingIOError as error:
            owner = printable(os.pread(descriptor, 200, 0).decode(errors="replace").strip()) or "another process"
            os.close(descriptor)
            message = (
                f"{path.parent} is used by a running study ({owner}): wait for it to end, or choose another --output"
            )
            raise OutputInUseError(message) from error
        except BaseException:
            os.close(descriptor)
            raise
        if _is_still_named(descriptor, path):
            return descriptor
        os.close(descriptor)


def _is_still_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


# Files of an earlier run in an output directory: whether they may be removed, and how.

# Files that every run writes again, and files that only a new training writes.
_WRITTEN_BY_EVERY_RUN = (SUMMARY_FILE, REPORT_FILE, BOUND_FILE, SIMULATION)
_WRITTEN_BY_NEW_TRAININGS = (STUDY_FILE, TRAINING, STATES, STOCHASTIC, HYDRO_MODELS, FAILURES, CHECKPOINTS)


class OutputHoldsRunError(OutputError):
    """An output directory with results of an earlier run that may not be replaced."""


class OutputIsCaseError(OutputError):
    """The case directory, given as the output directory."""


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """An earlier run, by its log. stop_reason: why training ended; empty if it did not."""

    case: str
    iterations: int
    last_time: float
    state: RunState
    stop_reason: str = ""

    def __str__(self) -> str:
        is_known = 0 < self.last_time < 1e11
        when = f", {datetime.fromtimestamp(self.last_time, UTC):%Y-%m-%d %H:%M} UTC" if is_known else ""
        why = f": {self.stop_reason}" if self.stop_reason else ""
        trained = f"{counted(self.iterations, 'iteration')}, " if self.iterations else ""
        return f"a run of {self.case} ({trained}{self.state.words}{why}{when})"


def find_previous_run(output: Path) -> PreviousRun | None:
    """Return the earlier run in a directory; None without results. The caller holds the lock.

    A run that was refused, or killed early, leaves a log and no results.
    """
    if not has_results(output) and not list_checkpoints(output / CHECKPOINTS):
        return None
    view = _logged_run(output)
    state = view.end_state(output) or RunState.KILLED
    has_ended = state in (RunState.FINISHED, RunState.STOPPED)
    return PreviousRun(
        case=str(view.started.get("case", "an unknown case")),
        iterations=len(view.iterations),
        last_time=view.last_time,
        state=state,
        stop_reason=str((view.trained or {}).get("stop_reason", "")) if has_ended else "",
    )


def _remove_published_tables(simulation: Path) -> None:
    """Remove published tables, but keep the segments of an interrupted simulation, which is resumed."""
    if simulation.is_symlink() or not simulation.is_dir():
        remove_tree(simulation)
        return
    for path in simulation.iterdir():
        if path.name != UNFINISHED:
            remove_tree(path)


def require_replaceable(request: RunRequest) -> None:
    """Raise OutputHoldsRunError for an earlier run that this one would replace without permission."""
    if request.training.warm_start is not None and not UncheckedConfig.of(request.case).is_trained:
        require_no_training(request.output)
    if request.overwrite or request.training.resume or _continues_own_policy(request):
        return
    if request.training.resume_if_possible and list_checkpoints(request.output / CHECKPOINTS):
        return
    previous = find_previous_run(request.output)
    if previous is not None:
        raise OutputHoldsRunError(f"{request.output} already holds {previous}: {_suggestion(request)}")


def require_apart_from_case(request: RunRequest) -> None:
    """Raise OutputIsCaseError if the output directory is the case directory."""
    case = request.case.case
    if isinstance(case, Path) and request.output.exists() and request.output.samefile(case):
        suggestion = f"choose another --output, such as {case / 'output'}"
        raise OutputIsCaseError(
            f"{request.output} is the case directory, whose files would mix with results: {suggestion}"
        )


def require_no_training(output: Path) -> None:
    """Raise OutputHoldsRunError if a simulation of a stored policy would be written where a policy was trained.

    Overwriting is no remedy: it would leave the trained policy with log and summary of another run.
    """
    if (output / TRAINING / MANIFEST_FILE).exists():
        raise OutputHoldsRunError(
            f"{output} holds a training run, whose log and summary would be lost: choose another --output"
        )


def _suggestion(request: RunRequest) -> str:
    """Suggest what to do about an earlier run; a simulation alone cannot be continued."""
    replace = "replace it (--overwrite, in Python overwrite=True), or choose another --output"
    is_trained = UncheckedConfig.of(request.case).is_trained
    return f"continue it (--resume or --auto-resume), {replace}" if is_trained else replace


def clear_previous_run(output: Path, *, is_resumed: bool, has_training: bool, keeps_policy: bool) -> None:
    """Remove the results of an earlier run, so that none is mistaken for one of this run; other files stay."""
    is_new_training = has_training and not is_resumed
    policies = _policies(output) if is_new_training and not keeps_policy else ()  # reads study.json, removed below
    names: tuple[str, ...] = _WRITTEN_BY_EVERY_RUN
    if is_new_training:
        names += _WRITTEN_BY_NEW_TRAININGS
    for name in names:
        with as_write_error(output / name):
            if name == SIMULATION and is_resumed:
                _remove_published_tables(output / name)
            else:
                remove_tree(output / name)
    for path in policies:
        with as_write_error(path):
            remove_file(path)


def _policies(output: Path) -> set[Path]:
    """Return the default path of the policy, and the path by the settings of the previous run."""
    paths = {output / POLICY / POLICY_FILE}
    with suppress(OSError, ValueError, UntrustedFileError):  # a damaged study.json, or a path outside
        paths.add(stored_policy_path(output, stored_study(output)))
    return paths


def _continues_own_policy(request: RunRequest) -> bool:
    """Return whether the case continues from the policy in its own output directory."""
    config = UncheckedConfig.of(request.case)
    mode, needs_policy = config.policy_mode, request.training.warm_start is None
    return bool(mode == "resume") or (needs_policy and (mode == "warm_start" or not config.is_trained))


def _logged_run(output: Path) -> RunView:
    try:
        return logged_run(output)
    except (OSError, UntrustedFileError):
        return RunView()


# The output directory of a run in progress, which may still hold the results of an earlier one.


class RunOutput:
    """The output directory of a run and its event log. Ranks other than 0 only forward events.

    Nothing of an earlier run is touched before `begin`: a run that is refused at the start leaves the directory as it
    was.
    """

    def __init__(self, request: RunRequest, emit: EventListener, *, is_writer: bool) -> None:
        self._request = request
        self._listener = emit
        self._is_writer = is_writer
        self._early: list[Event] = []
        has_log = (request.output / EVENT_FILE).exists()
        self._log = self._open_log() if is_writer and not has_log else None

    def _open_log(self) -> EventLog:
        return EventLog(self._request.output, append=is_resumed(self._request))

    def emit(self, event: Event) -> None:
        """Write an event to the log and forward it to the listener."""
        if self._log is not None:
            self._log.emit(event)
        elif self._is_writer:
            self._early.append(event)
        self._listener(event)

    def begin(self, ready: ReadyStudy) -> None:
        """Take over the directory: clear the results of an earlier run, open the log, and write study.json.

        Called once the run cannot be refused any more.
        """
        if not self._is_writer:
            return
        request, config = self._request, ready.study.case.config
        clear_previous_run(
            request.output,
            is_resumed=is_resumed(request),
            has_training=config.training.enabled,
            keeps_policy=config.policy.mode == "warm_start" and request.training.warm_start is None,
        )
        if self._log is None:
            self._log = self._open_log()
            for event in self._early:
                self._log.emit(event)
        write_json(request.output / STUDY_FILE, study_facts(ready, request.case))
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

    Raises OutputInUseError while another run has it, OutputHoldsRunError where an earlier run would be lost, and
    OutputIsCaseError for the case directory.
    """
    if comm.rank != 0:
        with no_links_below(request.output):  # each rank writes its LPs that cannot be solved
            yield RunOutput(request, emit, is_writer=False)
        return
    require_apart_from_case(request)
    with output_lock(request.output):
        require_replaceable(request)
        output = RunOutput(request, emit, is_writer=True)
        with cleanup(output.close), output.failure_logged():
            yield output


def is_resumed(request: RunRequest) -> bool:
    """Return whether the run continues from a checkpoint in its output directory, by its request or its case."""
    may_resume = request.training.may_resume or UncheckedConfig.of(request.case).policy_mode == "resume"
    return may_resume and bool(list_checkpoints(request.output / CHECKPOINTS))

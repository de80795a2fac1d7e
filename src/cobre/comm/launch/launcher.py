"""The launcher's two functions, `run` for a function and `run_script` for a script, and the errors of failed ranks.

How ranks start and end: docs/explanation/processes.md.
"""

import errno
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cobre._native import unlink_segment
from cobre.comm.cores import usable_cores
from cobre.comm.errors import InitializationFailedError, Peer, TerminatedError, stop_exception
from cobre.comm.launch.fork_server import ForkServerGoneError
from cobre.comm.launch.messages import OnMessage, Output, forward, with_messages
from cobre.comm.launch.orphan_reaper import unlink_segments
from cobre.comm.launch.payload import (
    VALUE,
    FunctionTask,
    RankFailure,
    ScriptTask,
    Startup,
    Task,
    WorkerError,
    anonymous_file,
    ending_of,
    original_exception,
    write_task,
)
from cobre.comm.launch.signals import SignalForwarder, forwarding_signals, interrupts_blocked
from cobre.comm.launch.spawning import SharedDescriptors, check_size, rank_environments, segment_name
from cobre.comm.launch.supervision import OrphanReaper, RankProcess, RankStarter, Supervisor

logger = logging.getLogger("cobre.comm")

INTERRUPT_GRACE_S = 5.0  # for ranks to clean up after Ctrl-C, SIGTERM or the timeout
LAST_STANDARD = 2  # the descriptor of stderr

Value = TypeVar("Value")


def run(
    function: Callable[..., Value],
    size: int,
    backend: str = "shm",
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    output: Output = forward,
    on_message: OnMessage | None = None,
    forward_signals: Sequence[signal.Signals] = (),
    preload: Sequence[str] = (),
) -> list[Value]:
    """Call `function(comm, *args, **kwargs)` on `size` ranks and return their values in rank order.

    Ranks are forked by a new interpreter that has imported Cobre once, or are new interpreters themselves: nothing of
    this process's memory is in them but the function and its arguments, which are pickled by value. The function may
    come from a script, a shell or a notebook; no main guard is needed.

    environment: more variables for all ranks; `COBRE_SHM_*` and `COBRE_TCP_*` options configure the world.
    timeout_s: stop the run and raise `TimeoutError` if it takes longer, in seconds; None: no limit.
    output: called with what the ranks print; by default to this process's stdout and stderr, prefixed with the rank.
    on_message: called here with the rank and each line that a rank passes to `send_to_parent`, in that rank's order.
    forward_signals: signals that are forwarded to all ranks when they first arrive here, so that the ranks can end in
    their own way. A second one is forwarded too, as another of these signals if there is one, since the kernel merges
    equal signals; ranks that have not ended SECOND_SIGNAL_GRACE_S later are killed. A third one, or the first one while
    ranks are being started, stops the run. A run that ends without values after the second or third signal raises
    `KeyboardInterrupt`; for SIGTERM `TerminatedError`, which is a `KeyboardInterrupt`. Effective only in the main
    thread, the only one in which Python runs signal handlers.
    preload: names of modules that all ranks need; they are imported once, before ranks are forked. If one of them
    starts a thread, each rank imports them by itself.

    Raises `WorkerError` at the first failure of a rank, after all others have been stopped; `KeyboardInterrupt` at
    Ctrl-C, likewise; `BackendError` if the ranks could not be started; `TypeError` for a function or argument that
    cannot be pickled.

        def total(comm):
            result = np.zeros(1)
            comm.allreduce(np.ones(1), result)
            return result[0]

        launch.run(total, 4)    # [4.0, 4.0, 4.0, 4.0]
    """
    if not callable(function):
        raise TypeError(f"expected a function that takes a communicator, got {function!r}")
    size, variables = check_size(backend, size), dict(environment or {})
    request = _LaunchRequest(size, backend, variables, output, timeout_s, on_message=on_message, preload=tuple(preload))
    return _run_function(request, FunctionTask(function, tuple(args), dict(kwargs or {})), forward_signals)


def _run_function(request: "_LaunchRequest", task: FunctionTask, signals: Sequence[signal.Signals]) -> list[Any]:
    forwarder = SignalForwarder(signals)
    with ExitStack() as stack:
        with forwarding_signals(signals, forwarder):
            supervisor = stack.enter_context(_started(request, task, Startup.of_this_process()))
            forwarder.on_second_signal = supervisor.kill_after_grace
            forwarder.send_to_ranks = supervisor.forward
            try:
                _finish(request, supervisor)
            except WorkerError as error:
                if forwarder.second_signal is None:
                    raise
                raise stop_exception(forwarder.second_signal) from error
        # Read while the ranks' result files are open: leaving the stack closes them.
        return values(supervisor.ended)


def run_script(
    program: str,
    size: int,
    backend: str = "shm",
    args: Sequence[str] = (),
    *,
    is_module: bool = False,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    output: Output = forward,
) -> None:
    """Run a script, or with `is_module` a module, as `__main__` on `size` ranks.

    Each rank calls `create_communicator()`, and succeeds if its exit code is 0. Otherwise as `run`.
    """
    request = _LaunchRequest(
        check_size(backend, size), backend, dict(environment or {}), output, timeout_s, has_crashed
    )
    startup = Startup(_script_path(program, is_module), [program, *args], {})
    with _started(request, ScriptTask(program, is_module), startup) as supervisor:
        _finish(request, supervisor)


def _script_path(program: str, is_module: bool) -> list[str]:
    """Return `sys.path` as the interpreter itself sets it.

    The script's directory first, or for a module the current one.
    """
    if sys.flags.safe_path:
        return list(sys.path)
    folder = Path.cwd() if is_module else Path(program).resolve().parent
    return [str(folder), *sys.path[1:]]


def has_crashed(process: RankProcess) -> bool:
    """Return whether the rank of a script has failed: its exit code is not 0."""
    return process.exit_code != 0


def has_no_value(process: RankProcess) -> bool:
    """Return whether the rank of a function has failed: its exit code is not 0, or the function has not returned."""
    return process.exit_code != 0 or process.result.kind() != VALUE


@dataclass(frozen=True, slots=True)
class _LaunchRequest:
    """The arguments of one `run` or `run_script`. deadline: of the whole run, by the monotonic clock, or None."""

    size: int
    backend: str
    environment: dict[str, str]
    output: Output
    timeout_s: float | None
    has_failed: Callable[[RankProcess], bool] = has_no_value
    on_message: OnMessage | None = None
    preload: tuple[str, ...] = ()
    deadline: float | None = field(init=False)

    def __post_init__(self) -> None:
        if self.timeout_s is not None and not 0 < self.timeout_s < math.inf:
            raise ValueError(f"timeout_s: expected a positive number of seconds or None, got {self.timeout_s}")
        deadline = None if self.timeout_s is None else time.monotonic() + self.timeout_s
        object.__setattr__(self, "deadline", deadline)

    def timed_out(self, late: Sequence[int]) -> TimeoutError:
        """Return the error to raise at the deadline. late: the ranks that were still running."""
        return TimeoutError(f"the run took longer than {self.timeout_s} s; ranks {list(late)} were still running")


@contextmanager
def _started(request: _LaunchRequest, task: Task, startup: Startup) -> Iterator[Supervisor]:
    """Start all ranks. When the block is left, none of them is running any more, whatever happened in it."""
    environments = rank_environments(request.backend, request.size, request.environment)
    if not sys.executable:
        raise InitializationFailedError(
            request.backend,
            "cannot start ranks: sys.executable is empty, as in programs that embed Python; set it to the path of the "
            "interpreter, or work in one process",
        )
    # The stack unwinds in reverse: first the supervisor, which kills what still runs; then the fork server, the parent
    # of the ranks; then the reaper, which must outlive both; then the lifeline and the files.
    with ExitStack() as stack:
        stack.enter_context(standard_descriptors_taken())
        # Before any process is started: what cannot be pickled is an error of the caller.
        task_file = stack.enter_context(anonymous_file("cobre-task"))
        with _startup_errors(request):
            write_task(task_file, startup, task)
        _warn_if_oversubscribed(request.size)
        with _startup_errors(request):
            # Ranks hold the reading end of the lifeline; they end when its writing end, which only this process has,
            # is closed: by the end of the run, or by this process's death.
            shared = SharedDescriptors(task_file.fileno(), stack.enter_context(_pipe()))
            results = [stack.enter_context(anonymous_file("cobre-result")) for _ in range(request.size)]
            reaper = stack.enter_context(OrphanReaper())
            if (name := segment_name(environments[0])) is not None:
                reaper.register_segment(name)
                stack.callback(_unlink_segments, name)
            has_messages, output = request.on_message is not None, with_messages(request.output, request.on_message)
            starter = stack.enter_context(RankStarter(environments, results, shared, has_messages=has_messages))
            starter.load(request.preload, reaper, output, request.deadline)
            supervisor = stack.enter_context(Supervisor(output, request.has_failed, reaper))
            for rank in range(request.size):
                # Ctrl-C between a start and `add` would leave a process running.
                with interrupts_blocked():
                    supervisor.add(starter.start(rank))
        yield supervisor


def _unlink_segments(name: str) -> None:
    """Unlink the ranks' segment and those derived from its name, which are left if all ranks are killed at once."""
    unlink_segment(f"/{name}")
    unlink_segments({name})


@contextmanager
def _pipe() -> Iterator[int]:
    """Yield the reading end of a pipe whose writing end stays in this process: the ranks' lifeline."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


@contextmanager
def _startup_errors(request: _LaunchRequest) -> Iterator[None]:
    try:
        yield
    except TimeoutError:  # before OSError, which is its base class
        raise request.timed_out(range(request.size)) from None
    except ForkServerGoneError as error:
        raise InitializationFailedError(request.backend, f"could not start {request.size} ranks: {error}") from error
    except OSError as error:
        advice = _advice_for(error)
        raise InitializationFailedError(
            request.backend, f"could not start {request.size} ranks: {error}" + (advice and f"; {advice}")
        ) from error


def _advice_for(error: OSError) -> str:
    """Return advice for a rank that could not be started; empty if there is none."""
    if error.errno in (errno.EAGAIN, errno.EMFILE, errno.ENFILE):
        return "try fewer ranks, or raise the limits on open files (ulimit -n) and processes (ulimit -u)"
    if error.errno in (errno.ENOMEM, errno.ENOSPC):
        return "there is too little memory for them: try fewer ranks"
    if error.errno == errno.EFBIG:
        return "raise the limit on the size of files (ulimit -f), which also applies to memory that ranks share"
    if error.filename is not None and error.filename == sys.executable:
        return (
            "ranks are processes of this interpreter, which cannot be run here: allow that, use another one, "
            "or work in one process (one worker, backend local)"
        )
    return ""


def _warn_if_oversubscribed(size: int) -> None:
    cores = usable_cores()
    if size > cores:
        logger.warning("%d ranks on %d usable cores: this works, but more slowly", size, cores)


def _finish(request: _LaunchRequest, supervisor: Supervisor) -> None:
    """Wait for all ranks, then raise what went wrong: `WorkerError`, `TimeoutError`, or the interrupt."""
    try:
        in_time = supervisor.watch(request.deadline)
        late = supervisor.running_ranks()  # before they are stopped: the error names them
        if not in_time:
            supervisor.stop(signal.SIGTERM, INTERRUPT_GRACE_S)
            raise request.timed_out(late)
        if late:
            supervisor.stop_after_failure()
    except BaseException as error:
        # A terminal's Ctrl-C reaches this process only, because ranks lead separate process groups: forward it. A
        # second one ends the wait, and the ranks are killed.
        is_interrupt = isinstance(error, KeyboardInterrupt) and not isinstance(error, TerminatedError)
        supervisor.stop(signal.SIGINT if is_interrupt else signal.SIGTERM, INTERRUPT_GRACE_S)
        raise
    failed = [process for process in supervisor.ended if request.has_failed(process)]
    if failed:
        failure = first_failure_error(failed, request.size)
        raise failure from failure.inner


# The rank that caused a failure, and the text of the error.


def values(ended: Sequence[RankProcess]) -> list[Any]:
    """Return every rank's return value, in rank order."""
    return [_value(process) for process in sorted(ended, key=lambda process: process.rank)]


def _value(process: RankProcess) -> Any:
    try:
        return process.result.value()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        message = f"{_label(process, None)} returned a value that cannot be unpickled here: {reason}"
        raise WorkerError(process.rank, 0, None, message) from error


def first_failure_error(failed: Sequence[RankProcess], size: int) -> WorkerError:
    """Return the error of the rank that failed first. failed: in the order in which they ended."""
    failures = {process.rank: process.result.failure() for process in failed}
    absent = _absent_ranks(failed, failures)
    if absent:
        return _never_joined(absent, failed, failures, size)
    # A stable sort: ranks that failed because of another one go to the end, otherwise the order of ends decides.
    cause, *other_failures = sorted(failed, key=lambda process: _is_secondary(process, failures[process.rank]))
    primary = [other for other in other_failures if not _is_secondary(other, failures[other.rank])]
    failure = failures[cause.rank]
    all_healthy = not _root_cause_unknown(cause, failure, other_failures)
    parts = [
        f"Run stopped: {_headline(cause, failure)}",
        # A rank that wrote no exception crashed or was killed: the end of its stderr is all there is.
        failure.traceback_text if failure else _stderr_tail(cause),
        *(f"Also, {_headline(other, failures[other.rank])}" for other in primary),
        _other_ranks_sentence(size - 1 - len(primary), all_healthy=all_healthy),
    ]
    inner = original_exception(failure) if failure else None
    return WorkerError(cause.rank, cause.exit_code or 0, inner, "\n".join(filter(None, parts)))


def _absent_ranks(failed: Sequence[RankProcess], failures: Mapping[int, RankFailure | None]) -> list[RankProcess]:
    """Return the ranks that hung before they joined the others, which gave up waiting and are not to blame.

    Empty if some rank failed in another way: that may be why another one did not come.
    """
    missing = {rank for failure in failures.values() if failure for rank in failure.missing}
    absent = [process for process in failed if process.rank in missing and process.was_stopped]
    explained = [
        process
        for process in failed
        if process in absent
        or _is_secondary(process, failure := failures[process.rank])
        or (failure and failure.missing)
    ]
    return absent if len(explained) == len(failed) else []


def _never_joined(
    absent: Sequence[RankProcess],
    failed: Sequence[RankProcess],
    failures: Mapping[int, RankFailure | None],
    size: int,
) -> WorkerError:
    cause = absent[0]
    waited = [
        f"{_headline(process, failure)}"
        for process in failed
        if (failure := failures[process.rank]) and failure.missing
    ]
    parts = [
        *(f"Run stopped: {_label(process, None)} {_why_absent(process)}" for process in absent),
        _stderr_tail(cause),
        *waited[:1],
        _other_ranks_sentence(size - len(absent), all_healthy=True),
    ]
    return WorkerError(cause.rank, cause.exit_code or 0, None, "\n".join(filter(None, parts)))


def _why_absent(process: RankProcess) -> str:
    how = "was stopped, by SIGSTOP or a debugger, and" if process.was_frozen else "hung, or was still starting, and"
    return f"{how} did not join the other ranks"


def _is_secondary(process: RankProcess, failure: RankFailure | None) -> bool:
    return process.was_stopped or bool(process.exit_reason) or (failure is not None and failure.is_consequence)


def _headline(process: RankProcess, failure: RankFailure | None) -> str:
    label = _label(process, failure)
    code = process.exit_code or 0
    if process.exit_reason:
        return f"{label} {process.exit_reason}"
    if failure is None:
        return f"{label} {ending_of(code)}"
    # A signal after the exception came while the interpreter was exiting; the exception is the cause.
    return f"{label} raised {failure.summary}" + (f", then {ending_of(code)}" if code < 0 else "")


def _label(process: RankProcess, failure: RankFailure | None) -> str:
    host = failure.host if failure else socket.gethostname()
    return str(Peer(process.rank, host, process.pid))


def _stderr_tail(process: RankProcess) -> str:
    return f"Last lines of its stderr:\n{process.stderr_tail}" if process.stderr_tail else ""


def _root_cause_unknown(cause: RankProcess, failure: RankFailure | None, other_failures: Sequence[RankProcess]) -> bool:
    """Return whether all errors are consequences, and some rank had to be stopped without an error: it hung."""
    return _is_secondary(cause, failure) and any(other.was_stopped for other in other_failures)


def _other_ranks_sentence(count: int, *, all_healthy: bool) -> str:
    if count == 0:
        return ""
    if not all_healthy:
        return "All other ranks were stopped."
    if count == 1:
        return "1 other rank was healthy and has exited."
    return f"{count} other ranks were healthy and have exited."


@contextmanager
def standard_descriptors_taken() -> Iterator[None]:
    """Keep files that are opened in the block from getting the descriptor of a closed standard stream.

    Files keep their descriptors when ranks inherit them, and a rank's own streams have 0, 1 and 2: a task file that got
    the descriptor of a closed stdin would be lost to the rank. Costs one descriptor for each closed stream.
    """
    with ExitStack() as stack:
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= LAST_STANDARD:
            stack.callback(os.close, descriptor)
        os.close(descriptor)  # the first one above 2
        yield

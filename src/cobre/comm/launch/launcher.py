"""Starts ranks and waits for them: `run` for a function, `run_script` for a script."""

import errno
import logging
import math
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from cobre._native import unlink_segment
from cobre.comm.cores import usable_cores
from cobre.comm.errors import InitializationFailedError, TerminatedError, stop_exception
from cobre.comm.launch.environment import check_size, rank_environments, segment_name
from cobre.comm.launch.fork_server import ForkServerGoneError
from cobre.comm.launch.messages import OnMessage, Output, Stream, discard, forward, with_messages
from cobre.comm.launch.orphan_reaper import OrphanReaper
from cobre.comm.launch.orphan_reaper_process import unlink_segments
from cobre.comm.launch.outcome import first_failure_error, has_crashed, has_no_value, values
from cobre.comm.launch.payload import FunctionTask, ScriptTask, Startup, Task, WorkerError, anonymous_file, write_task
from cobre.comm.launch.rank_process import RankProcess, RankStarter
from cobre.comm.launch.signals import SignalForwarder, forwarding_signals, interrupts_blocked
from cobre.comm.launch.spawning import SharedDescriptors
from cobre.comm.launch.standard_descriptors import standard_descriptors_taken
from cobre.comm.types import MAX_SELECT_S

# The event loop, in the calling thread, that forwards the ranks' output, reaps ranks, and stops the rest.


logger = logging.getLogger("cobre.comm")


POLL_S = 0.05  # between two looks at processes that have no pidfd

FAILURE_GRACE_S = 2.0  # for the other ranks to raise errors of their own, which name the cause

HURRY_GRACE_S = 15.0  # for ranks that were told twice to end, and may have a large policy to write

INTERRUPT_GRACE_S = 5.0  # for ranks to clean up after Ctrl-C, SIGTERM or the timeout

KILL_GRACE_S = 30.0  # SIGKILL cannot be ignored, but it does not reach a process in an uninterruptible sleep


class Supervisor:
    """Supervises ranks until all have ended. Its `with` block leaves no process and no descriptor behind."""

    def __init__(self, output: Output, has_failed: Callable[[RankProcess], bool], reaper: OrphanReaper) -> None:
        self._output = output
        self._has_failed = has_failed
        self._reaper = reaper
        self._selector = selectors.DefaultSelector()
        self._running: list[RankProcess] = []
        self._any_failed = False
        self._is_hurried = False
        # A signal handler that only sets a deadline does not end a wait that has none: Python resumes it.
        self._wake_reader, self._wake_writer = os.pipe()
        self._selector.register(self._wake_reader, selectors.EVENT_READ, (self._woken, None))
        self.ended: list[RankProcess] = []
        """The ranks that have ended, in that order."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._output = discard  # it may be the output that raised
        # Ranks that have ended are gone from `_running` by now, so after an orderly run there is nothing to kill.
        while self._running:
            try:
                self._kill()
            except (KeyboardInterrupt, SystemExit):  # a second Ctrl-C must not leave processes behind
                continue
        self._selector.close()
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    def add(self, process: RankProcess) -> None:
        """Supervise one more rank, which has been started."""
        # Listed first: if registering it with the reaper fails, leaving the block still kills this rank.
        self._running.append(process)
        self._reaper.register(process.pid)
        for stream in process.streams:
            self._selector.register(stream.descriptor, selectors.EVENT_READ, (self._read, stream))
        if process.exit_descriptor is not None:
            self._selector.register(process.exit_descriptor, selectors.EVENT_READ, (self._collect, process))

    def watch(self, deadline: float | None) -> bool:
        """Wait until all ranks have ended or one has failed; False if the deadline came first.

        After `hurry` until all ranks have ended, in whatever way; those that do not are killed.
        """

        def is_done() -> bool:
            return not self._running or self._any_failed or self._is_hurried

        if not self._handle_events_until(is_done, deadline):
            return False
        if self._is_hurried and not self._handle_events_for(HURRY_GRACE_S):
            self._kill()
        return True

    def hurry(self) -> None:
        """Give ranks that have been told to end HURRY_GRACE_S; called by a signal handler, while `watch` waits."""
        self._is_hurried = True
        os.write(self._wake_writer, b"!")

    def stop_after_failure(self) -> None:
        """Give the other ranks FAILURE_GRACE_S to fail by themselves, which names the cause; then stop them."""
        if not self._handle_events_for(FAILURE_GRACE_S):
            self.stop(signal.SIGTERM, FAILURE_GRACE_S)

    def stop(self, signum: signal.Signals, grace_s: float) -> None:
        """Send a signal to all ranks, and kill those that are still running after `grace_s` seconds."""
        # Signal all, then wait: they end concurrently.
        self._signal_all(signum)
        if not self._handle_events_for(grace_s):
            self._kill()

    def forward(self, signum: signal.Signals) -> None:
        """Forward a signal to all ranks, which then end in their own way; none is killed."""
        for process in list(self._running):
            process.signal_group(signum)

    def running_ranks(self) -> list[int]:
        """The ranks that have not ended yet."""
        return [process.rank for process in self._running]

    def _kill(self) -> None:
        self._signal_all(signal.SIGKILL)
        if not self._handle_events_for(KILL_GRACE_S):
            pids = [process.pid for process in self._running]
            logger.error("processes %s did not exit within %g s of SIGKILL; giving up on them", pids, KILL_GRACE_S)
            for process in list(self._running):
                self._forget(process)

    def _signal_all(self, signum: signal.Signals) -> None:
        for process in self._running:
            process.stop(signum)

    def _handle_events_for(self, seconds: float) -> bool:
        """Handle events until all ranks have ended; False if the time was up first."""
        return self._handle_events_until(lambda: not self._running, time.monotonic() + seconds)

    def _handle_events_until(self, is_done: Callable[[], bool], deadline: float | None) -> bool:
        while not is_done():
            remaining = MAX_SELECT_S if deadline is None else deadline - time.monotonic()
            if remaining <= 0:
                return False
            self._handle_events(min(remaining, MAX_SELECT_S))
        return True

    def _handle_events(self, timeout_s: float) -> None:
        # No pidfd (another platform, or too many open files): nothing wakes the selector when these end.
        unwatched = [process for process in self._running if process.exit_descriptor is None]
        if unwatched:
            timeout_s = min(POLL_S, timeout_s)
        for key, _ in self._selector.select(timeout_s):
            handle, subject = key.data
            handle(subject)
        for process in unwatched:
            if process in self._running and process.has_exited():
                self._collect(process)

    def _woken(self, _: None) -> None:
        os.read(self._wake_reader, 1)

    def _read(self, stream: Stream) -> None:
        # A rank that was reaped earlier in the same round has finished its streams already.
        if not stream.has_ended():
            stream.read(self._output)
            if stream.has_ended():
                self._selector.unregister(stream.descriptor)

    def _collect(self, process: RankProcess) -> None:
        # Out of the poll set first: `collect` reads the rest directly, and then closes the descriptors.
        for stream in process.streams:
            if not stream.has_ended():
                self._selector.unregister(stream.descriptor)
        # In this order: should this process be killed in between, the reaper still knows the group as long as it has
        # members; and the leader is reaped last, so that the group's number is not reused before.
        process.signal_group(signal.SIGKILL)
        self._reaper.unregister(process.pid)
        try:
            process.collect(self._output)
        finally:
            self._forget(process)
            self.ended.append(process)
            self._any_failed = self._any_failed or self._has_failed(process)

    def _forget(self, process: RankProcess) -> None:
        self._running.remove(process)
        if process.exit_descriptor is not None:
            self._selector.unregister(process.exit_descriptor)
        process.close()


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
    their own way. So is a second one, as another signal of these where there is one, since the kernel merges equal
    ones; ranks that have not ended HURRY_GRACE_S later are killed. A third one, or the first one while ranks are being
    started, stops the run. What ends without values after a second one, or at a third, raises `KeyboardInterrupt`; for
    SIGTERM `TerminatedError`, which is a `KeyboardInterrupt`. Effective only in the main thread, as Python has it.
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
            forwarder.hurry = supervisor.hurry
            forwarder.send_to_ranks = supervisor.forward
            try:
                _finish(request, supervisor)
            except WorkerError as error:
                if forwarder.second is None:
                    raise
                raise stop_exception(forwarder.second) from error
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
    """`sys.path` as the interpreter itself sets it: the script's directory first, or the current one for a module."""
    if sys.flags.safe_path:
        return list(sys.path)
    folder = Path.cwd() if is_module else Path(program).resolve().parent
    return [str(folder), *sys.path[1:]]


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
        """The error to raise at the deadline. late: the ranks that were still running."""
        return TimeoutError(f"the run took longer than {self.timeout_s} s; ranks {list(late)} were still running")


@contextmanager
def _started(request: _LaunchRequest, task: Task, startup: Startup) -> Iterator[Supervisor]:
    """Start all ranks. When the block is left, none of them is running any more, whatever happened in it."""
    environments = rank_environments(request.backend, request.size, request.environment)
    if not sys.executable:
        raise InitializationFailedError(
            request.backend,
            "ranks are processes of the Python interpreter, and this program does not know where that is "
            "(sys.executable is empty, as in programs that embed Python): set sys.executable, or work in one process",
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
                # Ctrl-C between a start and `add` would leave a process that nobody stops.
                with interrupts_blocked():
                    supervisor.add(starter.start(rank))
        yield supervisor


def _unlink_segments(name: str) -> None:
    """Unlink the ranks' segment and those derived from its name, which are left if all ranks are killed at once."""
    unlink_segment(f"/{name}")
    unlink_segments({name})


@contextmanager
def _pipe() -> Iterator[int]:
    """The reading end of a pipe whose writing end stays in this process: the ranks' lifeline."""
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
    """What to do about a rank that could not be started; empty where nothing can be said."""
    if error.errno in (errno.EAGAIN, errno.EMFILE, errno.ENFILE):
        return "try fewer ranks, or raise the limits on open files (ulimit -n) and processes (ulimit -u)"
    if error.errno in (errno.ENOMEM, errno.ENOSPC):
        return "there is too little memory for them: try fewer ranks"
    if error.errno == errno.EFBIG:
        return "raise the limit on the size of files (ulimit -f), which holds for what ranks exchange in memory, too"
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
        # A terminal's Ctrl-C reaches this process only, because ranks lead process groups of their own: forward it. A
        # second one ends the wait, and the ranks are killed.
        is_interrupt = isinstance(error, KeyboardInterrupt) and not isinstance(error, TerminatedError)
        supervisor.stop(signal.SIGINT if is_interrupt else signal.SIGTERM, INTERRUPT_GRACE_S)
        raise
    failed = [process for process in supervisor.ended if request.has_failed(process)]
    if failed:
        failure = first_failure_error(failed, request.size)
        raise failure from failure.inner

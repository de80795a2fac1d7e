"""Start ranks and wait for them: `run` for a function, `run_script` for a script."""

import logging
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cobre._native import unlink_segment
from cobre.comm.cores import usable_cores
from cobre.comm.errors import InitializationFailedError, TerminatedError
from cobre.comm.launch.environment import check_size, rank_environments, segment_name
from cobre.comm.launch.messages import OnMessage, with_messages
from cobre.comm.launch.orphan_reaper import OrphanReaper
from cobre.comm.launch.orphan_reaper_process import unlink_segments
from cobre.comm.launch.outcome import has_crashed, has_no_value, values, worker_error
from cobre.comm.launch.output import Output, forward
from cobre.comm.launch.payload import FunctionTask, ScriptTask, Startup, Task, anonymous_file, write_task
from cobre.comm.launch.rank_process import RankProcess
from cobre.comm.launch.rank_starter import RankStarter
from cobre.comm.launch.signals import SignalsToRanks, interrupts_held, passing_on
from cobre.comm.launch.spawning import SharedDescriptors
from cobre.comm.launch.standard_descriptors import standard_descriptors_taken
from cobre.comm.launch.supervisor import INTERRUPT_GRACE_S, Supervisor
from cobre.comm.launch.template import TemplateGoneError

logger = logging.getLogger("cobre.comm")

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
    pass_on: Sequence[signal.Signals] = (),
    preload: Sequence[str] = (),
) -> list[Value]:
    """Call `function(comm, *args, **kwargs)` on `size` ranks and return their values in rank order.

    Ranks are forks of a fresh interpreter that has loaded Cobre once, or fresh interpreters themselves; nothing of this
    process but what the function carries is in them. It may come from a script, a shell or a notebook; no main guard is
    needed.

    environment: more variables for all ranks; `COBRE_SHM_*` options tune the world (`COBRE_SHM_WAIT`, ...).
    timeout_s: stop the run and raise `TimeoutError` when it takes longer; None: no limit.
    output: where the ranks' lines go; by default this process's stdout and stderr, with the rank in front.
    on_message: called here with the rank and each line that a rank gives to `tell_parent`, in that rank's order.
    pass_on: signals that go to all ranks when they come here the first time, so that the ranks can end in their own
    way; the second one ends the run: SIGTERM by `TerminatedError`, which is a `KeyboardInterrupt` too, and so does the
    first one while ranks are being started. Only in the main thread, as Python has it.
    preload: names of modules that all ranks need, which are imported once before ranks are forked. Where one of them
    starts a thread, each rank imports by itself.

    The first failure stops all ranks and raises `WorkerError`. Ctrl-C stops them and raises
    `KeyboardInterrupt`.
    """
    if not callable(function):
        raise TypeError(f"the first argument must be a function of a communicator, got {function!r}")
    task = FunctionTask(function, tuple(args), dict(kwargs or {}))
    request = _LaunchRequest(
        check_size(backend, size),
        backend,
        dict(environment or {}),
        output,
        timeout_s,
        on_message=on_message,
        preload=tuple(preload),
    )
    signals = SignalsToRanks()
    with ExitStack() as stack:
        with passing_on(pass_on, signals):
            supervisor = stack.enter_context(_started(request, task, Startup.of_this_process()))
            signals.pass_on = supervisor.pass_on
            _finish(request, supervisor)
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
    """Run a script, or a module by its name, as `__main__` on `size` ranks.

    Each rank calls `create_communicator()` and is well when its exit code is 0. The rest is as in `run`.
    """
    request = _LaunchRequest(
        check_size(backend, size), backend, dict(environment or {}), output, timeout_s, has_crashed
    )
    startup = Startup(_script_path(program, is_module), [program, *args], {})
    with _started(request, ScriptTask(program, is_module), startup) as supervisor:
        _finish(request, supervisor)


def _script_path(program: str, is_module: bool) -> list[str]:
    """As the interpreter itself does: the script's folder first, or the current one for a module."""
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
            raise ValueError(f"timeout_s must be a positive number of seconds or None, got {self.timeout_s}")
        deadline = None if self.timeout_s is None else time.monotonic() + self.timeout_s
        object.__setattr__(self, "deadline", deadline)

    def timed_out(self, late: Sequence[int]) -> TimeoutError:
        """The error at the deadline."""
        return TimeoutError(f"the run took longer than {self.timeout_s} s; ranks {list(late)} were still running")


@contextmanager
def _started(request: _LaunchRequest, task: Task, startup: Startup) -> Iterator[Supervisor]:
    """Start all ranks; when the block is left none is running any more, whatever happened in it."""
    environments = rank_environments(request.backend, request.size, request.environment)
    # The stack unwinds in reverse: first the supervisor, which kills what still runs; then the template, whose children
    # the ranks may be; then the reaper, which must outlive both; then the lifeline and the files.
    with ExitStack() as stack:
        stack.enter_context(standard_descriptors_taken())
        task_file = stack.enter_context(anonymous_file("cobre-task"))
        write_task(task_file, startup, task)
        _warn_of_crowding(request.size)
        with _startup_errors(request):
            # Ranks hold the reading end; they go when the writing end does, which only this process has.
            shared = SharedDescriptors(task_file.fileno(), stack.enter_context(_pipe()))
            results = [stack.enter_context(anonymous_file("cobre-result")) for _ in range(request.size)]
            reaper = stack.enter_context(OrphanReaper())
            if (name := segment_name(environments[0])) is not None:
                reaper.register_segment(name)
                stack.callback(_unlink_segments, name)
            listens, output = request.on_message is not None, with_messages(request.output, request.on_message)
            ranks = stack.enter_context(RankStarter(environments, results, shared, listens=listens))
            ranks.load(request.preload, reaper, output, request.deadline)
            supervisor = stack.enter_context(Supervisor(output, request.has_failed, reaper))
            for rank in range(request.size):
                # Ctrl-C between a start and `add` would leave a process that nobody knows of.
                with interrupts_held():
                    supervisor.add(ranks.start(rank))
        yield supervisor


def _unlink_segments(name: str) -> None:
    """Remove the ranks' segment and those named after it, which ranks that were all killed at once have left."""
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
    except TimeoutError:
        raise request.timed_out(range(request.size)) from None
    except TemplateGoneError as error:
        raise InitializationFailedError(
            request.backend, f"{request.size} ranks could not be started: {error}; start the run again"
        ) from error
    except OSError as error:
        raise InitializationFailedError(
            request.backend,
            f"{request.size} ranks could not be started: {error}; try fewer ranks, or raise the limits of open "
            "files (ulimit -n) and processes (ulimit -u)",
        ) from error


def _warn_of_crowding(size: int) -> None:
    cores = usable_cores()
    if size > cores:
        logger.warning("%d ranks share %d usable cores: this works, but more slowly", size, cores)


def _finish(request: _LaunchRequest, supervisor: Supervisor) -> None:
    """Wait for all ranks, then raise what went wrong: `WorkerError`, `TimeoutError`, or the interrupt."""
    try:
        in_time = supervisor.watch(request.deadline)
        late = supervisor.running_ranks()
        if not in_time:
            supervisor.stop(signal.SIGTERM, INTERRUPT_GRACE_S)
            raise request.timed_out(late)
        if late:
            supervisor.stop_after_failure()
    except BaseException as error:
        # A terminal's Ctrl-C came to this process only: pass it on. A second one ends the waiting.
        is_interrupt = isinstance(error, KeyboardInterrupt) and not isinstance(error, TerminatedError)
        supervisor.stop(signal.SIGINT if is_interrupt else signal.SIGTERM, INTERRUPT_GRACE_S)
        raise
    failed = [process for process in supervisor.ended if request.has_failed(process)]
    if failed:
        failure = worker_error(failed, request.size)
        raise failure from failure.inner

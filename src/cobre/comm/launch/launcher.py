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
from cobre.comm.launch.environment import check_size, meeting_name, rank_environments
from cobre.comm.launch.keeper import Keeper
from cobre.comm.launch.keeper_process import forget
from cobre.comm.launch.messages import OnMessage, with_messages
from cobre.comm.launch.outcome import has_crashed, has_no_value, values, worker_error
from cobre.comm.launch.output import Output, forward
from cobre.comm.launch.payload import FunctionTask, ScriptTask, Startup, Task, anonymous_file, write_task
from cobre.comm.launch.rank_process import RankProcess
from cobre.comm.launch.rank_starter import RankStarter
from cobre.comm.launch.signals import SignalsToRanks, interrupts_held, passing_on
from cobre.comm.launch.starting import Inheritance
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
    world = _World(
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
            supervisor = stack.enter_context(_started(world, task, Startup.of_this_process()))
            signals.pass_on = supervisor.pass_on
            _finish(world, supervisor)
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
    world = _World(check_size(backend, size), backend, dict(environment or {}), output, timeout_s, has_crashed)
    startup = Startup(_script_path(program, is_module), [program, *args], {})
    with _started(world, ScriptTask(program, is_module), startup) as supervisor:
        _finish(world, supervisor)


def _script_path(program: str, is_module: bool) -> list[str]:
    """As the interpreter itself does: the script's folder first, or the current one for a module."""
    if sys.flags.safe_path:
        return list(sys.path)
    folder = Path.cwd() if is_module else Path(program).resolve().parent
    return [str(folder), *sys.path[1:]]


@dataclass(frozen=True, slots=True)
class _World:
    """What was asked for. deadline: of the whole run, on the monotonic clock."""

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
def _started(world: _World, task: Task, startup: Startup) -> Iterator[Supervisor]:
    """All ranks, running; at the end none is."""
    environments = rank_environments(world.backend, world.size, world.environment)
    with ExitStack() as stack:
        task_file = stack.enter_context(anonymous_file("cobre-task"))
        write_task(task_file, startup, task)
        _warn_of_crowding(world.size)
        with _startup_errors(world):
            # Ranks hold the reading end; they go when the writing end does, which only this process has.
            shared = Inheritance(task_file.fileno(), stack.enter_context(_pipe()))
            results = [stack.enter_context(anonymous_file("cobre-result")) for _ in range(world.size)]
            keeper = stack.enter_context(Keeper())
            if (name := meeting_name(environments[0])) is not None:
                keeper.guard_segment(name)
                stack.callback(_forget_segments, name)
            listens, output = world.on_message is not None, with_messages(world.output, world.on_message)
            ranks = stack.enter_context(RankStarter(environments, results, shared, listens=listens))
            ranks.load(world.preload, keeper, output, world.deadline)
            supervisor = stack.enter_context(Supervisor(output, world.has_failed, keeper))
            for rank in range(world.size):
                with interrupts_held():
                    supervisor.add(ranks.start(rank))
        yield supervisor


def _forget_segments(name: str) -> None:
    """The one in which the ranks met, and what was named after it and left by ranks that were all killed at once."""
    unlink_segment(f"/{name}")
    forget({name})


@contextmanager
def _pipe() -> Iterator[int]:
    """The reading end of a pipe whose writing end stays here."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


@contextmanager
def _startup_errors(world: _World) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise world.timed_out(range(world.size)) from None
    except TemplateGoneError as error:
        raise InitializationFailedError(
            world.backend, f"{world.size} ranks could not be started: {error}; start the run again"
        ) from error
    except OSError as error:
        raise InitializationFailedError(
            world.backend,
            f"{world.size} ranks could not be started: {error}; try fewer ranks, or raise the limits of open "
            "files (ulimit -n) and processes (ulimit -u)",
        ) from error


def _warn_of_crowding(size: int) -> None:
    cores = usable_cores()
    if size > cores:
        logger.warning("%d ranks share %d usable cores: this works, but more slowly", size, cores)


def _finish(world: _World, supervisor: Supervisor) -> None:
    """Wait for all ranks; raise what went wrong when all have gone."""
    try:
        in_time = supervisor.watch(world.deadline)
        late = supervisor.running_ranks()
        if not in_time:
            supervisor.stop(signal.SIGTERM, INTERRUPT_GRACE_S)
            raise world.timed_out(late)
        if late:
            supervisor.stop_after_failure()
    except BaseException as error:
        # A terminal's Ctrl-C came to this process only: pass it on. A second one ends the waiting.
        is_interrupt = isinstance(error, KeyboardInterrupt) and not isinstance(error, TerminatedError)
        supervisor.stop(signal.SIGINT if is_interrupt else signal.SIGTERM, INTERRUPT_GRACE_S)
        raise
    failed = [process for process in supervisor.ended if world.has_failed(process)]
    if failed:
        failure = worker_error(failed, world.size)
        raise failure from failure.inner

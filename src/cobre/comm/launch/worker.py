"""The process of one rank, started by the launcher only; `worker_process` is its program.

It prints nothing of its own. An exception goes to the parent, which prints the one that matters.
"""

import contextlib
import faulthandler
import os
import runpy
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO

from cobre._native import kill_group_with_parent, kill_process_group
from cobre.comm.errors import TerminatedError
from cobre.comm.factory import create_communicator
from cobre.comm.launch.environment import RANK_VARIABLES, segment_name
from cobre.comm.launch.messages import message_descriptors
from cobre.comm.launch.payload import FunctionTask, ResultWriter, ScriptTask, TaskReader, describe_failure

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True, slots=True)
class RankDescriptors:
    """What a rank inherits: its parent, the task, the file for its result, and the pipe that closes with the launcher.

    parent_pid: of the process that the kernel tells it the end of: the launcher, or the template that it is a fork of.
    """

    parent_pid: int
    task: int
    result: int
    lifeline: int


def main() -> None:
    """Be the rank that the command line describes."""
    perform_as_rank(RankDescriptors(*map(int, sys.argv[1:])))


def perform_as_rank(given: RankDescriptors) -> NoReturn:
    """Do the task of the inherited file and leave the result in the other one."""
    # Tied to the thread that started this process: it stays where it is until all ranks have gone.
    kill_group_with_parent(given.parent_pid, segment_name(os.environ) or "")
    _show_rank()
    _hold_lifeline(given.lifeline, given.parent_pid)
    for descriptor in (given.task, given.result, given.lifeline, *message_descriptors()):
        os.set_inheritable(descriptor, False)
    faulthandler.enable(all_threads=False)
    _speak_utf8(sys.stdout, sys.stderr)
    sys.exit(_perform(TaskReader(given.task), ResultWriter(given.result)))


def take_no_interrupts_yet() -> None:
    """Until its task begins Ctrl-C ends a rank without a word: Python would show a traceback of its imports."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started the launcher wants none
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _perform(reader: TaskReader, result: ResultWriter) -> int:
    try:
        _take_interrupts()
        reader.startup().apply()
        task = reader.task()
        if isinstance(task, ScriptTask):
            _run_script(task)
        else:
            result.write_value(_call_function(task))
            _ignore_interrupts()
    except SystemExit as error:
        result.write_failure(describe_failure(error))
        raise  # the interpreter knows best which code and which text it means
    except BaseException as error:  # noqa: BLE001 - whatever it was, the parent must know
        _ignore_interrupts()
        result.write_failure(describe_failure(error))
        return _exit_code(error)
    return 0


def _take_interrupts() -> None:
    """From now on Ctrl-C is an exception, which the parent is told of."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _ignore_interrupts() -> None:
    """All is done but leaving, which nobody needs to interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _exit_code(error: BaseException) -> int:
    if isinstance(error, TerminatedError):
        return TERMINATED
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _call_function(task: FunctionTask) -> object:
    with create_communicator() as comm:
        return task.function(comm, *task.args, **task.kwargs)


def _run_script(task: ScriptTask) -> None:
    if task.is_module:
        runpy.run_module(task.program, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(task.program, run_name="__main__")


def _hold_lifeline(descriptor: int, parent_pid: int) -> None:
    """End with the launcher on every platform: it alone holds the other end, so end of file is its death.

    A second way beside the kernel's parent-death signal, which only Linux has and which follows the parent only: the
    parent may be the template.
    """

    def wait() -> None:
        os.read(descriptor, 1)  # nobody ever writes: this returns at end of file
        if os.getppid() == parent_pid:  # a template; a stopped one would not notice
            with contextlib.suppress(OSError):
                os.kill(parent_pid, signal.SIGCONT)
        kill_process_group()

    threading.Thread(target=wait, name="cobre-lifeline", daemon=True).start()


def _show_rank() -> None:
    """Be known to `ps`, `top` and `pkill` by the rank; the command line is that of all forks."""
    rank = next((os.environ[name] for name in RANK_VARIABLES if name in os.environ), "0")
    with contextlib.suppress(OSError):  # elsewhere than on Linux
        Path("/proc/self/comm").write_text(f"cobre rank {rank}")


def _speak_utf8(*streams: TextIO) -> None:
    """The parent reads UTF-8, whatever the locale says."""
    for stream in streams:
        stream.reconfigure(encoding="utf-8", errors=stream.errors)  # type: ignore[attr-defined]

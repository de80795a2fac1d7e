"""The process of one rank, started by the launcher; `child_program` is its program.

It prints nothing of its own. Exceptions are sent to the parent, which prints the one that matters.
"""

import atexit
import contextlib
import faulthandler
import gc
import io
import os
import runpy
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO

from cobre._native import exit_without_teardown, kill_group_with_parent, kill_process_group
from cobre.comm import variables
from cobre.comm.exit_report import exit_code_for
from cobre.comm.factory import create_communicator
from cobre.comm.launch.messages import message_descriptors
from cobre.comm.launch.payload import FunctionTask, ResultWriter, ScriptTask, TaskReader, describe_failure
from cobre.comm.launch.spawning import segment_name


@dataclass(frozen=True, slots=True)
class RankDescriptors:
    """Descriptors that a rank inherits: of the task, of its result file, and of the lifeline.

    parent_pid: the launcher or the fork server, whose death the kernel signals.
    """

    parent_pid: int
    task: int
    result: int
    lifeline: int


def main() -> None:
    """Run as the rank that the command line describes."""
    run_as_rank(RankDescriptors(*map(int, sys.argv[1:])))


def run_as_rank(inherited: RankDescriptors) -> NoReturn:
    """Read the task, run it, write its result, and exit."""
    # The kernel's parent-death signal is tied to the thread that started this process, not to the process: the launcher
    # starts ranks from the thread that then supervises them until all have ended.
    kill_group_with_parent(inherited.parent_pid, segment_name(os.environ) or "")
    _set_process_name()
    watch_lifeline(inherited.lifeline, inherited.parent_pid)
    # What the task starts must not inherit these: it could hold the message pipe open after the rank has ended.
    for descriptor in (inherited.task, inherited.result, inherited.lifeline, *message_descriptors()):
        os.set_inheritable(descriptor, False)
    # A crash in native code then prints the Python stack to stderr, whose last lines the parent quotes.
    faulthandler.enable(all_threads=False)
    _use_utf8(sys.stdout, sys.stderr)
    exit_code = _run_task(TaskReader(inherited.task), ResultWriter(inherited.result))
    exit_rank(exit_code)


def end_silently_on_interrupt() -> None:
    """Let Ctrl-C end a rank without output until its task begins: Python would print a traceback of its imports."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else SIGINT is ignored, and stays so
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run_task(reader: TaskReader, result: ResultWriter) -> int:
    try:
        # Inside the block: from here on an interrupt is reported like any other exception.
        _raise_on_interrupt()
        reader.startup().apply()
        task = reader.task()
        if isinstance(task, ScriptTask):
            _run_script(task)
        else:
            result.write_value(call_function(task))
            _ignore_interrupts()  # a late Ctrl-C must not turn a result into a failure
    except SystemExit as error:
        result.write_failure(describe_failure(error))
        raise  # the interpreter prints its text, if any, and turns it into an exit code
    except BaseException as error:  # noqa: BLE001 - the parent reports any error
        _ignore_interrupts()
        result.write_failure(describe_failure(error))
        return exit_code_for(error)
    return 0


def _raise_on_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from now on, which is sent to the parent like any other exception."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C while the result is written and the process exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def call_function(task: FunctionTask) -> object:
    """Join the world, call the task's function with the communicator, and return its value."""
    with create_communicator() as comm:
        return task.function(comm, *task.args, **task.kwargs)


def _run_script(task: ScriptTask) -> None:
    if task.is_module:
        runpy.run_module(task.program, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(task.program, run_name="__main__")


def watch_lifeline(descriptor: int, parent_pid: int) -> None:
    """End with the launcher on every platform: only the launcher holds the other end, so end of file is its death.

    This complements the kernel's parent-death signal, which only Linux has, and which is about the parent only: that
    may be the fork server.
    """

    def wait() -> None:
        os.read(descriptor, 1)  # never written to: this returns at end of file, and releases the GIL until then
        # The launcher is dead, so a parent that lives is the fork server. If it is stopped (SIGSTOP), it must be
        # continued to notice that, too.
        if os.getppid() == parent_pid:
            with contextlib.suppress(OSError):
                os.kill(parent_pid, signal.SIGCONT)
        kill_process_group()

    threading.Thread(target=wait, name="cobre-lifeline", daemon=True).start()


def _set_process_name() -> None:
    """Show the rank in `ps` and `top`: all forks have the same command line."""
    rank = next((os.environ[name] for name in variables.RANKS if name in os.environ), "0")
    with contextlib.suppress(OSError):  # Linux only
        Path("/proc/self/comm").write_text(f"cobre rank {rank}")


def _use_utf8(*streams: TextIO) -> None:
    """Write UTF-8 in any locale: the parent reads UTF-8."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):  # as the interpreter makes them; a preloaded module may replace them
            stream.reconfigure(encoding="utf-8", errors=stream.errors)


# The exit of a rank: everything that an interpreter does at its end, except tearing itself down.

WritableFile = io.TextIOWrapper | io.BufferedWriter


_opened_before_fork: list[WritableFile] = []


def remember_open_files() -> None:
    """Remember the files that are open before the fork server freezes its objects, which the collector then hides.

    A module that all ranks import may have opened a file that a rank then writes to, such as a log.
    """
    _opened_before_fork.extend(_open_files())


def exit_rank(code: int) -> NoReturn:
    """Wait for threads, call exit handlers, flush files, and exit.

    Not by `sys.exit`: Python would then destroy every module and object one by one. That writes to nearly all pages
    that a forked rank shares with the fork server, so that the kernel copies them first: on four ranks 0.3 s of CPU
    time for memory that is given back at once. `multiprocessing` ends its children like this, too. It does not flush
    buffered files, however, whose last lines would be lost; they are flushed here.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for non-daemon threads, as at any exit
    atexit._run_exitfuncs()
    try:
        _flush_files()
    except (OSError, ValueError):  # a full disk, a closed pipe: Python prints its own message
        sys.exit(code)
    exit_without_teardown(code)


def _flush_files() -> None:
    """Flush the standard streams, and whatever else this rank has opened for writing and not closed."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    # Text first: it ends in a buffered file.
    opened = [*_opened_before_fork, *_open_files()]
    for file in sorted(opened, key=lambda candidate: not isinstance(candidate, io.TextIOWrapper)):
        with contextlib.suppress(OSError, ValueError):  # closed or detached; or its disk is full
            file.flush()


def _open_files() -> list[WritableFile]:
    # By type, because `isinstance` would run code of objects that pretend to be others.
    return [
        candidate
        for candidate in gc.get_objects()
        if issubclass(type(candidate), (io.TextIOWrapper, io.BufferedWriter))
    ]

"""Finds the rank that caused a failure, and words the error."""

import atexit
import contextlib
import gc
import io
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from cobre._native import exit_without_teardown
from cobre.comm.errors import Peer
from cobre.comm.launch.payload import VALUE, RankFailure, WorkerError, ending_of, original_exception
from cobre.comm.launch.rank_process import RankProcess


def has_crashed(process: RankProcess) -> bool:
    """Whether the rank of a script has failed: its exit code is not 0."""
    return process.exit_code != 0


def has_no_value(process: RankProcess) -> bool:
    """Whether the rank of a function has failed: its exit code is not 0, or the function has not returned."""
    return process.exit_code != 0 or process.result.kind() != VALUE


def values(ended: Sequence[RankProcess]) -> list[Any]:
    """Every rank's return value, in rank order."""
    return [_value(process) for process in sorted(ended, key=lambda process: process.rank)]


def _value(process: RankProcess) -> Any:
    try:
        return process.result.value()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        message = f"{_who(process, None)} returned a value that cannot be unpickled here: {reason}"
        raise WorkerError(process.rank, 0, None, message) from error


def first_failure_error(failed: Sequence[RankProcess], size: int) -> WorkerError:
    """The error of the rank that failed first. failed: in the order in which they ended."""
    failures = {process.rank: process.result.failure() for process in failed}
    absent = _absent_ranks(failed, failures)
    if absent:
        return _never_joined(absent, failed, failures, size)
    # A stable sort: ranks that failed because of another one go to the end, otherwise the order of ends decides.
    cause, *others = sorted(failed, key=lambda process: _is_secondary(process, failures[process.rank]))
    primary = [other for other in others if not _is_secondary(other, failures[other.rank])]
    failure = failures[cause.rank]
    parts = [
        f"Run stopped: {_headline(cause, failure)}",
        # A rank that wrote no exception crashed or was killed: the end of its stderr is all there is.
        failure.traceback_text if failure else _stderr_tail(cause),
        *(f"Also, {_headline(other, failures[other.rank])}" for other in primary),
        _rest(size - 1 - len(primary), all_healthy=not _hides_a_cause(cause, failure, others)),
    ]
    inner = original_exception(failure) if failure else None
    return WorkerError(cause.rank, cause.exit_code or 0, inner, "\n".join(filter(None, parts)))


def _absent_ranks(failed: Sequence[RankProcess], failures: Mapping[int, RankFailure | None]) -> list[RankProcess]:
    """Ranks that hung before they joined the others, which gave up waiting for them: these are not to blame.

    Empty if some rank failed in another way: that may be why another one did not come.
    """
    missing = {rank for failure in failures.values() if failure for rank in failure.missing}
    absent = [process for process in failed if process.rank in missing and process.was_stopped]
    explained = [
        process
        for process in failed
        if process in absent or _is_secondary(process, found := failures[process.rank]) or (found and found.missing)
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
        f"{_headline(process, found)}" for process in failed if (found := failures[process.rank]) and found.missing
    ]
    parts = [
        *(f"Run stopped: {_who(process, None)} {_why_absent(process)}" for process in absent),
        _stderr_tail(cause),
        *waited[:1],
        _rest(size - len(absent), all_healthy=True),
    ]
    return WorkerError(cause.rank, cause.exit_code or 0, None, "\n".join(filter(None, parts)))


def _why_absent(process: RankProcess) -> str:
    how = "was stopped, by SIGSTOP or a debugger, and" if process.was_frozen else "hung, or was still starting, and"
    return f"{how} did not join the other ranks"


def _is_secondary(process: RankProcess, failure: RankFailure | None) -> bool:
    return process.was_stopped or bool(process.exit_reason) or (failure is not None and failure.is_consequence)


def _headline(process: RankProcess, failure: RankFailure | None) -> str:
    who = _who(process, failure)
    code = process.exit_code or 0
    if process.exit_reason:
        return f"{who} {process.exit_reason}"
    if failure is None:
        return f"{who} {ending_of(code)}"
    # A signal after the exception came while the interpreter was exiting; the exception is the cause.
    return f"{who} raised {failure.summary}" + (f", then {ending_of(code)}" if code < 0 else "")


def _who(process: RankProcess, failure: RankFailure | None) -> str:
    host = failure.host if failure else socket.gethostname()
    return str(Peer(process.rank, host, process.pid))


def _stderr_tail(process: RankProcess) -> str:
    return f"Last lines of its stderr:\n{process.stderr_tail}" if process.stderr_tail else ""


def _hides_a_cause(cause: RankProcess, failure: RankFailure | None, others: Sequence[RankProcess]) -> bool:
    """Whether all errors are consequences, and some rank had to be stopped without one: that rank hung."""
    return _is_secondary(cause, failure) and any(other.was_stopped for other in others)


def _rest(count: int, *, all_healthy: bool) -> str:
    if count == 0:
        return ""
    if not all_healthy:
        return "All other ranks were stopped."
    if count == 1:
        return "1 other rank was healthy and has exited."
    return f"{count} other ranks were healthy and have exited."


# How a rank exits: everything that an interpreter does at its end, except tearing itself down.


WritableFile = io.TextIOWrapper | io.BufferedWriter


_opened_before_fork: list[WritableFile] = []


def remember_open_files() -> None:
    """To be called by the fork server before it freezes its objects: the collector does not list them any more.

    A module that all ranks import may have opened a file that a rank then writes to, such as a log.
    """
    _opened_before_fork.extend(_open_files())


def exit_rank(code: int) -> NoReturn:
    """Wait for threads, call exit handlers, flush files, and exit.

    Not by `sys.exit`: Python would then destroy every module and object one by one. That writes to nearly all pages
    that a forked rank shares with the fork server, so that the kernel copies them first: on four ranks 0.3 s of CPU
    time for memory that is given back at once. `multiprocessing` ends its children like this, too. It leaves buffered
    files alone, however, whose last lines would be lost; they are flushed here.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for non-daemon threads, as at any exit
    atexit._run_exitfuncs()
    try:
        _flush_files()
    except (OSError, ValueError):  # a full disk, a reader that is gone: Python says so in its own way
        sys.exit(code)
    exit_without_teardown(code)


def _flush_files() -> None:
    """Flush the standard streams, and whatever else this rank has opened for writing and not closed."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    # Text first: it ends in a buffered file.
    opened = [*_opened_before_fork, *_open_files()]
    for file in sorted(opened, key=lambda found: not isinstance(found, io.TextIOWrapper)):
        with contextlib.suppress(OSError, ValueError):  # closed or detached; or its disk is full
            file.flush()


def _open_files() -> list[WritableFile]:
    # By type, because `isinstance` would run code of objects that pretend to be others.
    return [found for found in gc.get_objects() if issubclass(type(found), (io.TextIOWrapper, io.BufferedWriter))]

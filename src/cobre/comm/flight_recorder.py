"""The flight recorder: the last calls of a rank, and the report that shows them.

The native guard records every call in a ring buffer. This module names the records, and turns them into text for a hang
or a failure. Times are from `time.monotonic_ns`.
"""

import contextlib
import faulthandler
import os
import signal
import socket
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cobre.comm.types import Operation

CALLS_IN_REPORT = 10
CALLS_IN_LOG_LINE = 5


Record = tuple[int, int, int, str, int, int]
"""Sequence, operation, bytes, label, begin and end, as the guard keeps them."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of this rank. nbytes: of its payload. begin_ns, end_ns: `time.monotonic_ns`; end_ns is 0 during it."""

    sequence: int
    operation: str
    nbytes: int
    label: str
    begin_ns: int
    end_ns: int

    @property
    def is_in_progress(self) -> bool:
        """Whether the call has not ended yet."""
        return self.end_ns == 0

    def __str__(self) -> str:
        label = f" {self.label!r}" if self.label else ""
        payload = f", {format_bytes(self.nbytes)}" if self.nbytes else ""
        return f"#{self.sequence} {self.operation}{label}{payload}"


def named_calls(records: Iterable[Record]) -> list[RecordedCall]:
    """Return the guard's records as `RecordedCall`s, with operations by name."""
    return [
        RecordedCall(
            sequence, Operation(operation).title, nbytes, str(label), begin_ns, end_ns and max(begin_ns, end_ns)
        )
        for sequence, operation, nbytes, label, begin_ns, end_ns in records
    ]


def describe_calls(calls: Sequence[RecordedCall]) -> str:
    """Describe the last CALLS_IN_LOG_LINE calls in one line, for a log."""
    now_ns = time.monotonic_ns()
    return "; ".join(f"{call} {_duration(call, now_ns)}" for call in calls[-CALLS_IN_LOG_LINE:]) or "none"


def report(label: str, state: str, calls: Sequence[RecordedCall], failure: BaseException | None) -> str:
    """Describe rank and state, the call under way, the calls before it, and the first failure, in several lines."""
    now_ns = time.monotonic_ns()
    count = calls[-1].sequence if calls else 0
    lines = [f"{label}, host {socket.gethostname()}, pid {os.getpid()}: {state}, {count} calls made"]
    lines += [f"  now in {call}, {_duration(call, now_ns)}" for call in calls[-1:] if call.is_in_progress]
    lines += _history([call for call in calls[-CALLS_IN_REPORT:] if not call.is_in_progress], now_ns)
    if failure is not None:
        lines.append(f"  first failure: {type(failure).__name__}: {failure}")
    return "\n".join(lines) + "\n"


def _history(calls: Sequence[RecordedCall], now_ns: int) -> list[str]:
    if not calls:
        return []
    width = max(len(str(call)) for call in calls)
    ends = [f"{_duration(call, now_ns)}, ended {_elapsed(call.end_ns, now_ns)} ago" for call in calls]
    return ["  last calls:", *(f"    {call!s:{width}}  {end}" for call, end in zip(calls, ends, strict=True))]


def format_bytes(nbytes: float) -> str:
    """Format a number of bytes for people, in decimal units: "3.2 MB"."""
    for unit in ("B", "KB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} GB"


def format_ns(duration_ns: float) -> str:
    """Format a duration in nanoseconds for people: "1.5 ms"."""
    if duration_ns < 1e6:
        return f"{duration_ns / 1e3:.1f} us"
    if duration_ns < 1e9:
        return f"{duration_ns / 1e6:.1f} ms"
    return f"{duration_ns / 1e9:.1f} s"


def _duration(call: RecordedCall, now_ns: int) -> str:
    if call.is_in_progress:
        return f"under way for {_elapsed(call.begin_ns, now_ns)}"
    return f"took {format_ns(call.end_ns - call.begin_ns)}"


def _elapsed(since_ns: int, now_ns: int) -> str:
    return format_ns(max(0, now_ns - since_ns))


# Reports on SIGUSR1: the process writes its stack, and the report of every open communicator, to stderr.
#
# `kill -USR1 <pid>` shows where a hanging run is, without stopping it.

STDERR = 2


class Reporter(Protocol):
    """A communicator, as the handler of SIGUSR1 sees it."""

    @property
    def state(self) -> str:
        """One of open, busy, broken, closed, forked; closed ones do not report."""

    def report(self) -> str:
        """Return its state and last calls, as lines of text."""


_live: weakref.WeakValueDictionary[int, Reporter] = weakref.WeakValueDictionary()


def report_on_signal(reporter: Reporter) -> None:
    """Report on SIGUSR1 as long as `reporter` lives; installs the handler unless the program has its own."""
    _live[id(reporter)] = reporter
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
        signal.signal(signal.SIGUSR1, _show)
        # During a long computation, or a wait inside MPI, no Python handler runs. faulthandler prints the stack at once
        # all the same, and then chains to the handler above.
        faulthandler.register(signal.SIGUSR1, STDERR, all_threads=False, chain=True)


def live_reporters() -> list[Reporter]:
    """Return all reporters that have not been garbage-collected."""
    # valuerefs() copies in one step: another thread may create a communicator in the meantime.
    return [reporter for reference in _live.valuerefs() if (reporter := reference()) is not None]


def show_reports() -> None:
    """Write the reports of all communicators that are not closed to stderr."""
    text = "".join(reporter.report() for reporter in live_reporters() if reporter.state != "closed")
    # Not sys.stderr: the signal may have arrived in the middle of a print, which is not reentrant.
    with contextlib.suppress(OSError):
        os.write(STDERR, (text or f"pid {os.getpid()}: no communicator is open\n").encode(errors="replace"))


def show_reports_unless_handled(grace_s: float) -> None:
    """Show the reports after SIGUSR1 unless the main thread's handler does so within `grace_s`; for another thread.

    The main thread may be stuck in a call, and then its handler does not run.
    """
    if signal.getsignal(signal.SIGUSR1) is not _show:
        return
    shown_before = _signal_state.shown_by_handler
    time.sleep(grace_s)
    if _signal_state.shown_by_handler == shown_before:
        _signal_state.shown_for_handler = True
        show_reports()


class _SignalState:
    """Thread that has shown the reports, so that a handler that runs late does not show them again.

    shown_by_handler: how often the handler has shown them. shown_for_handler: another thread has shown them instead of
    the handler, which has yet to run.
    """

    shown_by_handler = 0
    shown_for_handler = False


_signal_state = _SignalState()


def _show(_signal: int, _frame: object) -> None:
    if _signal_state.shown_for_handler:
        _signal_state.shown_for_handler = False
        return
    _signal_state.shown_by_handler += 1
    show_reports()

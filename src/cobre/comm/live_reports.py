"""Reports on SIGUSR1: the process writes its stack, and the report of every open communicator, to stderr.

`kill -USR1 <pid>` shows where a hanging run is, without stopping it.
"""

import contextlib
import faulthandler
import os
import signal
import threading
import time
import weakref
from typing import Protocol

STDERR = 2


class Reporter(Protocol):
    """What reports on SIGUSR1: a communicator."""

    @property
    def state(self) -> str:
        """One of open, busy, broken, closed, forked; closed ones do not report."""

    def report(self) -> str:
        """Its state and last calls, as lines of text."""


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
    """All reporters that have not been garbage-collected."""
    # valuerefs() copies in one step: another thread may create a communicator meanwhile.
    return [reporter for reference in _live.valuerefs() if (reporter := reference()) is not None]


def show_reports() -> None:
    """Write the reports of all communicators that are not closed to stderr."""
    text = "".join(reporter.report() for reporter in live_reporters() if reporter.state != "closed")
    # Not sys.stderr: the signal may have arrived in the middle of a print, which is not reentrant.
    with contextlib.suppress(OSError):
        os.write(STDERR, (text or f"pid {os.getpid()}: no communicator is open\n").encode(errors="replace"))


def show_reports_unless_handled(grace_s: float) -> None:
    """For another thread, after SIGUSR1: show the reports unless the main thread's handler does so within `grace_s`.

    The main thread may be stuck in a call, and then its handler does not run.
    """
    if signal.getsignal(signal.SIGUSR1) is not _show:
        return
    handled = _signal_state.by_handler
    time.sleep(grace_s)
    if _signal_state.by_handler == handled:
        _signal_state.handler_is_late = True
        show_reports()


class _SignalState:
    """Who has shown the reports, so that a handler that runs long after its signal does not show them again.

    by_handler: how often the handler has. handler_is_late: another thread has done so for it, and it has yet to run.
    """

    by_handler = 0
    handler_is_late = False


_signal_state = _SignalState()


def _show(_signal: int, _frame: object) -> None:
    if _signal_state.handler_is_late:
        _signal_state.handler_is_late = False
        return
    _signal_state.by_handler += 1
    show_reports()

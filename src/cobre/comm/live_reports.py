"""SIGUSR1: this process writes to stderr where in the program it is, and every live communicator its report.

A run that hangs can be asked where it is without stopping it: `kill -USR1 <pid>`.
"""

import contextlib
import faulthandler
import os
import signal
import threading
import weakref
from typing import Protocol

STDERR = 2


class Reporter(Protocol):
    """What can be asked for a report."""

    @property
    def state(self) -> str:
        """Closed ones are not asked."""

    def report(self) -> str:
        """What it did last."""


_live: weakref.WeakValueDictionary[int, Reporter] = weakref.WeakValueDictionary()


def report_on_signal(reporter: Reporter) -> None:
    """Include this one, as long as it lives; the first takes the signal, where nobody else wants it."""
    _live[id(reporter)] = reporter
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
        signal.signal(signal.SIGUSR1, _show)
        # A long computation, or a wait inside MPI, lets no Python handler run. Where in the program that is can be
        # shown at once all the same; the handler above comes after it.
        faulthandler.register(signal.SIGUSR1, STDERR, all_threads=False, chain=True)


def live_reporters() -> list[Reporter]:
    """All that have not been collected."""
    # valuerefs copies in one step, so that a thread that makes a communicator meanwhile does no harm.
    return [reporter for reference in _live.valuerefs() if (reporter := reference()) is not None]


def show_reports() -> None:
    """Write the reports of all communicators that are not closed."""
    text = "".join(reporter.report() for reporter in live_reporters() if reporter.state != "closed")
    # Not sys.stderr: the signal may have come in the middle of a print, which cannot be entered twice.
    with contextlib.suppress(OSError):
        os.write(STDERR, (text or f"pid {os.getpid()}: no communicator is open\n").encode(errors="replace"))


def _show(_signal: int, _frame: object) -> None:
    show_reports()

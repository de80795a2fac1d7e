"""SIGUSR1: this process writes to stderr where in the program it is, and every live communicator its report.

A run that hangs can be asked where it is without stopping it: `kill -USR1 <pid>`.
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
    """Something that reports on SIGUSR1: a communicator."""

    @property
    def state(self) -> str:
        """One of open, busy, broken, closed, forked; closed ones do not report."""

    def report(self) -> str:
        """Its state and last calls, as lines for people."""


_live: weakref.WeakValueDictionary[int, Reporter] = weakref.WeakValueDictionary()


def report_on_signal(reporter: Reporter) -> None:
    """Report on SIGUSR1, as long as `reporter` lives; installs the handler where the program has none of its own."""
    _live[id(reporter)] = reporter
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
        signal.signal(signal.SIGUSR1, _show)
        # A long computation, or a wait inside MPI, lets no Python handler run. Where in the program that is can be
        # shown at once all the same; the handler above comes after it.
        faulthandler.register(signal.SIGUSR1, STDERR, all_threads=False, chain=True)


def live_reporters() -> list[Reporter]:
    """All reporters that have not been garbage-collected."""
    # valuerefs copies in one step, so that a thread that makes a communicator meanwhile does no harm.
    return [reporter for reference in _live.valuerefs() if (reporter := reference()) is not None]


def show_reports() -> None:
    """Write the reports of all communicators that are not closed."""
    text = "".join(reporter.report() for reporter in live_reporters() if reporter.state != "closed")
    # Not sys.stderr: the signal may have come in the middle of a print, which cannot be entered twice.
    with contextlib.suppress(OSError):
        os.write(STDERR, (text or f"pid {os.getpid()}: no communicator is open\n").encode(errors="replace"))


def answer_signal(patience_s: float) -> None:
    """From another thread: SIGUSR1 has come. Show the reports if the main thread, stuck in a call, does not."""
    if signal.getsignal(signal.SIGUSR1) is not _show:
        return
    answered = _answers.by_handler
    time.sleep(patience_s)
    if _answers.by_handler == answered:
        _answers.is_ahead = True
        show_reports()


class _Answers:
    """Who has shown the reports, so that a handler that runs long after the signal does not show them again."""

    by_handler = 0
    is_ahead = False


_answers = _Answers()


def _show(_signal: int, _frame: object) -> None:
    if _answers.is_ahead:
        _answers.is_ahead = False
        return
    _answers.by_handler += 1
    show_reports()

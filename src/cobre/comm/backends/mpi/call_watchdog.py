"""A watchdog for calls that MPI does not return from: until they return, Python runs no signal handler.

Python's signal handlers run between bytecodes of the main thread, which is inside MPI. The C-level handler, however,
writes the number of each signal into a pipe at once (`signal.set_wakeup_fd`). A thread reads that pipe, so that Ctrl-C
and SIGUSR1 work during a call; it also checks periodically whether a call is stuck.
"""

import os
import select
import signal
import threading
import time
import weakref
from collections.abc import Callable
from typing import TypeAlias

from cobre.comm.endpoint import Endpoint
from cobre.comm.live_reports import show_reports_unless_handled

TICK_S = 0.5
GRACE_S = 0.1  # time for Python's own handler, which runs first unless a call is stuck

OnStuck: TypeAlias = Callable[[Endpoint, float], None]


class CallWatchdog:
    """Calls `on_interrupt` if Ctrl-C comes during a wait, and `on_stuck` every TICK_S while a call does not return."""

    def __init__(self, on_interrupt: Callable[[Endpoint], None], on_stuck: OnStuck) -> None:
        self._on_interrupt = on_interrupt
        self._on_stuck = on_stuck
        # Weak: being watched must not keep a communicator alive that the program has dropped.
        self._endpoints: weakref.WeakSet[Endpoint] = weakref.WeakSet()
        self._seen: dict[
            int, tuple[int, float]
        ] = {}  # by endpoint: its call at the last tick, and when it was first seen

    def add(self, endpoint: Endpoint) -> None:
        """Watch the calls of this endpoint too."""
        self._endpoints.add(endpoint)

    def start(self) -> None:
        """Start the thread; it runs until the process ends."""
        threading.Thread(target=self._run, args=(_signal_pipe(),), name="cobre-mpi-watchdog", daemon=True).start()

    def _run(self, pipe: int | None) -> None:
        pipes = [] if pipe is None else [pipe]
        while True:
            readable, _, _ = select.select(pipes, [], [], TICK_S)
            signals = os.read(readable[0], 64) if readable else b""
            if _is_interrupt(signals):
                self._look_for_interrupted()
            if signal.SIGUSR1 in signals:
                show_reports_unless_handled(GRACE_S)
            self._look_for_stuck()

    def _look_for_interrupted(self) -> None:
        # A call that is still the same after the grace period did not see the interrupt. One that has returned did, by
        # Python's own handler: aborting the job then would take KeyboardInterrupt away from the program.
        before = {(endpoint, endpoint.sequence) for endpoint in self._busy()}
        time.sleep(GRACE_S)
        for endpoint in self._busy():
            if (endpoint, endpoint.sequence) in before:
                self._on_interrupt(endpoint)

    def _look_for_stuck(self) -> None:
        """Report every call that was already under way at the previous tick, with its age in seconds."""
        now = time.monotonic()
        seen = self._seen
        self._seen = {}
        for endpoint in self._busy():
            sequence, since = seen.get(id(endpoint), (0, now))
            if sequence != endpoint.sequence:
                since = now
            self._seen[id(endpoint)] = (endpoint.sequence, since)
            if now > since:
                self._on_stuck(endpoint, now - since)

    def _busy(self) -> list[Endpoint]:
        return [endpoint for endpoint in list(self._endpoints) if endpoint.state == "busy"]


def _signal_pipe() -> int | None:
    """A descriptor from which signal numbers can be read; None if something else, such as an event loop, reads them."""
    if threading.current_thread() is not threading.main_thread():
        return None
    reader, writer = os.pipe()
    os.set_blocking(writer, False)  # a signal handler must never block; set_wakeup_fd insists on it
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if previous == -1:
        os.register_at_fork(after_in_child=_forget_pipe)
        return reader
    # There is only one wakeup descriptor per process, and asyncio, for example, uses it: give it back.
    signal.set_wakeup_fd(previous)
    os.close(reader)
    os.close(writer)
    return None


def _forget_pipe() -> None:
    # Only the main thread may call this; a child that another thread forked handles none of our signals.
    if threading.current_thread() is threading.main_thread():
        signal.set_wakeup_fd(-1)


def _is_interrupt(signals: bytes) -> bool:
    # A program with its own SIGINT handler decides for itself.
    return signal.SIGINT in signals and signal.getsignal(signal.SIGINT) is signal.default_int_handler

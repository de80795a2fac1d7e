"""The end of the whole MPI job: aborting it is the only way in which a rank can make the others stop.

A rank that fails outside a collective leaves the others waiting forever. So the first communicator of a process
installs hooks that abort the job at an unhandled exception, at an interrupt during a wait, at the exit of a process
whose communicator has failed, and when a rank exits while others still wait for it. The traceback of the rank that
failed is printed.
"""

import atexit
import fcntl
import os
import stat
import struct
import sys
import termios
import threading
import time
import traceback
from types import TracebackType

import numpy as np

from cobre._native import CallGuard
from cobre.comm.backends.mpi.call_checks import CallWatchdog, ErrorExchange
from cobre.comm.backends.mpi.library import Mpi, MpiComm, MpiRequest
from cobre.comm.backends.mpi.windows import DeferredRelease
from cobre.comm.endpoint import PROGRESS_S, Endpoint
from cobre.comm.errors import Peer
from cobre.comm.exit_report import FAILED, INTERRUPTED, exit_code_for, exit_report_of

# Announcement of the number of calls that an exiting process has made, so that no rank waits for one that has left.
#
# MPI has no notion of a rank that has left: a collective that one process never enters blocks the others forever,
# and MPI_Finalize of that process blocks until the others come. So a process that exits sends the number of its last
# call to all others and waits for theirs, as MPI_Finalize would do anyway. A rank that is stuck in a call can then
# see that another one left without making it.

MAX_BACKOFF_S = 0.02


class ShutdownExchange:
    """Point-to-point messages between the processes of a group: the number of the last call on each communicator."""

    def __init__(self, mpi: Mpi, comm: MpiComm) -> None:
        self._mpi = mpi
        # A separate communicator: these messages must never match a receive of a collective or of the program.
        self._comm = comm.Dup()
        self._requests: list[MpiRequest] = []
        self._size = self._comm.Get_size()
        self._guards: list[CallGuard] = []
        self._last_calls: dict[int, list[int]] = {}
        # Held from Iprobe to Recv: a message that one thread has probed must not be received by another, which would
        # leave the first one blocked in Recv. Both the watchdog and an exiting main thread read.
        self._one_reader = threading.Lock()
        # Below MPI_THREAD_MULTIPLE only the main thread may call MPI, and that is the one that is stuck.
        self._any_thread = mpi.Query_thread() == mpi.THREAD_MULTIPLE

    def add_communicator(self, guard: CallGuard) -> None:
        """Count the calls of this communicator; all processes add theirs in the same order."""
        self._guards.append(guard)

    def departed_before(self, guard: CallGuard) -> tuple[int, int] | None:
        """Return a rank that left without making this communicator's current call, and its last call, or None.

        Always None below MPI_THREAD_MULTIPLE, where the watchdog's thread must not call MPI.
        """
        if not self._any_thread or guard not in self._guards:
            return None
        self._listen()
        index = self._guards.index(guard)
        for rank, calls in self._last_calls.items():
            if index < len(calls) and calls[index] < guard.sequence:
                return rank, calls[index]
        return None

    def announce(self) -> None:
        """Send this process's call numbers to all others; `wait` waits for theirs."""
        last_calls = np.array([guard.sequence for guard in self._guards], np.int64)
        others = [rank for rank in range(self._size) if rank != self._comm.Get_rank()]
        # Nonblocking, all before the first wait: with blocking sends, two processes that exit at once would deadlock.
        self._requests = [self._comm.Isend(last_calls, rank) for rank in others]

    def wait(self) -> None:
        """Return when the call numbers of all others have arrived; may take long."""
        backoff_s = 0.0
        while len(self._last_calls) < self._size - 1:
            self._listen()
            time.sleep(backoff_s)  # a blocking receive would spin, on a core that other ranks may need
            backoff_s = min(backoff_s + 0.001, MAX_BACKOFF_S)
        self._mpi.Request.Waitall(self._requests)

    def _listen(self) -> None:
        """Receive the messages that have arrived; never blocks."""
        status = self._mpi.Status()
        with self._one_reader:
            while self._comm.Iprobe(status=status):
                numbers = np.empty(status.Get_count(self._mpi.INT64_T), np.int64)
                self._comm.Recv(numbers, status.Get_source())
                self._last_calls[status.Get_source()] = numbers.tolist()


# Waiting until the launcher has read what this process has printed: an abort may overtake it.

STDOUT, STDERR = 1, 2
POLL_S = 0.001


def drain_output(limit_s: float) -> bool:
    """Wait until the pipes of stdout and stderr are empty, `limit_s` at most; return whether they are.

    Anything but a pipe counts as empty: files need no reader, and a terminal does not report unread output.
    """
    deadline = time.monotonic() + limit_s
    while unread := any(map(_unread_bytes, (STDOUT, STDERR))):
        if time.monotonic() >= deadline:
            break
        time.sleep(POLL_S)
    return not unread


def _unread_bytes(descriptor: int) -> int:
    """Return the number of bytes in the pipe behind this descriptor, which may be its writing end."""
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return 0
        (count,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))
    except OSError:  # closed, or a system on which only the reading end has this ioctl
        return 0
    return int(count)


DRAIN_LIMIT_S = 2.0  # a launcher whose own reader has stopped reads nothing; the others must not wait for it


class CommGroup:
    """The processes of one MPI communicator: MPI_COMM_WORLD, or one that a program hands over.

    Making one duplicates the communicator, which is a collective: all of its ranks must come to it, in the same place
    among their other MPI calls, or they deadlock.
    """

    def __init__(self, mpi: Mpi, comm: MpiComm) -> None:
        self.shutdown = ShutdownExchange(mpi, comm)
        self.error_exchange = ErrorExchange(mpi, comm)
        # Communicators over these processes, open and closed: only all ranks together can free them.
        self.communicators = DeferredRelease()


class Job:
    """The processes that one launcher started, as seen from one of them. There is one object per process."""

    _current: "Job | None" = None

    def __init__(self, mpi: Mpi) -> None:
        self._mpi = mpi
        self._pid = os.getpid()
        self._failure = ""
        self._previous_hook = sys.excepthook
        self._groups: list[CommGroup] = []
        # MPI itself keeps the group of a communicator, as an attribute: handles are reused once one has been freed.
        self._group_key: int = mpi.Comm.Create_keyval()
        self._watchdog = CallWatchdog(self._interrupted, self._stuck)
        self._warned: dict[int, float] = {}  # by call: how long it had waited when a progress line was last logged

    @classmethod
    def current(cls, mpi: Mpi) -> "Job":
        """Return the job of this process; the first call installs the hooks that abort it. Not a collective."""
        if cls._current is None:
            cls._current = cls(mpi)
            cls._current._install()
        return cls._current

    def group(self, comm: MpiComm) -> CommGroup:
        """Return the group of a communicator's processes; the first call for it is a collective of its ranks."""
        group = comm.Get_attr(self._group_key)
        if not isinstance(group, CommGroup):
            group = CommGroup(self._mpi, comm)
            comm.Set_attr(self._group_key, group)
            self._groups.append(group)
        return group

    def watch(self, endpoint: Endpoint, group: CommGroup | None) -> None:
        """Watch the calls of this endpoint. group: the one whose processes all take part in them, if any."""
        self._watchdog.add(endpoint)
        if group is not None:
            group.shutdown.add_communicator(endpoint._guard)

    def abort(self, reason: str) -> None:
        """Print the reason, with the traceback if there is one, and abort all processes.

        Returns only if there is nothing to abort: in a forked child, after MPI was finalised, in a job of one.
        """
        if not self._can_abort():
            return
        error = sys.exception()
        if (report := exit_report_of(error)) is not None:
            self._print_and_abort(report.text, report.exit_code)
        text = "".join(traceback.format_exception(error)) if error is not None else ""
        self._print_and_abort(f"{text}{reason}", exit_code_for(error))

    def abort_at_exit(self, reason: str) -> None:
        """Remember a failure that was raised to the caller: if the process exits, the job is aborted with this reason.

        Not aborted at once, because the program may want to print or save something first.
        """
        self._failure = self._failure or reason

    def _install(self) -> None:
        # excepthook runs before atexit, so an unhandled exception is reported as such and not as a rank that left.
        sys.excepthook = self._unhandled
        # Runs before mpi4py finalises MPI, which would wait for the others. Handlers run in reverse order of their
        # registration, so this one also runs before the one of `endpoint`, which was registered at import.
        atexit.register(self._at_exit)
        self._watchdog.start()

    def _unhandled(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._previous_hook(kind, error, trace)
        if self._can_abort():
            self._print_and_abort(f"{self._label()} failed: {kind.__name__}: {error}", exit_code_for(error))

    def _interrupted(self, endpoint: Endpoint) -> None:
        if self._can_abort():
            self._print_and_abort(f"{self._label()} was interrupted in {_current_call(endpoint)}", INTERRUPTED)

    def _stuck(self, endpoint: Endpoint, waited_s: float) -> None:
        if not self._can_abort():
            return
        departures = (group.shutdown.departed_before(endpoint._guard) for group in self._groups)
        departure = next((one for one in departures if one is not None), None)
        # Checked again: the call may have returned while the messages were read, and then nothing is wrong.
        if departure is not None and endpoint.state == "busy":
            rank, last = departure
            text = f"{self._label()} waits in {_current_call(endpoint)} for rank {rank}, which left after call #{last}"
            self._print_and_abort(text, FAILED)
        if waited_s >= self._warned.get(endpoint.sequence, 0.0) + PROGRESS_S:
            self._warned = {endpoint.sequence: waited_s}
            endpoint._log_wait(waited_s, ["other ranks (MPI does not report which)"])

    def _at_exit(self) -> None:
        if not self._can_abort():
            return
        if self._failure:
            self._print_and_abort(self._failure, FAILED)
        # An orderly end: stay until all others leave as well. Ranks that are stuck in a call learn by the announcement
        # that this one will not make it.
        for group in self._groups:
            group.shutdown.announce()
        # Only after all announcements: two processes may belong to the same groups in another order.
        for group in self._groups:
            group.shutdown.wait()

    def _can_abort(self) -> bool:
        # A forked child has no part in the job, and a job of one ends by itself.
        return os.getpid() == self._pid and not self._mpi.Is_finalized() and self._mpi.COMM_WORLD.Get_size() > 1

    def _label(self) -> str:
        return str(Peer.of_this_process(self._mpi.COMM_WORLD.Get_rank()))

    def _print_and_abort(self, text: str, code: int) -> None:
        # `finally`: the others must be stopped also when the reason is not read, or Ctrl-C arrives while it is printed.
        try:
            self._print_reason(text)
        finally:
            self._mpi.COMM_WORLD.Abort(code)
            os._exit(code)  # with MPICH, Abort may return before the launcher has killed this process

    def _print_reason(self, text: str) -> None:
        others = self._mpi.COMM_WORLD.Get_size() - 1
        # Flushed by hand: neither Abort nor _exit runs Python's cleanup.
        sys.stdout.flush()
        ranks = "1 other rank" if others == 1 else f"{others} other ranks"
        sys.stderr.write(f"{text}\ncobre.comm: run stopped; aborting {ranks}\n")
        sys.stderr.flush()
        # Flushing is not enough with MPICH. The proxy of its launcher serves the abort before the pipes of a rank when
        # it wakes up to both, and mpiexec exits at the abort: now and then a job ended without printing the reason.
        # Once the pipes are empty, the reason precedes the abort on the one connection from the proxy to mpiexec. A
        # fixed pause would be too short on a busy machine, and too long on all others.
        drain_output(DRAIN_LIMIT_S)


def _current_call(endpoint: Endpoint) -> str:
    return f"{endpoint._guard.current} call #{endpoint.sequence}"

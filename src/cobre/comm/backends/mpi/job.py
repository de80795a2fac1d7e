"""Aborts the whole MPI job: the only way in which a rank can make the others stop.

A rank that fails outside a collective leaves the others waiting for ever. So the first communicator of a process
installs hooks that abort the job at an unhandled exception, at an interrupt during a wait, at the exit of a process
whose communicator has failed, and when a rank exits while others still wait for it. The traceback of the rank that
failed is printed.
"""

import atexit
import os
import sys
import traceback
from types import TracebackType

from cobre.comm.backends.mpi.call_watchdog import CallWatchdog
from cobre.comm.backends.mpi.deferred_release import DeferredRelease
from cobre.comm.backends.mpi.drain_output import drain_output
from cobre.comm.backends.mpi.error_exchange import ErrorExchange
from cobre.comm.backends.mpi.library import Mpi, MpiComm
from cobre.comm.backends.mpi.shutdown import ShutdownExchange
from cobre.comm.endpoint import PROGRESS_S, Endpoint
from cobre.comm.errors import Peer
from cobre.comm.exit_report import FAILED, INTERRUPTED, exit_code_for, exit_report_of

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
        """The job of this process; the first call installs the hooks that abort it. Not a collective."""
        if cls._current is None:
            cls._current = cls(mpi)
            cls._current._install()
        return cls._current

    def group(self, comm: MpiComm) -> CommGroup:
        """The group of a communicator's processes; the first call for it is a collective of its ranks."""
        found = comm.Get_attr(self._group_key)
        if not isinstance(found, CommGroup):
            found = CommGroup(self._mpi, comm)
            comm.Set_attr(self._group_key, found)
            self._groups.append(found)
        return found

    def watch(self, endpoint: Endpoint, group: CommGroup | None) -> None:
        """Watch over the calls of this endpoint. group: the one all of whose processes take part in them, if any."""
        self._watchdog.add(endpoint)
        if group is not None:
            group.shutdown.add_communicator(endpoint._guard)

    def abort(self, reason: str) -> None:
        """Print the reason, with the traceback if there is one, and abort all processes.

        Returns only where there is nothing to abort: in a forked child, after MPI was finalised, in a job of one.
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
            self._print_and_abort(f"{self._who()} failed: {kind.__name__}: {error}", exit_code_for(error))

    def _interrupted(self, endpoint: Endpoint) -> None:
        if self._can_abort():
            self._print_and_abort(f"{self._who()} was interrupted in {_current_call(endpoint)}", INTERRUPTED)

    def _stuck(self, endpoint: Endpoint, waited_s: float) -> None:
        if not self._can_abort():
            return
        found = (group.shutdown.departed_before(endpoint._guard) for group in self._groups)
        missed = next((one for one in found if one is not None), None)
        # Checked again: the call may have returned while the messages were read, and then nothing is wrong.
        if missed is not None and endpoint.state == "busy":
            rank, last = missed
            text = f"{self._who()} waits in {_current_call(endpoint)} for rank {rank}, which left after call #{last}"
            self._print_and_abort(text, FAILED)
        if waited_s >= self._warned.get(endpoint.sequence, 0.0) + PROGRESS_S:
            self._warned = {endpoint.sequence: waited_s}
            endpoint._log_wait(waited_s, ["other ranks (MPI does not say which)"])

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

    def _who(self) -> str:
        return str(Peer.of_this_process(self._mpi.COMM_WORLD.Get_rank()))

    def _print_and_abort(self, text: str, code: int) -> None:
        # `finally`: the others must be stopped also when nobody reads the reason, or Ctrl-C comes while it is printed.
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

"""Announces how many calls a process has made when it exits, so that nobody waits for a rank that has left.

MPI has no notion of a rank that has left: a collective that one process never enters blocks the others for ever, and
MPI_Finalize of that process blocks until the others come. So a process that exits sends the number of its last call to
all others and waits for theirs, as MPI_Finalize would do anyway. A rank that is stuck in a call can then see that
another one left without making it.
"""

import threading
import time

import numpy as np

from cobre._native import CallGuard
from cobre.comm.backends.mpi.library import Mpi, MpiComm, MpiRequest

MAX_BACKOFF_S = 0.02


class ShutdownExchange:
    """Point-to-point messages between the processes of a group: the number of the last call on each communicator."""

    def __init__(self, mpi: Mpi, comm: MpiComm) -> None:
        self._mpi = mpi
        # A communicator of its own: these messages must never match a receive of a collective or of the program.
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
        """A rank that left without making this communicator's present call, and its last call; None if there is none.

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
        own = np.array([guard.sequence for guard in self._guards], np.int64)
        others = [rank for rank in range(self._size) if rank != self._comm.Get_rank()]
        # Nonblocking, all before the first wait: with blocking sends, two processes that exit at once would deadlock.
        self._requests = [self._comm.Isend(own, rank) for rank in others]

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

"""Who has left: a process that ends tells all others how far it came, and waits for theirs, as MPI would do anyway.

So a rank that waits in a call which a process that has left never made can know it, instead of waiting for ever.
"""

import threading
import time

import numpy as np

from cobre._native import CallGuard
from cobre.comm.backends.mpi.library import Mpi

LONGEST_NAP_S = 0.02


class Farewell:
    """Exchanges last words between the processes of a job: the last call on each of its worlds."""

    def __init__(self, mpi: Mpi) -> None:
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD.Dup()
        self._size = self._comm.Get_size()
        self._worlds: list[CallGuard] = []
        self._last_calls: dict[int, list[int]] = {}
        self._one_reader = threading.Lock()
        # Without it only the main thread may call MPI, and it is the one that waits.
        self._any_thread = mpi.Query_thread() == mpi.THREAD_MULTIPLE

    def add_world(self, guard: CallGuard) -> None:
        """Count the calls of this world; all processes add theirs in the same order."""
        self._worlds.append(guard)

    def missed_by(self, guard: CallGuard) -> tuple[int, int] | None:
        """A rank that has left without making the call in which this world is now, and its last call."""
        if not self._any_thread or guard not in self._worlds:
            return None
        self._listen()
        world = self._worlds.index(guard)
        for rank, calls in self._last_calls.items():
            if world < len(calls) and calls[world] < guard.sequence:
                return rank, calls[world]
        return None

    def leave(self) -> None:
        """Tell all others, and return when they have all told us."""
        own = np.array([guard.sequence for guard in self._worlds], np.int64)
        others = [rank for rank in range(self._size) if rank != self._comm.Get_rank()]
        requests = [self._comm.Isend(own, rank) for rank in others]
        nap_s = 0.0
        while len(self._last_calls) < len(others):
            self._listen()
            time.sleep(nap_s)
            nap_s = min(nap_s + 0.001, LONGEST_NAP_S)
        self._mpi.Request.Waitall(requests)

    def _listen(self) -> None:
        status = self._mpi.Status()
        with self._one_reader:
            while self._comm.Iprobe(status=status):
                words = np.empty(status.Get_count(self._mpi.INT64_T), np.int64)
                self._comm.Recv(words, status.Get_source())
                self._last_calls[status.Get_source()] = words.tolist()

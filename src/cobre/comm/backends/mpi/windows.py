"""Memory that all ranks of a node see: MPI windows, and what is known of them.

Making a window is collective over the node, and so is freeing one. A region may be closed by each rank on its own,
and its arrays stay valid; so a window is freed by a later `create_shared_region`, when no rank has an array
of it any more, or when the job ends.
"""

import weakref

import numpy as np

from cobre.comm.backends.mpi.deferred_release import DeferredRelease, agree
from cobre.comm.backends.mpi.library import Mpi, MpiComm
from cobre.comm.errors import AllocationFailedError
from cobre.comm.shm_space import free_shm_bytes, no_shm_space
from cobre.comm.types import Array


class WindowMemory:
    """Lends a window's memory to NumPy; it lives as long as any array of it."""

    def __init__(self, address: int, nbytes: int, *, writable: bool) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (nbytes,),
            "data": (address, not writable),
        }


class Window:
    """One window on this node, allocated by the leader and mapped by every rank."""

    def __init__(self, mpi: Mpi, node: MpiComm, number: int, nbytes: int) -> None:
        leader = node.Get_rank() == 0
        # All of it on the leader, so that it is one piece of memory with one address for everybody to ask for.
        self._win = mpi.Win.Allocate_shared(max(nbytes, 1) if leader else 0, 1, mpi.INFO_NULL, node)
        self._win.Set_errhandler(mpi.ERRORS_RETURN)
        # One passive epoch for the window's whole life: only inside one may Sync be called, and ranks read and write by
        # plain loads and stores, without MPI. NOCHECK: no lock conflicts with this one, so none need be arranged.
        self._win.Lock_all(mpi.MODE_NOCHECK)
        self._lent: list[weakref.ref[WindowMemory]] = []
        self.number = number
        self.nbytes = nbytes
        self.address: int = self._win.Shared_query(0)[0].address
        if leader:
            self.lend(writable=True).fill(0)

    def lend(self, *, writable: bool) -> Array:
        """The memory as an array of bytes; the window is not freed as long as anybody holds the array."""
        memory = WindowMemory(self.address, self.nbytes, writable=writable)
        self._lent.append(weakref.ref(memory))
        return np.asarray(memory)

    def is_given_up(self) -> bool:
        """Whether no array of it is left in this process."""
        return all(memory() is None for memory in self._lent)

    def synchronise(self) -> None:
        """Order this rank's reads and writes: before a barrier it publishes them, after it sees the others'."""
        self._win.Sync()

    def free(self) -> None:
        """Free the window. Collective over the node: every rank must have given it up (`is_given_up`)."""
        self._win.Unlock_all()
        self._win.Free()


class Windows:
    """All windows of one communicator."""

    def __init__(self, mpi: Mpi, world: MpiComm, node: MpiComm) -> None:
        self._mpi = mpi
        self._world = world
        self._node = node
        self._release = DeferredRelease()
        self._alive: list[Window] = []
        self._created = 0

    def create(self, nbytes: int) -> Window:
        """Make one that is zero; on all ranks, or on none."""
        if not self._release.agree_and_release(self._mpi, self._world, _has_room(nbytes)):
            raise AllocationFailedError(nbytes, no_shm_space(nbytes))
        self._created += 1
        window, problem = self._allocate(nbytes)
        if not agree(self._mpi, self._world, np.array([window is not None], np.uint8))[0]:
            raise AllocationFailedError(nbytes, no_shm_space(nbytes, problem or "another rank could not map it"))
        assert window is not None  # noqa: S101 - agreed upon just now
        return window

    def largest_bytes(self) -> int:
        """Size of the largest region of which this rank has arrays."""
        return max((window.nbytes for window in self._alive if not window.is_given_up()), default=0)

    def locate(self, array: Array) -> tuple[int, int]:
        """The number of the window in which an array lies, and where in it; (0, 0): in none."""
        address: int = array.__array_interface__["data"][0]
        for window in self._alive:
            if window.address <= address < window.address + window.nbytes:
                return window.number, address - window.address
        return 0, 0

    def synchronise(self, number: int) -> None:
        """Order this rank's reads and writes of that window around a barrier."""
        for window in self._alive:
            if window.number == number:
                window.synchronise()

    def _allocate(self, nbytes: int) -> tuple[Window | None, str]:
        try:
            window = Window(self._mpi, self._node, self._created, nbytes)
        except (self._mpi.Exception, MemoryError) as error:
            return None, str(error)
        self._alive.append(window)
        self._release.hold(window.is_given_up, lambda: self._free(window))
        # Sync, barrier, sync: the leader publishes its zeros, everybody waits for them, everybody reads afresh. A
        # barrier of MPI alone promises nothing about plain loads and stores.
        window.synchronise()
        self._node.Barrier()
        window.synchronise()
        return window, ""

    def _free(self, window: Window) -> None:
        self._alive.remove(window)
        window.free()


def _has_room(nbytes: int) -> bool:
    # Asked before: MPI would map more than there is, and the first write beyond it would be the end of the process.
    free = free_shm_bytes()
    return free is None or nbytes <= free

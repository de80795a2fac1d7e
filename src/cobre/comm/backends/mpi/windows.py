"""MPI windows: memory that all ranks of a node map.

Creating a window is collective over the node, and so is freeing it. But a rank may close a region on its own, and its
arrays stay valid. So a window is freed by a later `create_shared_region`, once no rank has an array of it any more, or
when the job ends.
"""

import weakref
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.comm.backends.base import Backend
from cobre.comm.backends.mpi.library import Mpi, MpiComm
from cobre.comm.cores import free_shm_bytes, no_shm_space
from cobre.comm.errors import AllocationFailedError
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.types import Array, Dtype

# Resources that MPI frees collectively, although the contract lets every rank close them on its own.
#
# They are kept until a later collective call, in which all ranks agree on those that none of them uses any more.

Votes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class HeldResource:
    """A resource that only all ranks together can free. is_unused: whether this rank no longer needs it."""

    is_unused: Callable[[], bool]
    release: Callable[[], None]


class DeferredRelease:
    """Resources that are kept until no rank uses them, in the same order on all ranks."""

    def __init__(self) -> None:
        self._held: list[HeldResource] = []

    def hold(self, is_unused: Callable[[], bool], release: Callable[[], None]) -> None:
        """Keep a resource; all ranks do so in the same call."""
        self._held.append(HeldResource(is_unused, release))

    def agree_and_release(self, mpi: Mpi, comm: MpiComm, *conditions: bool) -> bool:
        """Free what no rank of `comm` uses; return whether the conditions hold on all ranks. A collective."""
        if not conditions and not self._held:
            return True  # on all ranks alike, because all hold the same: none of them enters the collective below
        flags = [all(conditions), *(resource.is_unused() for resource in self._held)]
        agreed = agree(mpi, comm, np.array(flags, np.uint8))
        for resource, is_unused in zip(self._held, agreed[1:], strict=True):
            if is_unused:
                resource.release()
        self._held = [resource for resource, is_unused in zip(self._held, agreed[1:], strict=True) if not is_unused]
        return bool(agreed[0])


def agree(mpi: Mpi, comm: MpiComm, votes: Votes) -> Votes:
    """Return the votes that are set on all ranks. Collective."""
    comm.Allreduce(mpi.IN_PLACE, votes, mpi.BAND)
    return votes


class WindowMemory:
    """Owner of a window's memory for NumPy; lives as long as any array over it."""

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
        # The leader contributes all of the memory, so that it is contiguous, and every rank queries the same segment.
        self._win = mpi.Win.Allocate_shared(max(nbytes, 1) if leader else 0, 1, mpi.INFO_NULL, node)
        self._win.Set_errhandler(mpi.ERRORS_RETURN)
        # One passive-target epoch for the window's whole life: Sync may only be called inside one, and ranks read and
        # write by plain loads and stores. NOCHECK: no rank requests a conflicting lock, so MPI need not check.
        self._win.Lock_all(mpi.MODE_NOCHECK)
        self._lent: list[weakref.ref[WindowMemory]] = []
        self.number = number
        self.nbytes = nbytes
        self.address: int = self._win.Shared_query(0)[0].address
        if leader:
            self.as_array(writable=True).fill(0)

    def as_array(self, *, writable: bool) -> Array:
        """Return the memory as an array of bytes; the window is not freed while the array, or a view of it, exists."""
        memory = WindowMemory(self.address, self.nbytes, writable=writable)
        self._lent.append(weakref.ref(memory))
        return np.asarray(memory)

    def is_unused(self) -> bool:
        """Return whether this process has no array over it any more."""
        return all(memory() is None for memory in self._lent)

    def synchronise(self) -> None:
        """Publish this rank's writes before a barrier, and see other ranks' writes after it (MPI_Win_sync)."""
        self._win.Sync()

    def free(self) -> None:
        """Free the window. Collective over the node; `is_unused` must hold on every rank."""
        self._win.Unlock_all()
        self._win.Free()


class Windows:
    """The windows of one communicator that have not been freed."""

    def __init__(self, mpi: Mpi, world: MpiComm, node: MpiComm) -> None:
        self._mpi = mpi
        self._world = world
        self._node = node
        self._release = DeferredRelease()
        self._alive: list[Window] = []
        self._created = 0

    def create(self, nbytes: int) -> Window:
        """Create a window filled with zeros, on all ranks or on none; raises `AllocationFailedError`. A collective."""
        # Checked first: MPI would map more than /dev/shm has, and the first write beyond that raises SIGBUS.
        free = free_shm_bytes()
        if not self._release.agree_and_release(self._mpi, self._world, free is None or nbytes <= free):
            raise AllocationFailedError(nbytes, no_shm_space(nbytes))
        self._created += 1
        window, problem = self._allocate(nbytes)
        if not agree(self._mpi, self._world, np.array([window is not None], np.uint8))[0]:
            raise AllocationFailedError(nbytes, no_shm_space(nbytes, problem or "another rank could not map it"))
        assert window is not None  # noqa: S101 - all ranks have just agreed that it is not
        return window

    def largest_bytes(self) -> int:
        """Return the size in bytes of the largest window over which this rank has arrays."""
        return max((window.nbytes for window in self._alive if not window.is_unused()), default=0)

    def locate(self, array: Array) -> tuple[int, int]:
        """Return the number of the window that an array is in, and its offset in bytes; (0, 0) if it is in none."""
        address: int = array.__array_interface__["data"][0]
        for window in self._alive:
            if window.address <= address < window.address + window.nbytes:
                return window.number, address - window.address
        return 0, 0

    def synchronise(self, number: int) -> None:
        """Synchronise the window of this number."""
        for window in self._alive:
            if window.number == number:
                window.synchronise()

    def _allocate(self, nbytes: int) -> tuple[Window | None, str]:
        try:
            window = Window(self._mpi, self._node, self._created, nbytes)
        except (self._mpi.Exception, MemoryError) as error:
            return None, str(error)
        self._alive.append(window)
        self._release.hold(window.is_unused, lambda: self._free(window))
        # Sync, barrier, sync: the leader publishes its zeros, all ranks wait for it, and then see them.
        # An MPI barrier guarantees nothing about plain loads and stores.
        window.synchronise()
        self._node.Barrier()
        window.synchronise()
        return window, ""

    def _free(self, window: Window) -> None:
        self._alive.remove(window)
        window.free()


# Shared regions in MPI windows: one copy of the data per node.


class WindowRegionBackend(Backend):
    """A backend whose shared regions are MPI windows."""

    @abstractmethod
    def _fence_window(self, window: Window) -> None:
        """Wait for all ranks of the node; what they wrote to the window before is then visible to all of them."""


class MpiSharedRegion(SharedRegion):
    """A region over a window, which is not freed while any array of it is referenced."""

    def __init__(self, owner: WindowRegionBackend, window: Window, count: int, dtype: Dtype) -> None:
        super().__init__(owner, count, dtype, is_leader=owner.is_leader)
        self._owner = owner
        self._window = window
        self._readable: Array = window.as_array(writable=False).view(dtype)
        self._writable: Array = window.as_array(writable=True).view(dtype)

    def _view(self, *, writable: bool) -> Array:
        return self._writable if writable else self._readable

    def _fence(self) -> None:
        self._owner._fence_window(self._window)

    def _close(self) -> None:
        # Only the references go: the window is freed by a later collective, once no rank has an array over it.
        del self._window, self._readable, self._writable

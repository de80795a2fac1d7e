"""Shared regions in MPI windows: one copy of the data per node."""

from abc import abstractmethod

from cobre.comm.backends.base import Backend
from cobre.comm.backends.mpi.windows import Window
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.types import Array, Dtype


class WindowOwner(Backend):
    """A backend whose shared regions are MPI windows."""

    @abstractmethod
    def _fence_window(self, window: Window) -> None:
        """Wait for all ranks of the node; what they wrote to the window before is then visible to all of them."""


class MpiSharedRegion(SharedRegion):
    """A region over a window, which is not freed while any array of it is referenced."""

    def __init__(self, owner: WindowOwner, window: Window, count: int, dtype: Dtype) -> None:
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

"""Regions that really are shared: one mapping per rank, one copy per node."""

from typing import TYPE_CHECKING

from cobre._native import ShmRegion, region_bytes
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.types import Array, Dtype

if TYPE_CHECKING:
    from cobre.comm.backends.shm.communicator import ShmCommunicator


class ShmSharedRegion(SharedRegion):
    """Arrays over the native mapping; each keeps the mapping alive."""

    def __init__(self, owner: "ShmCommunicator", region: ShmRegion, count: int, dtype: Dtype) -> None:
        super().__init__(owner, count, dtype, is_leader=owner.is_leader)
        self._owner = owner
        self._region = region
        self._readable: Array = region_bytes(region, False).view(dtype)
        self._writable: Array = region_bytes(region, True).view(dtype)

    def _view(self, *, writable: bool) -> Array:
        return self._writable if writable else self._readable

    def _fence(self) -> None:
        self._owner._fence_region(self._region)

    def _close(self) -> None:
        del self._region, self._readable, self._writable

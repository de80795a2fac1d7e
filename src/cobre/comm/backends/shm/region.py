"""Shared regions in native mappings: one mapping per rank, one copy of the data per node."""

from abc import abstractmethod

from cobre._native import ShmRegion, region_bytes
from cobre.comm.backends.base import BoundCollectivesBackend
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.types import Array, Dtype


class RegionOwner(BoundCollectivesBackend):
    """A backend whose shared regions are native mappings."""

    @abstractmethod
    def _fence_region(self, region: ShmRegion) -> None:
        """Wait for all ranks that map the region; what they wrote before is then visible to all of them."""


class ShmSharedRegion(SharedRegion):
    """A region over a native mapping, which every array of it keeps alive."""

    def __init__(self, owner: RegionOwner, region: ShmRegion, count: int, dtype: Dtype) -> None:
        super().__init__(owner, count, dtype, is_leader=owner.is_leader)
        self._owner = owner
        self._region = region
        # Two arrays over one mapping: a read-only view of the writable one could be made writable again by its holder.
        self._readable: Array = region_bytes(region, False).view(dtype)
        self._writable: Array = region_bytes(region, True).view(dtype)

    def _view(self, *, writable: bool) -> Array:
        return self._writable if writable else self._readable

    def _fence(self) -> None:
        self._owner._fence_region(self._region)

    def _close(self) -> None:
        # Only the references go: arrays that were handed out keep the mapping alive.
        del self._region, self._readable, self._writable

"""Regions for backends without shared memory: every rank has a private copy, and is its own leader."""

from typing import Any

import numpy as np

from cobre.comm.endpoint import Endpoint
from cobre.comm.errors import AllocationFailedError
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.types import Array, Dtype


class HeapRegion(SharedRegion):
    """Private memory with the interface of a shared region; `fence` returns at once."""

    def __init__(self, endpoint: Endpoint, count: int, dtype: Dtype) -> None:
        super().__init__(endpoint, count, dtype, is_leader=True)
        try:
            self._array: Array = np.zeros(count, dtype)
        except (MemoryError, ValueError) as error:
            nbytes = count * dtype.itemsize
            raise AllocationFailedError(nbytes, f"not enough memory for a region of {nbytes} bytes: {error}") from error
        # Through a read-only buffer, because a read-only NumPy view could be made writable again by its holder.
        raw: Any = self._array.view(np.uint8)
        self._readable: Array = np.asarray(memoryview(raw).toreadonly()).view(dtype)

    def _view(self, *, writable: bool) -> Array:
        return self._array if writable else self._readable

    def _fence(self) -> None:
        """Returns at once: no other rank has this memory."""

    def _close(self) -> None:
        """Drop the reference; arrays that were handed out keep the memory alive."""
        del self._array, self._readable

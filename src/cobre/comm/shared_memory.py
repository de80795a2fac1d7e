"""The contract of shared regions: memory that all ranks of a node map.

It is separate from `Communicator` because a region has a lifetime, while a message is done when the call returns. A
backend without shared memory gives every rank a private copy (`HeapRegion`), and each rank is its own leader. Programs
that are written like this run unchanged on all backends:

    with comm.create_shared_region(count, "float64") as region:
        if comm.is_leader:
            region.as_mut_array()[:] = table
        region.fence()
        use(region.as_array())
"""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from cobre.comm import validation
from cobre.comm.communicator import Communicator
from cobre.comm.endpoint import Endpoint
from cobre.comm.errors import AllocationFailedError, NotLeaderError, RegionClosedError
from cobre.comm.types import Array, Dtype, Operation

_FENCE = Operation.FENCE  # looking up an enum member costs as much as the guard


class SharedRegion(ABC):
    """An array of `count` elements that every rank of a node maps, initially zero; made by `create_shared_region`.

    Writing: the leader may write everything, and any rank the slice that it requests; two ranks must not write the same
    element between two fences. Reading: after a `fence`, everything that was written before it is visible. Native code
    of several ranks may update one element by atomic instructions at any time, such as a counter for dynamic load
    balancing.

    A backend must define `_view`, `_fence` and `_close`; the first two are called only while the region is open.
    """

    def __init__(self, endpoint: Endpoint, count: int, dtype: Dtype, is_leader: bool) -> None:
        self._endpoint = endpoint
        self._count = count
        self._dtype = dtype
        self._is_leader = is_leader
        self._closed = False

    @property
    def count(self) -> int:
        """The number of elements, not of bytes."""
        return self._count

    @property
    def dtype(self) -> Dtype:
        """The NumPy dtype of the elements."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Size of the region in bytes; on shm, mpi and tcp this much memory is used once per node."""
        return self._count * self._dtype.itemsize

    def as_array(self) -> Array:
        """Return a read-only array over all elements. It stays valid as long as it is referenced, even after `close`.

        Raises `RegionClosedError` after `close`.
        """
        self._require_open()
        return self._view(writable=False)

    def as_mut_array(self, start: int | None = None, stop: int | None = None) -> Array:
        """Return a writable array over the elements from `start` to `stop`, or, for the leader only, over all.

        Raises `NotLeaderError` if another rank requests all elements, `InvalidBufferSizeError` for a slice outside of
        the region, and `RegionClosedError` after `close`.

            region.as_mut_array(first, last)[:] = mine    # every rank fills its own slice
            region.fence()
        """
        self._require_open()
        if start is None and stop is None:
            if not self._is_leader:
                raise NotLeaderError(
                    f"rank {self._endpoint.rank} is not the leader of this region, and only the leader may write all "
                    "of it: use as_mut_array(start, stop)"
                )
            return self._view(writable=True)
        low, high = validation.check_slice(start, stop, self._count)
        return self._view(writable=True)[low:high]

    def fence(self, *, label: str = "") -> None:
        """Wait for all ranks of the node; what they wrote to the region before is then visible to all of them.

        A collective of the node's ranks. Raises `RegionClosedError`, `InvalidCommunicatorError` and
        `CollectiveFailedError`, as the collectives of the communicator do.
        """
        self._require_open()
        endpoint = self._endpoint
        try:
            done = endpoint._guard.fence(self._fence, label)
        except BaseException as error:  # noqa: BLE001 - any exception ends the call
            endpoint._fail(_FENCE, error)
        if not done:
            with endpoint._call(_FENCE, 0, label):
                self._fence()

    def close(self) -> None:
        """Close the region on this rank; may be repeated. Not a collective.

        The memory is freed once no rank has the region open, or an array over it.
        """
        if not self._closed:
            self._closed = True
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<{type(self).__name__} {self._count} x {self._dtype}, {state}>"

    def _require_open(self) -> None:
        if self._closed:
            raise RegionClosedError(f"this region of {self._count} x {self._dtype} is closed")

    @abstractmethod
    def _view(self, *, writable: bool) -> Array:
        """Return all elements as a one-dimensional array, which must keep the memory alive."""

    @abstractmethod
    def _fence(self) -> None:
        """Make this rank's writes visible to others, wait for all ranks of the node, and make theirs visible here."""

    @abstractmethod
    def _close(self) -> None:
        """Release the region on this rank; called once, must not wait for other ranks."""


class SharedMemoryProvider(Endpoint):
    """Provider of shared regions, and of the ranks that share a node.

    Every communicator that `create_communicator` returns is one. A backend must define `is_leader`,
    `_create_shared_region` and `_split_local`; one without shared memory returns `HeapRegion` and `LocalCommunicator`.
    """

    @property
    @abstractmethod
    def is_leader(self) -> bool:
        """Return whether this rank is the leader of its node, which fills shared regions; it never changes."""

    def create_shared_region(self, count: int, dtype: DTypeLike, *, label: str = "") -> SharedRegion:
        """Create a region of `count` elements on every node, initially zero. A collective of all ranks.

        `count` and `dtype` are the same on all ranks. Raises `AllocationFailedError` on every rank if any node has too
        little memory; the communicator stays usable. Raises `InvalidBufferSizeError` or `UnsupportedBufferError` for
        bad arguments.

            with comm.create_shared_region(n, "float64", label="costs") as costs:
                ...
        """
        self._require_open()
        elements, element = validation.check_region(count, dtype)
        with self._call(Operation.CREATE_SHARED_REGION, elements * element.itemsize, label):
            return self._create_shared_region(elements, element)

    def split_local(self, *, label: str = "") -> Communicator:
        """Create a communicator of the ranks that share this node's memory, in rank order. A collective of all ranks.

        Each rank closes its own. On backends without shared memory it has one rank. Raises `AllocationFailedError` on
        every rank if a node has too little memory.
        """
        self._require_open()
        with self._call(Operation.SPLIT_LOCAL, 0, label):
            return self._split_local()

    @abstractmethod
    def _create_shared_region(self, count: int, dtype: np.dtype[Any]) -> SharedRegion:
        """Create a region of zeros, on all ranks or on none: agree on it before raising `AllocationFailedError`."""

    @abstractmethod
    def _split_local(self) -> Communicator:
        """Create a communicator of this node's ranks, in the order of their ranks here."""


# Regions for backends without shared memory: every rank has a private copy, and is its own leader.


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
        """Return at once: no other rank has this memory."""

    def _close(self) -> None:
        """Drop the reference; arrays that were handed out keep the memory alive."""
        del self._array, self._readable

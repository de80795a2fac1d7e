"""The contract of shared regions: memory that all ranks of a node see at once.

Kept apart from `Communicator` because a region lives on, while a message is over when the call returns.
A backend without shared memory gives every rank a private copy (`HeapRegion`) that makes every rank its own
leader; programs written as below run unchanged on all of them:

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
from cobre.comm.errors import NotLeaderError, RegionClosedError
from cobre.comm.types import Array, Dtype, Operation


class SharedRegion(ABC):
    """`count` elements that every rank of the node sees; zero at first. Made by `create_shared_region`.

    Writing: the leader may write everything, any rank may write the slice that it names; two ranks must not write the
    same element between two fences. Reading: after a `fence`, everything written before it is visible. Native code of
    several ranks may change one element at any time by atomic instructions: a counter from which they take work.

    A backend must define `_view`, `_fence` and `_close`; it may rely on the region being open in the first two.
    """

    def __init__(self, endpoint: Endpoint, count: int, dtype: Dtype, is_leader: bool) -> None:
        self._endpoint = endpoint
        self._count = count
        self._dtype = dtype
        self._is_leader = is_leader
        self._closed = False

    @property
    def count(self) -> int:
        """Number of elements, not bytes."""
        return self._count

    @property
    def dtype(self) -> Dtype:
        """NumPy dtype of the elements."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Size of the region; on shm and mpi this is used once per node."""
        return self._count * self._dtype.itemsize

    def as_array(self) -> Array:
        """Everything, read-only. The array stays valid as long as it is referenced, even after `close`."""
        self._require_open()
        return self._view(writable=False)

    def as_mut_array(self, start: int | None = None, stop: int | None = None) -> Array:
        """The elements from `start` to `stop`, writable; without both, everything, for the leader only.

        Raises `NotLeaderError` where another rank asks for everything, and `RegionClosedError` after `close`.
        """
        self._require_open()
        if start is None and stop is None:
            if not self._is_leader:
                raise NotLeaderError(
                    f"rank {self._endpoint.rank} is not the leader of this region; only the leader writes the whole "
                    "array: name your slice, as_mut_array(start, stop)"
                )
            return self._view(writable=True)
        low, high = validation.check_slice(start, stop, self._count)
        return self._view(writable=True)[low:high]

    def fence(self, *, label: str = "") -> None:
        """Wait for all ranks of the region; what they wrote before is then visible to all. A collective of the node."""
        self._require_open()
        with self._endpoint._call(Operation.FENCE, 0, label):
            self._fence()

    def close(self) -> None:
        """Give the region up. Not a collective; the memory goes when the last array and the last rank do."""
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
        """All elements, one-dimensional; the memory must live as long as the array does."""

    @abstractmethod
    def _fence(self) -> None:
        """Make this rank's writes visible, wait for all ranks of the region, and see theirs."""

    @abstractmethod
    def _close(self) -> None:
        """Give the region up on this rank; called once, must not wait for other ranks."""


class SharedMemoryProvider(Endpoint):
    """Makes shared regions, and knows which ranks share a node.

    Every communicator of `create_communicator` is one. A backend must define `is_leader`, `_create_shared_region` and
    `_split_local`; one without shared memory returns `HeapRegion` and `LocalCommunicator`.
    """

    @property
    @abstractmethod
    def is_leader(self) -> bool:
        """Whether this rank fills the regions of its node: one rank of each node, the same for the whole run."""

    def create_shared_region(self, count: int, dtype: DTypeLike, *, label: str = "") -> SharedRegion:
        """Make a region of `count` elements, zero at first; all ranks call it with the same arguments.

        Raises `AllocationFailedError` on every rank where a node has too little memory; the communicator stays usable.
        """
        self._require_open()
        elements, element = validation.check_region(count, dtype)
        with self._call(Operation.CREATE_SHARED_REGION, elements * element.itemsize, label):
            return self._create_shared_region(elements, element)

    def split_local(self, *, label: str = "") -> Communicator:
        """Make a communicator of the ranks that share this node's memory; all ranks call it, each closes its own."""
        self._require_open()
        with self._call(Operation.SPLIT_LOCAL, 0, label):
            return self._split_local()

    @abstractmethod
    def _create_shared_region(self, count: int, dtype: np.dtype[Any]) -> SharedRegion:
        """Make a region that is zero, on all ranks or on none: agree before raising `AllocationFailedError`."""

    @abstractmethod
    def _split_local(self) -> Communicator:
        """A new communicator of this node's ranks, in the order of their ranks here."""

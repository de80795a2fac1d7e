"""Which ranks share memory, what they share, and how all ranks split work: contiguous blocks, gathered in order.

The ranks of a node share a study: one rank builds it, and its large arrays are in memory once. The leader of the node
builds, and writes into a shared region what the others need to have the same objects: a pickle without its large
arrays, followed by those arrays, deduplicated by content. All ranks of the node, including the leader, continue with
objects whose arrays are read-only views of the region. If no memory is shared, the region is private, and each rank
builds; the code is the same. A single rank keeps what it built, without a region.

The pickle is made by a process of the same job, through memory that no other user can write to; nothing that was
stored or sent over a network is read this way.
"""

import hashlib
import pickle
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Backend, Communicator, ReduceOp, SharedMemoryProvider, SharedRegion
from cobre.core.arrays import Indices
from cobre.records import dataclass

T = TypeVar("T")
Bytes = NDArray[np.uint8]

ALIGNMENT = 64
"""Bytes of a cache line: ranks never write to a line that others read, and every dtype is aligned."""
MIN_SHARED_BYTES = 512
"""Smaller arrays stay in the pickle: an entry in the header and alignment cost as much."""


def aligned(nbytes: int) -> int:
    """Round a size up to whole cache lines."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def ranks_sharing_memory(memory: SharedMemoryProvider) -> tuple[int, ...]:
    """Return the ranks that share memory with this one, itself included. Collective: call on every rank."""
    if memory.size == 1:
        return (memory.rank,)
    with memory.create_shared_region(memory.size, np.uint8, label="find ranks sharing memory") as region:
        region.as_mut_array(memory.rank, memory.rank + 1)[0] = 1
        region.fence(label="find ranks sharing memory")
        seen = tuple(np.flatnonzero(region.as_array()).tolist())
        region.fence(label="find ranks sharing memory")
    return seen


def count_sharing_memory(memory: SharedMemoryProvider) -> int:
    """Count the ranks that share memory with this one, itself included. Collective: call on every rank."""
    return len(ranks_sharing_memory(memory))


@dataclass(frozen=True, slots=True)
class WorkSplit:
    """`total` items over `size` ranks, in contiguous blocks; the first ranks get one more if it does not divide evenly.

    The order of ranks is the order of items, for any number of ranks.
    """

    total: int
    size: int

    @property
    def counts(self) -> tuple[int, ...]:
        """Items of every rank; zero for ranks beyond the last item."""
        share, extra = divmod(self.total, self.size)
        return tuple(share + (rank < extra) for rank in range(self.size))

    def block(self, rank: int) -> range:
        """Return the items of a rank: `WorkSplit(5, 2).block(0)` is range(0, 3), and that of rank 1 is range(3, 5)."""
        share, extra = divmod(self.total, self.size)
        start = rank * share + min(rank, extra)
        return range(start, start + share + (rank < extra))


def gather_rows(comm: Communicator, split: WorkSplit, own: NDArray[Any], label: str) -> NDArray[Any]:
    """Gather all ranks' rows of a table, in the order of the items that they belong to."""
    width = own.shape[1]
    table = np.empty((split.total, width), own.dtype)
    counts = [count * width for count in split.counts]
    comm.allgatherv(np.ascontiguousarray(own).reshape(-1), table.reshape(-1), counts, label=label)
    return table


# A value that is built once per node.


@dataclass(frozen=True, slots=True)
class Shared(Generic[T]):
    """A value with arrays in a region. shared_bytes: its size; saved_bytes: what sharing saves on this node."""

    value: T
    shared_bytes: int
    saved_bytes: int
    region: SharedRegion | None = None

    def close(self) -> None:
        """Release the region; its memory is freed with the last view."""
        if self.region is not None:
            self.region.close()


def build_once_per_node(comm: Backend, build: Callable[[], T]) -> Shared[T]:
    """Build a value on the leader of each node, and return it on all ranks of the node. Collective: call on every rank.

    If building fails on a leader, the other ranks receive `AbortedError`.
    """
    if comm.size == 1:
        return Shared(build(), 0, 0)
    packed = _PickledValue.of(build()) if comm.is_leader else None
    # Here ranks on mpi learn that a build failed; in the next call they could only be aborted.
    comm.check_failures()
    # All ranks must ask for a region of the same size, and only leaders know how large it must be.
    size = _largest(comm, 0 if packed is None else packed.nbytes)
    region = comm.create_shared_region(size, np.uint8, label="problem")
    if packed is not None:
        packed.write(region.as_mut_array())
    # The original is released before the copy in the region is made: otherwise the leader would hold the study twice.
    del packed
    # Before the fence the header of the region is zeros, or half a pickle.
    region.fence(label="problem")
    value: T = _read(region.as_array())
    return Shared(value, size, (count_sharing_memory(comm) - 1) * size, region)


@dataclass(frozen=True, slots=True)
class _PickledValue:
    """A pickle and the large arrays that it leaves out. offsets_and_sizes: of each array in the region, in bytes."""

    content: bytes
    arrays: list[memoryview]
    starts: list[int]
    offsets_and_sizes: Indices
    nbytes: int

    @classmethod
    def of(cls, value: object) -> "_PickledValue":
        arrays: list[memoryview] = []

        def stays_in_pickle(buffer: pickle.PickleBuffer) -> bool:
            array = buffer.raw()
            if array.nbytes >= MIN_SHARED_BYTES:
                arrays.append(array)
            return array.nbytes < MIN_SHARED_BYTES

        # Protocol 5 hands large arrays to the callback instead of copying them into the pickle.
        content = pickle.dumps(value, protocol=5, buffer_callback=stays_in_pickle)
        keys = [(array.nbytes, hashlib.blake2b(array, digest_size=16).digest()) for array in arrays]
        # One copy of equal arrays: stages have many in common. `keys` stays in the order in which `loads` asks.
        unique = dict(zip(keys, arrays, strict=True))
        # The header has a fixed form, so that a reader needs nothing but the region.
        end = aligned(8 * (2 + 2 * len(keys)) + len(content))
        start = {}
        for key, array in unique.items():
            start[key], end = end, end + aligned(array.nbytes)
        offsets_and_sizes = np.array([(start[key], key[0]) for key in keys], np.int64).reshape(-1, 2)
        return cls(content, list(unique.values()), list(start.values()), offsets_and_sizes, max(1, end))

    def write(self, region: Bytes) -> None:
        """Write the number of arrays, the length of the pickle, offsets and sizes, the pickle and the arrays."""
        lengths = [len(self.offsets_and_sizes), len(self.content)]
        header = np.concatenate([lengths, self.offsets_and_sizes.reshape(-1)]).astype(np.int64)
        region[: header.nbytes] = header.view(np.uint8)
        region[header.nbytes : header.nbytes + len(self.content)] = np.frombuffer(self.content, np.uint8)
        for array, start in zip(self.arrays, self.starts, strict=True):
            region[start : start + array.nbytes] = np.frombuffer(array, np.uint8)


def _read(region: Bytes) -> Any:
    """Read what `_PickledValue.write` wrote, with views of the region instead of large arrays."""
    count, length = region[:16].view(np.int64).tolist()
    header = 16 + 16 * count
    offsets_and_sizes = region[16:header].view(np.int64).reshape(-1, 2).tolist()
    # `as_array` is read-only, and so are the arrays of the value: no rank can change what others read.
    views = (region[start : start + size] for start, size in offsets_and_sizes)
    return pickle.loads(region[header : header + length].data, buffers=views)  # noqa: S301 - see the module's docstring


def _largest(comm: Backend, size: int) -> int:
    """Return the largest size of all ranks: regions of all nodes have one size. Ranks that built nothing pass 0."""
    largest = np.empty(1, np.int64)
    comm.allreduce(np.array([size], np.int64), largest, ReduceOp.MAX, label="size of the problem")
    return int(largest[0])

"""How ranks share work and results: contiguous blocks of scenarios, and regions of shared memory."""

import hashlib
import pickle
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Backend, Communicator, ReduceOp, SharedMemoryProvider, SharedRegion
from cobre.core.arrays import Indices
from cobre.records import dataclass

# Alignment of arrays in a shared region.

ALIGNMENT = 64
"""Bytes of a cache line: what one rank writes shares none with what others read, and every dtype is aligned."""


def aligned(nbytes: int) -> int:
    """Round a size up to whole cache lines."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


# Which ranks see each other's shared memory.


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


# Values that ranks of a node share: one of them builds a study, whose numbers are in memory once.
#
# The leader of a node builds, and writes into a shared region what the others need to have the same objects: a pickle
# of everything but large arrays, and those arrays, those with the same content once. All ranks of the node, the
# leader too, go on with objects whose arrays are views of the region, read-only. Where no memory is shared the region
# is each rank's own, and each builds; the code is the same. A rank that is alone keeps what it built, without a
# region.
#
# The pickle is made by a process of the same job, through memory that no other user can write to; nothing that was
# stored or sent over a network is read this way.

T = TypeVar("T")
Bytes = NDArray[np.uint8]


MIN_SHARED_BYTES = 512  # smaller arrays stay in the pickle: an entry in the header and alignment cost as much


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


def share(comm: Backend, build: Callable[[], T]) -> Shared[T]:
    """Build a value on the leader of each node, and share it with its ranks. Collective: call on every rank.

    If building fails on a leader, the other ranks receive `AbortedError`.
    """
    if comm.size == 1:
        return Shared(build(), 0, 0)
    packed = _Packed.of(build()) if comm.is_leader else None
    # Here ranks on mpi learn that a build failed; in the next call they could only be aborted.
    comm.check_failures()
    # All ranks must ask for a region of the same size, and only leaders know what they need.
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
class _Packed:
    """A value as a pickle and the large arrays that it leaves out; extents: where each of them begins and its bytes."""

    content: bytes
    arrays: list[memoryview]
    starts: list[int]
    extents: Indices
    nbytes: int

    @classmethod
    def of(cls, value: object) -> "_Packed":
        found: list[memoryview] = []
        # Protocol 5 hands large arrays to the callback instead of copying them into the pickle.
        content = pickle.dumps(value, protocol=5, buffer_callback=lambda buffer: _stays_in_pickle(buffer, found))
        keys = [_key(array) for array in found]
        # One copy of equal arrays: stages have many in common. `found` stays in the order in which `loads` asks.
        first = dict(zip(keys, found, strict=True))
        # The header has a fixed form, so that a reader needs nothing but the region.
        end = aligned(8 * (2 + 2 * len(found)) + len(content))
        start = {}
        for key, array in first.items():
            start[key], end = end, end + aligned(array.nbytes)
        extents = np.array([(start[key], array.nbytes) for key, array in zip(keys, found, strict=True)], np.int64)
        return cls(content, list(first.values()), list(start.values()), extents.reshape(-1, 2), max(1, end))

    def write(self, region: Bytes) -> None:
        """Write the number of arrays, the length of the pickle, the extents, the pickle and the arrays."""
        header = np.concatenate([[len(self.extents), len(self.content)], self.extents.reshape(-1)]).astype(np.int64)
        region[: header.nbytes] = header.view(np.uint8)
        region[header.nbytes : header.nbytes + len(self.content)] = np.frombuffer(self.content, np.uint8)
        for array, start in zip(self.arrays, self.starts, strict=True):
            region[start : start + array.nbytes] = np.frombuffer(array, np.uint8)


def _read(region: Bytes) -> Any:
    """Read what `_Packed.write` wrote, with views of the region instead of large arrays."""
    count, length = region[:16].view(np.int64).tolist()
    header = 16 + 16 * count
    extents = region[16:header].view(np.int64).reshape(-1, 2).tolist()
    # `as_array` is read-only, and so are the arrays of the value: no rank can change what others read.
    views = (region[start : start + size] for start, size in extents)
    return pickle.loads(region[header : header + length].data, buffers=views)  # noqa: S301 - see above


def _stays_in_pickle(buffer: pickle.PickleBuffer, found: list[memoryview]) -> bool:
    """Return whether an array stays in the pickle; others are added to `found`."""
    array = buffer.raw()
    if array.nbytes >= MIN_SHARED_BYTES:
        found.append(array)
    return array.nbytes < MIN_SHARED_BYTES


def _key(array: memoryview) -> tuple[int, bytes]:
    """Return size and digest of the content: arrays that have both in common are stored once."""
    return array.nbytes, hashlib.blake2b(array, digest_size=16).digest()


def _largest(comm: Backend, size: int) -> int:
    """Return the largest size of all ranks: regions of all nodes have one size. Ranks that built nothing bring 0."""
    found = np.empty(1, np.int64)
    comm.allreduce(np.array([size], np.int64), found, ReduceOp.MAX, label="size of the problem")
    return int(found[0])


# The split of work: contiguous blocks, so that the order of ranks is the order of scenarios for any number of ranks.


@dataclass(frozen=True, slots=True)
class WorkSplit:
    """`total` items over `size` ranks; the first ranks get one more when it does not divide evenly."""

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

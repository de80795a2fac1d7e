"""Which ranks share memory, and how all ranks split work: contiguous blocks, whose rows are gathered in order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator, SharedMemoryProvider
from cobre.records import dataclass

ALIGNMENT = 64
"""Bytes of a cache line: ranks never write to a line that others read, and every dtype is aligned."""


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

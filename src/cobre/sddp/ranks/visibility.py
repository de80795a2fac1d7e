"""Which ranks see each other's shared memory."""

import numpy as np

from cobre.comm import SharedMemoryProvider


def ranks_sharing_memory(memory: SharedMemoryProvider) -> tuple[int, ...]:
    """The ranks of the world that read what this one writes into a region, itself included; every rank must ask."""
    if memory.size == 1:
        return (memory.rank,)
    with memory.create_shared_region(memory.size, np.uint8, label="find ranks sharing memory") as region:
        region.as_mut_array(memory.rank, memory.rank + 1)[0] = 1
        region.fence(label="find ranks sharing memory")
        seen = tuple(np.flatnonzero(region.as_array()).tolist())
        region.fence(label="find ranks sharing memory")
    return seen


def count_sharing_memory(memory: SharedMemoryProvider) -> int:
    """How many ranks read what this one writes into a region, itself included; every rank must ask."""
    return len(ranks_sharing_memory(memory))

"""Who sees whose memory."""

import numpy as np

from cobre.comm import SharedMemoryProvider


def ranks_that_see(memory: SharedMemoryProvider) -> int:
    """How many ranks of the world read what this one writes into a region, itself included; every rank must ask."""
    if memory.size == 1:
        return 1
    with memory.create_shared_region(memory.size, np.uint8, label="who is here") as region:
        region.as_mut_array(memory.rank, memory.rank + 1)[0] = 1
        region.fence(label="who is here")
        seen = int(region.as_array().sum())
        region.fence(label="who is here")
    return seen

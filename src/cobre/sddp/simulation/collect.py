"""Results of all ranks, stage by stage, for rank 0 alone."""

from collections.abc import Callable

import numpy as np

from cobre.comm import Communicator, SharedMemoryProvider, SharedRegion
from cobre.core.arrays import Floats
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.training.exchange import gather_rows


class Collector:
    """Brings rows of numbers from all ranks to rank 0; every rank must take part in every call.

    memory: where all ranks see what each writes; without it rows are gathered, which brings them to all ranks.
    max_numbers: that all ranks together bring at once.
    """

    def __init__(self, comm: Communicator, memory: SharedMemoryProvider | None, max_numbers: int) -> None:
        self._comm = comm
        self._half = max_numbers
        self._turn = 0
        self._region: SharedRegion | None = None
        if memory is not None and comm.size > 1:
            # Two halves, used in turn: rank 0 reads one while the others write into the other.
            self._region = memory.create_shared_region(2 * max_numbers, np.float64, label="results")

    def collect(self, split: WorkSplit, own: Floats, label: str, take: Callable[[Floats], None]) -> None:
        """Rank 0 takes all ranks' rows, in the order of ranks; they are valid until `take` returns."""
        if self._comm.size == 1:
            take(own)
        elif self._region is None:
            table = gather_rows(self._comm, split, own, label)
            if self._comm.rank == 0:
                take(table)
        else:
            self._share(self._region, split, own, label, take)

    def _share(
        self, region: SharedRegion, split: WorkSplit, own: Floats, label: str, take: Callable[[Floats], None]
    ) -> None:
        width = own.shape[1]
        start = self._turn * self._half
        mine = split.block(self._comm.rank)
        if mine:
            first, last = start + mine.start * width, start + mine.stop * width
            region.as_mut_array(first, last)[:] = own.reshape(-1)
        region.fence(label=label)
        if self._comm.rank == 0:
            take(region.as_array()[start : start + split.total * width].reshape(split.total, width))
        self._turn = 1 - self._turn

    def close(self) -> None:
        """Release the shared memory, if there is any."""
        if self._region is not None:
            self._region.close()

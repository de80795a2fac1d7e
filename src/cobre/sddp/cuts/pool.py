"""All cuts of a study, stage by stage, in slots that follow from (iteration, forward pass).

The numbers lie in chunks that all stages share: a chunk holds 256 slots of every stage, component after component,
which is how the LP kernel evaluates them. A pool grows by whole chunks, with the cuts and with nothing else.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cobre.comm import SharedMemoryProvider, SharedRegion
from cobre.solver.batches import CUTS_PER_CHUNK, CutRows
from cobre.solver.program import Floats

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class CutSet:
    """Some cuts of one stage: cost-to-go >= intercept + coefficients . state."""

    intercepts: Floats
    coefficients: Floats  # cuts x dimension


class CutPool:
    """Cuts of all stages. What it says is the same on all ranks; ranks of one node share the numbers."""

    def __init__(self, memory: SharedMemoryProvider, num_stages: int, dimension: int) -> None:
        self._memory = memory
        self._regions: list[SharedRegion] = []
        self._shape = (num_stages, 1 + dimension, CUTS_PER_CHUNK)
        self.count = 0
        self.born = np.zeros(0, np.int32)  # by slot: the iteration; 0 for cuts from elsewhere
        self.forward_pass = np.zeros(0, np.int32)
        self.in_play: NDArray[np.uint8] = np.zeros((num_stages, 0), np.uint8)
        self.written: NDArray[np.uint8] = np.zeros((num_stages, 0), np.uint8)

    @property
    def num_stages(self) -> int:
        """Stages that hold cuts, the last one included."""
        return self._shape[0]

    @property
    def dimension(self) -> int:
        """Components of a cut."""
        return self._shape[1] - 1

    @property
    def nbytes(self) -> int:
        """Memory of the numbers."""
        return len(self._regions) * int(np.prod(self._shape)) * 8

    def open_slots(self, iteration: int, forward_passes: int) -> range:
        """Make room for one iteration's cuts, one for each forward pass; none is in play before it is written."""
        slots = range(self.count, self.count + forward_passes)
        while slots.stop > len(self._regions) * CUTS_PER_CHUNK:
            self._regions.append(self._memory.create_shared_region(int(np.prod(self._shape)), np.dtype(np.float64)))
        self.count = slots.stop
        self.born = np.append(self.born, np.full(forward_passes, iteration, np.int32))
        self.forward_pass = np.append(self.forward_pass, np.arange(forward_passes, dtype=np.int32))
        self.in_play = _widen(self.in_play, forward_passes, 0)
        self.written = _widen(self.written, forward_passes, 0)
        return slots

    def write(self, stage: int, slots: range, cuts: CutSet) -> None:
        """Put cuts into their slots; where memory is shared the leader writes and the others wait for it."""
        if self._memory.is_leader:
            for row, slot in enumerate(slots):
                chunk = self._chunk(stage, slot // CUTS_PER_CHUNK, writable=True)
                chunk[0, slot % CUTS_PER_CHUNK] = cuts.intercepts[row]
                chunk[1:, slot % CUTS_PER_CHUNK] = cuts.coefficients[row]
        for region in self._regions[slots.start // CUTS_PER_CHUNK :]:
            region.fence()
        self.in_play[stage, slots.start : slots.stop] = 1
        self.written[stage, slots.start : slots.stop] = 1

    def rows(self, stage: int, *, everything: bool = False) -> CutRows:
        """The cuts of a stage for the solver; `everything`: those that selection put aside as well."""
        chunks = [self._chunk(stage, number) for number in range(len(self._regions))]
        in_play = self.written[stage] if everything else self.in_play[stage]
        return CutRows(chunks, self.count, np.ascontiguousarray(in_play))

    def cuts(self, stage: int) -> CutSet:
        """A copy of all cuts of a stage, by slot."""
        chunks = [self._chunk(stage, number) for number in range(len(self._regions))]
        whole = np.concatenate(chunks, axis=1) if chunks else np.zeros((1 + self.dimension, 0))
        return CutSet(whole[0, : self.count].copy(), np.ascontiguousarray(whole[1:, : self.count].T))

    def close(self) -> None:
        """Let go of the memory."""
        for region in self._regions:
            region.close()

    def _chunk(self, stage: int, number: int, *, writable: bool = False) -> Floats:
        region = self._regions[number]
        array = region.as_mut_array() if writable else region.as_array()
        chunk: Floats = array.reshape(self._shape)[stage]
        return chunk


def _widen(table: NDArray[Number], columns: int, value: int) -> NDArray[Number]:
    return np.concatenate([table, np.full((len(table), columns), value, table.dtype)], axis=1)

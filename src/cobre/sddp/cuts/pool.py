"""All cuts of a study, stage by stage, in slots that follow from (iteration, forward pass).

The numbers lie in chunks that all stages share: a chunk holds 256 slots of every stage, component after component,
which is how the LP kernel evaluates them. A pool grows by whole chunks, with the cuts and with nothing else.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cobre._native import place_cuts
from cobre.comm import SharedMemoryProvider, SharedRegion
from cobre.sddp.cuts.visibility import ranks_that_see
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
        self._chunks: list[list[Floats]] = [[] for _ in range(num_stages)]  # by stage, to read
        self._writable: list[list[Floats]] = [[] for _ in range(num_stages)]
        self.is_leader = memory.is_leader
        self._readers = ranks_that_see(memory)
        self.is_seen_by_all = self._readers == memory.size
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

    @property
    def saved_bytes(self) -> int:
        """What the ranks of this node do without, because they share the numbers."""
        return (self._readers - 1) * self.nbytes

    def open_slots(self, iteration: int, forward_passes: int) -> range:
        """Make room for one iteration's cuts, one for each forward pass; none is in play before it is written."""
        slots = range(self.count, self.count + forward_passes)
        while slots.stop > len(self._regions) * CUTS_PER_CHUNK:
            self._grow()
        self.count = slots.stop
        self.born = np.append(self.born, np.full(forward_passes, iteration, np.int32))
        self.forward_pass = np.append(self.forward_pass, np.arange(forward_passes, dtype=np.int32))
        self.in_play = _widen(self.in_play, forward_passes, 0)
        self.written = _widen(self.written, forward_passes, 0)
        return slots

    def write(self, stage: int, slots: range, cuts: CutSet) -> None:
        """Put cuts that every rank has into their slots; where memory is shared the leader writes."""
        if self.is_leader:
            self.place(stage, slots.start, np.column_stack([cuts.intercepts, cuts.coefficients]))
        self.publish(stage, slots)

    def place(self, stage: int, slot: int, table: Floats) -> None:
        """Write cuts (rows of intercept and coefficients) into the slots from `slot` on; nobody sees them yet."""
        place_cuts(table, self._writable[stage], slot)

    def publish(self, stage: int, slots: range) -> None:
        """Wait until all ranks of the node have placed their cuts, and let them take part."""
        if self._memory.size > 1:
            for region in self._regions[slots.start // CUTS_PER_CHUNK :]:
                region.fence(label="cuts")
        self.in_play[stage, slots.start : slots.stop] = 1
        self.written[stage, slots.start : slots.stop] = 1

    def rows(self, stage: int, *, everything: bool = False) -> CutRows:
        """The cuts of a stage for the solver; `everything`: those that selection put aside as well."""
        return CutRows(self._chunks[stage], self.count, (self.written if everything else self.in_play)[stage])

    def cuts(self, stage: int) -> CutSet:
        """A copy of all cuts of a stage, by slot."""
        chunks = self._chunks[stage]
        whole = np.concatenate(chunks, axis=1) if chunks else np.zeros((1 + self.dimension, 0))
        return CutSet(whole[0, : self.count].copy(), np.ascontiguousarray(whole[1:, : self.count].T))

    def close(self) -> None:
        """Let go of the memory."""
        self._chunks, self._writable = [], []
        for region in self._regions:
            region.close()

    def _grow(self) -> None:
        """One more chunk for every stage."""
        region = self._memory.create_shared_region(int(np.prod(self._shape)), np.dtype(np.float64), label="cuts")
        self._regions.append(region)
        readable, writable = region.as_array(), region.as_mut_array(0, region.count)
        for stage in range(self.num_stages):
            self._chunks[stage].append(readable.reshape(self._shape)[stage])
            self._writable[stage].append(writable.reshape(self._shape)[stage])


def _widen(table: NDArray[Number], columns: int, value: int) -> NDArray[Number]:
    return np.concatenate([table, np.full((len(table), columns), value, table.dtype)], axis=1)

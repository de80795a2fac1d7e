"""All cuts of a study, stage by stage, in slots that follow from (iteration, forward pass).

The numbers are in chunks that all stages share: a chunk holds some slots of every stage, component after component,
which is how the LP kernel evaluates them. A pool grows by whole chunks, which are at most a quarter of what there is
once there are many cuts; nothing is ever copied. Components that no cut of a stage can depend on are not stored.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cobre._native import CUTS_PER_BLOCK, cut_values, write_cuts
from cobre.comm import SharedMemoryProvider, SharedRegion
from cobre.core.arrays import Flags, Floats, Indices, Ints
from cobre.errors import InternalError
from cobre.records import dataclass
from cobre.sddp.ranks import count_sharing_memory
from cobre.solver.batches import CutRows, NewCuts
from cobre.solver.program import StageProgram

Number = TypeVar("Number", bound=np.generic)

MAX_CHUNK_CUTS = 256

# A small pool has room for some iterations at once: a region takes ranks a collective call, however small it is.
CHEAP_ITERATIONS = 8
CHEAP_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CutSet:
    """Some cuts of one stage: cost-to-go >= intercept + coefficients . state."""

    intercepts: Floats
    coefficients: Floats  # cuts x dimension

    def values_at(self, states: Floats) -> Floats:
        """Return values, states x cuts, added component by component, in order."""
        values = np.broadcast_to(self.intercepts, (len(states), len(self.intercepts))).copy()
        for component in range(states.shape[1]):
            values += states[:, component, None] * self.coefficients[None, :, component]
        return values

    def __len__(self) -> int:
        return len(self.intercepts)

    def values_from(self, states: Floats, first: int) -> Floats:
        """Return values, states x cuts, of the cuts from index `first` on."""
        return CutSet(self.intercepts[first:], self.coefficients[first:]).values_at(states)


@dataclass(frozen=True, slots=True)
class WrittenCuts:
    """The cuts in some slots of one stage, as a view of the pool: they have the values of a `CutSet`, without a copy.

    States have the components that are stored, in order.
    """

    rows: CutRows
    slots: NDArray[np.intp]

    def values_at(self, states: Floats) -> Floats:
        """Return values, states x cuts, added component by component, in order."""
        rows, points = self.rows, np.ascontiguousarray(states)
        values = cut_values(CutRows(rows.chunks, rows.count, rows.active), points)
        return values if len(self.slots) == rows.count else values[:, self.slots]

    def __len__(self) -> int:
        return len(self.slots)

    def values_from(self, states: Floats, first: int) -> Floats:
        """Return values, states x cuts, of the cuts from index `first` on; only chunks that hold them are read."""
        starts = np.concatenate([[0], np.cumsum([chunk.shape[1] for chunk in self.rows.chunks])])
        first_chunk = int(np.searchsorted(starts, self.slots[first], side="right")) - 1
        start = int(starts[first_chunk])
        rows = CutRows(self.rows.chunks[first_chunk:], self.rows.count - start, self.rows.active[start:])
        return WrittenCuts(rows, self.slots[first:] - start).values_at(states)


class CutPool:
    """Cuts of all stages. Its content is the same on all ranks; ranks of one node share the numbers.

    components: by stage, the entries of the state that its cuts can depend on; None: all of them.
    """

    def __init__(
        self,
        memory: SharedMemoryProvider,
        num_stages: int,
        dimension: int,
        components: Sequence[Flags] | None = None,
    ) -> None:
        self.memory = memory
        self.num_stages = num_stages
        self.dimension = dimension
        self._regions: list[SharedRegion] = []
        self._starts = [0]  # slots before each chunk, and before the next
        self._chunks: list[list[Floats]] = [[] for _ in range(num_stages)]  # by stage, to read
        self._writable: list[list[Floats]] = [[] for _ in range(num_stages)]
        self.is_leader = memory.is_leader
        self._readers = count_sharing_memory(memory)
        self.is_shared_by_all_ranks = self._readers == memory.size
        self._stored = list(components or [np.ones(dimension, bool)] * num_stages)
        self._layouts = [_Layout.of(part) for part in self._stored]
        self.count = 0
        self._slots = _GrowingTable((2,), np.int32)
        self._flags = _GrowingTable((2, num_stages), np.uint8)
        self.created, self.forward_pass = self._slots.table  # by slot: iteration (0: a cut from elsewhere), and pass
        self.active, self.written = self._flags.table  # by stage and slot

    @property
    def nbytes(self) -> int:
        """Bytes of the cuts' numbers on this node."""
        return sum(region.nbytes for region in self._regions)

    @property
    def saved_bytes(self) -> int:
        """Bytes that the ranks of this node save by sharing the numbers."""
        return (self._readers - 1) * self.nbytes

    @property
    def has_gaps(self) -> bool:
        """Whether some stage has cuts in some of its slots only, as after a stored policy that differs by stage."""
        written = self.written.sum(axis=1)
        return bool(((written != 0) & (written != self.count)).any())

    def components(self, stage: int) -> NDArray[np.intp]:
        """Return the entries of the state that are stored for a stage, ascending."""
        return np.flatnonzero(self._stored[stage])

    def ensure_components(self, stage: int, coefficients: Floats) -> None:
        """Extend the stored components to all that cuts of a loaded policy depend on. The pool must be empty."""
        self._stored[stage] = self._stored[stage] | coefficients.any(axis=0)
        self._layouts[stage] = _Layout.of(self._stored[stage])

    def reserve_slots(self, iteration: int, forward_passes: int) -> range:
        """Make room for one iteration's cuts, one for each forward pass; none is active before it is written."""
        slots = range(self.count, self.count + forward_passes)
        while slots.stop > self._starts[-1]:
            self._grow(slots.stop - self._starts[-1])
        self.count = slots.stop
        self.created, self.forward_pass = self._slots.widen(slots.stop)
        self.active, self.written = self._flags.widen(slots.stop)
        self.created[slots.start :] = iteration
        self.forward_pass[slots.start :] = np.arange(forward_passes)
        return slots

    def forget_slots(self, count: int, active: NDArray[np.uint8]) -> None:
        """Forget all slots from number `count` on; `active`: the flags of the others."""
        self._slots.table[..., count:] = 0  # where slots are reserved again they must be as new
        self._flags.table[..., count:] = 0
        self.count = count
        self.created, self.forward_pass = self._slots.widen(count)
        self.active, self.written = self._flags.widen(count)
        self.active[:] = active

    def write(self, stage: int, slots: range, cuts: CutSet) -> None:
        """Put cuts that every rank has into their slots; where memory is shared the leader writes."""
        if self.is_leader:
            self.write_at(stage, slots.start, self.stored_part(stage, cuts))
        self.publish(stage, slots)

    def cut_bytes(self, stage: int) -> int:
        """Return the bytes of one cut of a stage."""
        return 8 * self._layouts[stage].height

    def stored_part(self, stage: int, cuts: CutSet) -> Floats:
        """Return cuts as rows of an intercept and the components that are stored."""
        table = np.empty((len(cuts.intercepts), self._layouts[stage].height))
        table[:, 0], table[:, 1:] = cuts.intercepts, cuts.coefficients[:, self.components(stage)]
        return table

    def stored_columns(self, stage: int, table: Floats) -> Floats:
        """Return the stored columns of a table of cuts, whose rows are an intercept and all components.

        Raises InternalError if a component that is not stored has a coefficient.
        """
        layout = self._layouts[stage]
        if layout.rows is None:
            return table
        if table.take(layout.dropped, axis=1).any():
            raise unstored_coefficient_error(stage)
        return table.take(layout.columns, axis=1)

    def write_node_cuts(self, stages: range, slot: int, table: Floats) -> None:
        """Put one cut (a row of intercept and coefficients) that every rank has into a slot of each of some stages."""
        for row, stage in enumerate(stages):
            stored = self.stored_columns(stage, table[row : row + 1])
            if self.is_leader:
                self.write_at(stage, slot, np.ascontiguousarray(stored))
        if self.memory.size > 1:
            for region in self._regions:
                region.fence(label="cuts")
        self.active[stages.start : stages.stop, slot] = 1
        self.written[stages.start : stages.stop, slot] = 1

    def write_at(self, stage: int, slot: int, table: Floats) -> None:
        """Write cuts (rows of intercept and stored components) from slot `slot` on.

        They stay inactive until `publish`.
        """
        write_cuts(table, self._writable[stage], slot)

    def target(self, stage: int, first_slot: int, spectral_weights: Floats) -> NewCuts:
        """Return where the solver puts cuts that it makes; `activate` them when all ranks have finished."""
        return NewCuts(spectral_weights, self._writable[stage], first_slot, self._layouts[stage].rows)

    def publish(self, stage: int, slots: range) -> None:
        """Wait until all ranks of the node have written their cuts, and activate them."""
        if self.memory.size > 1:
            for region, end in zip(self._regions, self._starts[1:], strict=True):
                if end > slots.start:
                    region.fence(label="cuts")
        self.activate(stage, slots)

    def activate(self, stage: int, slots: range) -> None:
        """Make cuts that are written active."""
        self.active[stage, slots.start : slots.stop] = 1
        self.written[stage, slots.start : slots.stop] = 1

    def rows(self, stage: int, *, all_cuts: bool = False) -> CutRows:
        """Return the cuts of a stage for the solver; `all_cuts`: with those that selection deactivated."""
        flags = (self.written if all_cuts else self.active)[stage]
        return CutRows(self._chunks[stage], self.count, flags, self._layouts[stage].rows)

    @property
    def boundary(self) -> CutRows | None:
        """Cuts of a boundary policy after the last stage; None if the study has none."""
        return None

    def written_cuts(self, stage: int) -> WrittenCuts:
        """Return all cuts of a stage, also those that selection deactivated, without a copy."""
        return WrittenCuts(self.rows(stage, all_cuts=True), np.flatnonzero(self.written[stage]))

    def cuts(self, stage: int) -> CutSet:
        """Copy all cuts of a stage, by slot."""
        stored = self.stored_cuts(stage)
        coefficients = np.zeros((self.count, self.dimension))
        coefficients[:, self.components(stage)] = stored.coefficients
        return CutSet(stored.intercepts, coefficients)

    def intercepts(self, stage: int) -> Floats:
        """Return the intercepts of all cuts of a stage, by slot."""
        return np.concatenate([np.zeros(0), *(chunk[0] for chunk in self._chunks[stage])])[: self.count]

    def blocks(self, stage: int, count: int) -> Iterator[CutSet]:
        """Yield copies of the first `count` cuts of a stage, chunk by chunk; others may be written in the meantime."""
        components = self.components(stage)
        for number in range(bisect_left(self._starts, count)):
            chunk = self._chunks[stage][number][:, : count - self._starts[number]]
            coefficients = np.zeros((chunk.shape[1], self.dimension))
            coefficients[:, components] = chunk[1:].T
            yield CutSet(chunk[0].copy(), coefficients)

    def stored_cuts(self, stage: int) -> CutSet:
        """Copy all cuts of a stage, by slot, with the components that are stored."""
        table = np.empty((self.count, self._layouts[stage].height))
        for start, chunk in zip(self._starts, self._chunks[stage], strict=False):
            part = table[start : start + chunk.shape[1]]
            part[:] = chunk[:, : len(part)].T
        return CutSet(table[:, 0].copy(), table[:, 1:])

    def stored_rows(self, stage: int, first: int, count: int) -> Floats:
        """Copy `count` cuts of a stage from slot `first` on: rows of intercept and the stored components."""
        table = np.empty((count, self._layouts[stage].height))
        for start, end, chunk in zip(self._starts, self._starts[1:], self._chunks[stage], strict=False):
            low, high = max(start, first), min(end, first + count)
            if low < high:
                table[low - first : high - first] = chunk[:, low - start : high - start].T
        return table

    def close(self) -> None:
        """Release the shared regions; the pool cannot be used any more."""
        self._chunks, self._writable = [], []
        for region in self._regions:
            region.close()

    def _grow(self, needed: int) -> None:
        """Add a chunk with room for at least `needed` more slots to every stage."""
        heights = [layout.height for layout in self._layouts]
        width = _chunk_slots(needed, self.count, 8 * sum(heights))
        region = self.memory.create_shared_region(width * sum(heights), np.dtype(np.float64), label="cuts")
        self._regions.append(region)
        self._starts.append(self._starts[-1] + width)
        readable, writable, start = region.as_array(), region.as_mut_array(0, region.count), 0
        for stage, height in enumerate(heights):
            end = start + width * height
            self._chunks[stage].append(readable[start:end].reshape(height, width))
            self._writable[stage].append(writable[start:end].reshape(height, width))
            start = end


def _chunk_slots(needed: int, count: int, slot_bytes: int) -> int:
    """Return the slots of the next chunk, where there are `count` cuts. slot_bytes: of one slot of all stages."""
    cheap = min(CHEAP_ITERATIONS * needed, CHEAP_BYTES // slot_bytes)
    blocks = -(-max(needed, count // 4, cheap) // CUTS_PER_BLOCK)
    return min(MAX_CHUNK_CUTS, blocks * CUTS_PER_BLOCK)


def slots_in_memory(iterations: int, forward_passes: int, slot_bytes: int) -> int:
    """Return the number of slots that a pool has allocated after that many iterations; it grows by whole chunks."""
    room = 0
    for count in range(0, iterations * forward_passes, forward_passes):
        while (needed := count + forward_passes - room) > 0:
            room += _chunk_slots(needed, count, slot_bytes)
    return room


def unstored_coefficient_error(stage: int) -> InternalError:
    """Return the error for a cut with a coefficient of a component that is not stored."""
    return InternalError(f"a cut of stage {stage} depends on a state that nothing after the stage reads")


@dataclass(frozen=True, slots=True)
class _Layout:
    """Rows of a stage's chunks. columns: of a cut's numbers, those that are stored; rows: by component, None: all."""

    height: int
    columns: NDArray[np.intp]
    dropped: NDArray[np.intp]
    rows: Ints | None

    @classmethod
    def of(cls, stored: Flags) -> "_Layout":
        components = np.flatnonzero(stored)
        rows = np.full(len(stored), -1, np.int32)
        rows[components] = np.arange(1, 1 + len(components), dtype=np.int32)
        columns, dropped = np.concatenate([[0], 1 + components]), 1 + np.flatnonzero(~stored)
        return cls(1 + len(components), columns, dropped, None if len(components) == len(stored) else rows)


class _GrowingTable(Generic[Number]):
    """A table of zeros that changes its width; some room is kept ready, so that most times nothing is copied."""

    def __init__(self, heights: tuple[int, ...], dtype: type[Number]) -> None:
        self._room: NDArray[Number] = np.zeros((*heights, 0), dtype)
        self.table = self._room

    def widen(self, width: int) -> NDArray[Number]:
        """Return the table with `width` columns."""
        if width > self._room.shape[-1]:
            room = np.zeros((*self._room.shape[:-1], width + width // 4), self._room.dtype)
            room[..., : self.table.shape[-1]] = self.table
            self._room = room
        self.table = self._room[..., :width]
        return self.table


# Which entries of the state the cuts of a stage can depend on; the others are zero in every cut and are not stored.


def stored_components(programs: Sequence[StageProgram], *, is_priced: bool) -> list[Flags]:
    """Return the stored entries by stage, of the state that leaves it. is_priced: a boundary policy follows.

    A lag is stored if the next stage's inflow depends on it, or a later stage needs it shifted by one. Decided and
    carried states are always stored.
    """
    needed = [np.full(programs[-1].dimension, is_priced)]
    for program in reversed(programs[1:]):
        needed.append(_read_by(program, needed[-1]))
    return needed[::-1]


def _read_by(program: StageProgram, later: Flags) -> Flags:
    """Return the entries of the incoming state that a stage reads, when its own cuts depend on `later`."""
    is_read = np.ones(program.dimension, bool)
    first = program.num_decided
    lags = program.autoregression != 0.0
    leaving = later[first : first + lags.size].reshape(lags.shape)
    if len(program.lag_from):
        for lag in np.flatnonzero(program.lag_from >= 0):
            lags[program.lag_from[lag]] |= leaving[lag]
    else:
        lags[:-1] |= leaving[1:]
    is_read[first : first + lags.size] = lags.reshape(-1)
    return is_read


class CutsOfStage(Protocol):
    """The cuts of one stage, the oldest first. Values are scaled costs ($ / cost_scale)."""

    def values_at(self, states: Floats) -> Floats:
        """Return the value of every cut at every state: states x cuts."""

    def values_from(self, states: Floats, first: int) -> Floats:
        """Return the values of the cuts from index `first` on: states x cuts."""

    def __len__(self) -> int:
        """Return the number of cuts."""


# The oldest of the best cuts at each visited state, updated for new cuts and states.
#
# Cuts and states are append-only, and a cut's value at a state never changes. So what is known of old states and old
# cuts stays true: an iteration looks at its own states with all cuts, and at all states with its own cuts.

BLOCK_STATES = 512  # whose values are in memory at once


class LimitedMemoryLevel1State:
    """For each state, the cuts that are higher there than all older ones and within a tolerance of the best.

    The oldest cut within the tolerance of the best is always one of them: an older cut that is at least as high would
    be within the tolerance, too. The best only rises, so a cut that falls out stays out.
    """

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._cuts = 0
        self._best = np.zeros(0)  # by state
        self._state: Indices = np.zeros(0, np.int64)  # of each record, with its cut and value
        self._cut: Indices = np.zeros(0, np.int64)
        self._value = np.zeros(0)

    def update(self, cuts: CutsOfStage, states: Floats) -> None:
        """Update the best cuts by new cuts and states; both begin with those of the last time."""
        num_known = len(self._best)
        self._best = np.concatenate([self._best, np.full(len(states) - num_known, -np.inf)])
        self._look(cuts, states, range(num_known), self._cuts)
        self._look(cuts, states, range(num_known, len(states)), 0)
        self._cuts = len(cuts)
        stays = self._value >= self._best[self._state] - self._tolerance
        self._state, self._cut, self._value = self._state[stays], self._cut[stays], self._value[stays]

    def _look(self, cuts: CutsOfStage, states: Floats, which: range, first: int) -> None:
        """Find records among the cuts from `first` on, at some states."""
        if first == len(cuts):
            return
        for start in range(which.start, which.stop, BLOCK_STATES):
            stop = min(start + BLOCK_STATES, which.stop)
            values = cuts.values_from(states[start:stop], first)
            before = np.concatenate([self._best[start:stop, None], values[:, :-1]], axis=1)
            state, cut = np.nonzero(values > np.maximum.accumulate(before, axis=1))
            self._state = np.concatenate([self._state, state + start])
            self._cut = np.concatenate([self._cut, cut + first])
            self._value = np.concatenate([self._value, values[state, cut]])
            self._best[start:stop] = np.maximum(self._best[start:stop], values.max(axis=1))

    def chosen(self) -> Flags:
        """Return, by cut, whether it is the oldest of the best somewhere."""
        oldest = np.full(len(self._best), self._cuts, np.int64)
        np.minimum.at(oldest, self._state, self._cut)
        is_oldest = np.zeros(self._cuts, bool)
        is_oldest[oldest] = True
        return is_oldest

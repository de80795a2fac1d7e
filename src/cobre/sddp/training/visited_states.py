"""The states that training visited, for cut selection and exports.

States are stored once per node, and only components that are read.

States are stored by the *stage start* at which they were visited: number t is the start of stage t; over a tree,
number 0 is the start of the root and number n + 1 the end of node n. Cuts of stage t are evaluated at the states of
stage start t + 1, of which only the entries matter that these cuts depend on. Memory grows by chunks of whole
iterations, at most a quarter of its size; states are never copied and never change.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from cobre.comm import Communicator, SharedRegion
from cobre.core.arrays import ByteFlags, Floats, Indices
from cobre.core.config import iterations_in_window
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.plugins.interfaces import CutSelection
from cobre.sddp.ranks import WorkSplit, gather_rows

MAX_GATHERED_BYTES = 16 << 20  # in one message, where ranks do not see each other's memory
MAX_CHUNK_BYTES = 256 << 20  # unless one iteration has more
LABEL = "trial states"


class VisitedStates:
    """States of all iterations in order, and in each in the order of forward passes; the same on all ranks.

    has_all_entries: every entry at every stage start, for an export; otherwise what the pool's cuts can depend on.
    window: number of latest iterations whose states selection reads, and which are kept unless all are; None: all.
    """

    def __init__(self, pool: CutPool, *, has_all_entries: bool = False, window: int | None = None) -> None:
        self._pool = pool
        self.has_all_entries = has_all_entries
        self._window = window
        self._entries: list[Indices] = []  # by stage start; known when the first states arrive
        self._regions: list[SharedRegion] = []
        self._chunks: list[list[Floats]] = []  # by stage start: states x entries, to read
        self._writable: list[list[Floats]] = []
        self._rows: list[int] = []  # states in each chunk that are there
        self.iterations: list[int] = []  # states of each iteration that is kept
        self.times_added = 0  # iterations whose states were added, also those that are not kept any more

    def are_read(self, selection: CutSelection | None) -> bool:
        """Return whether an export or a cut selection reads the states, so that iterations must add theirs."""
        return self.has_all_entries or (selection is not None and selection.reads_states)

    def __len__(self) -> int:
        """Return the number of states at each stage start, over all iterations."""
        return sum(self.iterations)

    @property
    def nbytes(self) -> int:
        """Memory of the numbers, on one node."""
        return sum(region.nbytes for region in self._regions)

    @property
    def _recent(self) -> int:
        """The number of states at each stage start in the iterations of the window."""
        return sum(self.iterations[-iterations_in_window(len(self.iterations), self._window) :])

    @property
    def num_stage_starts(self) -> int:
        """The number of stage starts; 0 before the first states arrive."""
        return len(self._entries)

    def entries(self, stage_start: int) -> Indices:
        """Return the entries that are kept of the states of a stage start, ascending."""
        return self._entries[stage_start]

    def add(self, comm: Communicator, split: WorkSplit, own: Floats) -> int:
        """Add an iteration's states. own: this rank's block, stage starts x paths x dimension. Returns bytes of all."""
        self._open(own.shape[0], own.shape[2])
        first, chunk = self._room(split.total), len(self._rows) - 1
        if self._pool.is_shared_by_all_ranks:
            block = split.block(comm.rank)
            for stage_start, entries in enumerate(self._entries):
                self._writable[stage_start][chunk][first + block.start : first + block.stop] = own[stage_start][
                    :, entries
                ]
        else:
            for stage_starts in self._in_messages(split.total):
                columns = [own[stage_start][:, self._entries[stage_start]] for stage_start in stage_starts]
                table = gather_rows(comm, split, np.concatenate(columns, axis=1), LABEL)
                self._write(chunk, first, stage_starts, table)
        self._publish(chunk, split.total)
        self.times_added += 1
        self._forget()
        return 8 * split.total * sum(map(len, self._entries))

    def forget_last(self) -> None:
        """Forget the states of the last iteration.

        States that left the window are not needed again: the window of the iteration that takes its place is the same.
        """
        self._rows[-1] -= self.iterations.pop()

    def restore(self, stored: "StoredStates", iterations: int) -> None:
        """Put back the states of a run that is resumed: the same on all ranks, equally many in each iteration."""
        num_stage_starts, dimension = stored.kept.shape
        self._open(num_stage_starts, dimension)
        first, chunk = self._room(stored.count), len(self._rows) - 1
        for stage_start, entries in enumerate(self._entries):
            states = stored.states(stage_start)
            if states is not None and self._pool.is_leader:
                self._writable[stage_start][chunk][first : first + stored.count] = states[:, entries]
        self._publish(chunk, stored.count)
        self.iterations = [stored.count // iterations] * iterations

    def states(self, stage_start: int, entries: Indices) -> Floats:
        """Return all kept states of a stage start, restricted to some of the kept entries; empty if none is kept."""
        if not self._entries:
            return np.zeros((0, len(entries)))
        parts = self.views(stage_start)
        if len(entries) < len(self._entries[stage_start]):
            columns = np.searchsorted(self._entries[stage_start], entries)
            parts = [part[:, columns] for part in parts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def recent_states(self, stage_start: int, entries: Indices) -> Floats:
        """Return the `states` of the iterations of the window."""
        states = self.states(stage_start, entries)
        return states[len(states) - self._recent :]

    def views(self, stage_start: int) -> list[Floats]:
        """Return all kept states of a stage start without a copy, chunk by chunk."""
        return [chunk[:rows] for chunk, rows in zip(self._chunks[stage_start], self._rows, strict=True)]

    def tables(self) -> Iterator[Floats]:
        """Yield the states of each iteration: paths x (stage starts x entries)."""
        for start, stop in pairwise(np.cumsum([0, *self.iterations]).tolist()):
            columns = [
                self.states(stage_start, entries)[start:stop] for stage_start, entries in enumerate(self._entries)
            ]
            yield np.concatenate(columns, axis=1)

    def close(self) -> None:
        """Release the shared memory."""
        self._chunks, self._writable, self._entries, self._rows = [], [], [], []
        for region in self._regions:
            region.close()
        self._regions = []

    def _open(self, num_stage_starts: int, dimension: int) -> None:
        """Choose the entries to keep. Not earlier: cuts of a stored policy may depend on more than the study's own."""
        if self._entries:
            return
        everything, nothing = np.arange(dimension), np.zeros(0, np.int64)
        for stage_start in range(num_stage_starts):
            read = self._pool.components(stage_start - 1) if stage_start else nothing
            self._entries.append(everything if self.has_all_entries else read)
            self._chunks.append([])
            self._writable.append([])

    def _room(self, states: int) -> int:
        """Return the first row of an iteration's states in the last chunk, which can hold all of them."""
        if not self._rows or self._rows[-1] + states > len(self._chunks[0][-1]):
            self._grow(states)
        return self._rows[-1]

    def _grow(self, states: int) -> None:
        widths = [len(entries) for entries in self._entries]
        rows = states * _chunk_iterations(len(self.iterations), 8 * states * sum(widths))
        region = self._pool.memory.create_shared_region(max(1, rows * sum(widths)), np.float64, label=LABEL)
        readable, writable, start = region.as_array(), region.as_mut_array(0, region.count), 0
        for stage_start, width in enumerate(widths):
            end = start + rows * width
            self._chunks[stage_start].append(readable[start:end].reshape(rows, width))
            self._writable[stage_start].append(writable[start:end].reshape(rows, width))
            start = end
        self._regions.append(region)
        self._rows.append(0)

    def _publish(self, chunk: int, states: int) -> None:
        """Wait until all ranks of the node have written theirs."""
        if self._pool.memory.size > 1:
            self._regions[chunk].fence(label=LABEL)
        self._rows[chunk] += states
        self.iterations.append(states)

    def _forget(self) -> None:
        """Release the oldest chunks that are outside the window; their memory is freed with the last view."""
        if self._window is None or self.has_all_entries:
            return
        while sum(self._rows[1:]) >= self._recent:
            rows = self._rows.pop(0)
            while rows > 0:
                rows -= self.iterations.pop(0)
            for chunks in (*self._chunks, *self._writable):
                chunks.pop(0)
            self._regions.pop(0).close()

    def _in_messages(self, states: int) -> Iterator[range]:
        """Yield ranges of stage starts whose states fit into one message."""
        first, size = 0, 0
        for stage_start, entries in enumerate(self._entries):
            more = 8 * states * len(entries)
            if size and size + more > MAX_GATHERED_BYTES:
                yield range(first, stage_start)
                first, size = stage_start, 0
            size += more
        if size:
            yield range(first, self.num_stage_starts)

    def _write(self, chunk: int, first: int, stage_starts: range, table: Floats) -> None:
        """Write all ranks' states; ranks of a node see what its leader writes."""
        if not self._pool.is_leader:
            return
        at = 0
        for stage_start in stage_starts:
            width = len(self._entries[stage_start])
            self._writable[stage_start][chunk][first : first + len(table)] = table[:, at : at + width]
            at += width


def _chunk_iterations(kept: int, iteration_bytes: int) -> int:
    """Return the number of iterations that the next chunk can hold, when `kept` are stored."""
    max_iterations = max(1, MAX_CHUNK_BYTES // max(1, iteration_bytes))
    return min(max_iterations, 1 + kept // 4)


def iterations_in_memory(iterations: int, iteration_bytes: int, window: int | None = None) -> int:
    """Return the number of iterations that the memory allocated after `iterations` can hold; it grows by chunks."""
    rooms, filled = [0], [0]
    for _ in range(iterations):
        if filled[-1] == rooms[-1]:
            rooms.append(_chunk_iterations(sum(filled), iteration_bytes))
            filled.append(0)
        filled[-1] += 1
        while window is not None and sum(filled[1:]) >= iterations_in_window(sum(filled), window):
            del rooms[0], filled[0]
    return sum(rooms)


@dataclass(frozen=True, slots=True)
class StoredStates:
    """States as a file holds them, stage start by stage start. kept: stage starts x entries, 1 for what is there.

    numbers: how many there are in all. read: some of them from an index on; None on ranks that need not write them. All
    ranks must read alike.
    """

    kept: ByteFlags
    numbers: int
    read: Callable[[int, int], Floats | None]

    @property
    def count(self) -> int:
        """The number of states at each stage start."""
        return self.numbers // int(self.kept.sum())

    def states(self, stage_start: int) -> Floats | None:
        """Return states of a stage start with all entries, 0 if not kept; None on ranks that need not write them."""
        before, width = int(self.kept[:stage_start].sum()), int(self.kept[stage_start].sum())
        numbers = self.read(self.count * before, self.count * width)
        if numbers is None:
            return None
        table = np.zeros((self.count, self.kept.shape[1]))
        table[:, self.kept[stage_start] == 1] = numbers.reshape(self.count, width)
        return table


def entry_flags(visited: VisitedStates, dimension: int) -> ByteFlags:
    """Return stage starts x entries of the state: 1 for what is kept."""
    flags = np.zeros((visited.num_stage_starts, dimension), np.uint8)
    for stage_start in range(visited.num_stage_starts):
        flags[stage_start, visited.entries(stage_start)] = 1
    return flags

"""The coordinator's window for large reductions: memory that is bounded, whatever the size of the payload."""

from collections.abc import Sequence

import numpy as np

from cobre._native import fold
from cobre.comm.backends.tcp.transport.streams import DataReader
from cobre.comm.buffers import view_of
from cobre.comm.types import Array, ReduceOp

CHUNK_BYTES = 1 << 18  # stays in the cache between receiving and folding
SLOTS = 4  # chunks that a worker may be ahead of the slowest one


class ReductionWindow:
    """A ring of SLOTS chunks for every worker's operand; a chunk is folded once all workers' have arrived."""

    def __init__(self, size: int) -> None:
        self._workers = range(1, size)
        self._memory: dict[int, Sequence[Array]] = {}

    def start(self, send: Array, recv: Array, op: ReduceOp) -> None:
        """Prepare for one reduction of `send` and the workers' operands into `recv`."""
        if not self._memory:  # allocated by the first large reduction, then kept
            self._memory = {rank: [np.empty(CHUNK_BYTES, np.uint8) for _ in range(SLOTS)] for rank in self._workers}
        self._send, self._recv, self._op = send, recv, op
        self._elements = CHUNK_BYTES // send.itemsize
        self._chunk_bytes = self._elements * send.itemsize
        self._received = dict.fromkeys(self._workers, 0)
        self._folded = 0
        self.folded_bytes = 0
        # Memoryviews are made once per reduction, not per read: a chunk arrives in many pieces.
        self._views = {rank: [view_of(slot) for slot in slots] for rank, slots in self._memory.items()}

    def has_room(self, rank: int) -> bool:
        """Whether there is a free slot for more of this rank's operand."""
        return self._received[rank] // self._chunk_bytes < self._folded + SLOTS

    def read(self, rank: int, reader: DataReader) -> int:
        """Receive some of a rank's operand; the number of bytes, 0 if none have arrived or there is no room."""
        if not self.has_room(rank):
            return 0
        chunk, at = divmod(self._received[rank], self._chunk_bytes)
        received = reader.read(self._views[rank][chunk % SLOTS][at : self._chunk_bytes])
        self._received[rank] += received
        return received

    def fold_complete(self) -> int:
        """Fold every chunk that has arrived from all workers; the number of new bytes in the result."""
        before, total = self.folded_bytes, self._send.nbytes
        while self.folded_bytes < total:
            end = min(self.folded_bytes + self._chunk_bytes, total)
            if min(self._received.values()) < end:
                break
            self._fold_chunk(self._folded, (end - self.folded_bytes) // self._send.itemsize)
            self._folded += 1
            self.folded_bytes = end
        return self.folded_bytes - before

    def _fold_chunk(self, chunk: int, elements: int) -> None:
        start = chunk * self._elements
        span = slice(start, start + elements)
        dtype, slot = self._send.dtype, chunk % SLOTS
        # Rank 0's own operand first, then the workers' in rank order: the left fold of clause 8.
        operands = [np.frombuffer(self._memory[rank][slot], dtype, elements) for rank in self._workers]
        fold([self._send[span], *operands], self._recv[span], self._op)

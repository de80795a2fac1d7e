"""Limit of the memory: all ranks at once copy the bytes that each must at least write."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from collectives.adapters.base import Adapter, Array, Call
from collectives.cases import Kind


class MemcpyAdapter(Adapter):
    """Copies in place of collectives; another adapter only keeps the ranks in step."""

    kinds = frozenset(Kind)
    communicates = False

    def __init__(self, partner: Adapter) -> None:
        super().__init__(partner.rank, partner.size)
        self._partner = partner

    def synchronise(self) -> None:
        """Call the partner's barrier."""
        self._partner.synchronise()

    def bind_barrier(self) -> Call:
        """Bind an empty call: a barrier moves no bytes."""
        return lambda: None

    def bind_allreduce(self, send: Array, recv: Array) -> Call:
        """Copy the result once."""
        return partial(np.copyto, recv, send)

    def bind_allgatherv(self, send: Array, recv: Array, counts: tuple[int, ...]) -> Call:
        """Copy the whole result once, from another array of the same size."""
        return partial(np.copyto, recv, np.zeros(recv.size) + send.size / sum(counts))

    def bind_broadcast(self, buffer: Array) -> Call:
        """Copy the whole buffer once."""
        return partial(np.copyto, buffer, buffer.copy())

    @contextmanager
    def bind_allgatherv_into_region(self, send: Array, counts: tuple[int, ...]) -> Iterator[tuple[Call, Array]]:
        """Copy this rank's part once."""
        region = np.zeros(sum(counts))
        begin = sum(counts[: self.rank])
        yield partial(np.copyto, region[begin : begin + send.size], send), region

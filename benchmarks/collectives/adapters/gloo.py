"""torch.distributed on gloo, with CPU tensors on the memory of the NumPy arrays."""

import time
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
import torch.distributed as dist

from collectives.adapters.base import Adapter, Array, Call

TRIALS = 3


class GlooAdapter(Adapter):
    """The default process group. Of several variants of a call the fastest for the case is used.

    ring_only: gathers by gloo's ring alone, and not by messages between all pairs.
    """

    def __init__(self, rank: int, size: int, *, ring_only: bool = False) -> None:
        super().__init__(rank, size)
        self._ring_only = ring_only

    def synchronise(self) -> None:
        """Call gloo's barrier."""
        dist.barrier()

    def bind_barrier(self) -> Call:
        """Bind `barrier`."""
        barrier: Call = dist.barrier
        return barrier

    def bind_allreduce(self, send: Array, recv: Array) -> Call:
        """Bind `all_reduce`, which works in place and adds in another order."""
        result = torch.from_numpy(recv)

        def call() -> None:
            np.copyto(recv, send)
            dist.all_reduce(result)

        return call

    def bind_allgatherv(self, send: Array, recv: Array, counts: tuple[int, ...]) -> Call:
        """Bind the fastest known way to gather unequal parts, which gloo does not support directly."""
        ways = (gather_padded,) if self._ring_only else (gather_padded, gather_by_broadcasts, gather_by_messages)
        return self._fastest([way(self.rank, send, recv, counts) for way in ways])

    def bind_broadcast(self, buffer: Array) -> Call:
        """Bind `broadcast`."""
        return partial(dist.broadcast, torch.from_numpy(buffer), 0)

    def _fastest(self, calls: Sequence[Call]) -> Call:
        """Time all variants and choose the fastest. Collective: call on every rank."""
        seconds = torch.tensor([min(self._time(call) for _ in range(TRIALS)) for call in calls])
        dist.all_reduce(seconds, dist.ReduceOp.MAX)
        return calls[int(seconds.argmin())]

    def _time(self, call: Call) -> float:
        self.synchronise()
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin


def gather_padded(rank: int, send: Array, recv: Array, counts: tuple[int, ...]) -> Call:
    """Bind `all_gather_into_tensor` of parts padded to the longest one, and a copy of the result."""
    longest = max(counts)
    padded, everything = np.zeros(longest), np.zeros((len(counts), longest))
    source, target = torch.from_numpy(padded), torch.from_numpy(everything.reshape(-1))
    parts = split(recv, counts)

    def call() -> None:
        padded[: counts[rank]] = send
        dist.all_gather_into_tensor(target, source)
        for part, row in zip(parts, everything, strict=True):
            part[:] = row[: part.size]

    return call


def gather_by_broadcasts(rank: int, send: Array, recv: Array, counts: tuple[int, ...]) -> Call:
    """Bind concurrent broadcasts, one from every rank."""
    parts = split(recv, counts)
    tensors = [torch.from_numpy(part) for part in parts]

    def call() -> None:
        parts[rank][:] = send
        finish([dist.broadcast(tensor, root, async_op=True) for root, tensor in enumerate(tensors)])

    return call


def gather_by_messages(rank: int, send: Array, recv: Array, counts: tuple[int, ...]) -> Call:
    """Bind concurrent `isend` and `irecv` between all pairs."""
    parts, source = split(recv, counts), torch.from_numpy(send)
    others = [(peer, torch.from_numpy(part)) for peer, part in enumerate(parts) if peer != rank]

    def call() -> None:
        works = [dist.irecv(tensor, peer) for peer, tensor in others]
        works += [dist.isend(source, peer) for peer, _ in others]
        parts[rank][:] = send
        finish(works)

    return call


def finish(works: Sequence["dist.Work | None"]) -> None:
    """Wait for all operations."""
    for work in works:
        if work is not None:
            work.wait()


def split(whole: Array, counts: tuple[int, ...]) -> list[Array]:
    """Return views of every rank's part of the result."""
    return np.split(whole, np.cumsum(counts)[:-1])

"""The tcp backend: hooks, errors and objects around the world that the ranks made."""

import os
import weakref
from collections.abc import Sequence
from functools import cache, partial

from cobre._native import CallGuard
from cobre.comm.backends.base import Backend
from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.backends.tcp.calls import NO_DTYPE, call_head, describe_dtype, hash_counts
from cobre.comm.backends.tcp.channel import LinkLostError
from cobre.comm.backends.tcp.failures import WorldFailedError, error_of
from cobre.comm.backends.tcp.fields import ProtocolError
from cobre.comm.backends.tcp.handshake import this_process
from cobre.comm.backends.tcp.meeting import meet
from cobre.comm.backends.tcp.world import NOTHING, SMALL_BYTES, OwnCopy, World, as_bytes
from cobre.comm.config import TcpConfig
from cobre.comm.errors import AllocationFailedError, CollectiveFailedError
from cobre.comm.heap_region import HeapRegion
from cobre.comm.types import Array, Dtype, Operation, ReduceOp
from cobre.comm.validation import packed

_ALLGATHERV, _ALLREDUCE = int(Operation.ALLGATHERV), int(Operation.ALLREDUCE)
_BROADCAST, _BARRIER = int(Operation.BROADCAST), int(Operation.BARRIER)
_worlds: "weakref.WeakSet[World]" = weakref.WeakSet()


class TcpCommunicator(Backend):
    """A rank of a world that is connected by TCP. Every rank has its own memory and is its own leader."""

    backend = "tcp"

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(config.rank, config.size)
        self._config = config
        self._no_sizes = (0,) * config.size
        self._world = meet(config, self._waiting)
        self._world.progress.label = partial(_last_label, self._guard)
        _let_go_in_children(self._world)

    @property
    def is_leader(self) -> bool:
        """Always: no memory is shared."""
        return True

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int] | None) -> None:
        elements = tuple(counts)
        total, itemsize = sum(elements), recv.itemsize
        is_small = total * itemsize <= SMALL_BYTES
        sequence = self._begin_call(_ALLGATHERV)
        head = call_head(
            sequence,
            _ALLGATHERV,
            inline_bytes=elements[self._rank] * itemsize if is_small else 0,
            count=elements[self._rank],
            total=total,
            counts_hash=hash_counts(elements),
            dtype=describe_dtype(recv.dtype),
        )
        whole, own = as_bytes(recv), as_bytes(send)
        starts = packed(elements) if displs is None else displs
        places = [
            whole[start * itemsize : (start + count) * itemsize] for start, count in zip(starts, elements, strict=True)
        ]
        if is_small:
            parts = self._world.gather(sequence, head, own, [len(place) for place in places])
            for place, part in zip(places, parts, strict=True):
                place[:] = part
        else:
            in_place = _is_in_place(send, recv, starts[self._rank])
            copy = OwnCopy() if in_place else OwnCopy(own, places[self._rank])
            self._world.gather_stream(sequence, head, own, places, copy)
        self._world.end(sequence)

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        is_small = send.nbytes <= SMALL_BYTES
        sequence = self._begin_call(_ALLREDUCE)
        head = call_head(
            sequence,
            _ALLREDUCE,
            inline_bytes=send.nbytes if is_small else 0,
            count=send.size,
            total=send.size,
            dtype=describe_dtype(send.dtype),
            reduction=op,
        )
        if is_small:
            self._world.reduce(sequence, head, send, recv, op)
        else:
            self._world.reduce_stream(sequence, head, send, recv, op)
        self._world.end(sequence)

    def _broadcast(self, buffer: Array, root: int) -> None:
        is_small = buffer.nbytes <= SMALL_BYTES
        sequence = self._begin_call(_BROADCAST)
        head = call_head(
            sequence,
            _BROADCAST,
            inline_bytes=buffer.nbytes if is_small and self._rank == root else 0,
            count=buffer.size,
            total=buffer.size,
            dtype=describe_dtype(buffer.dtype),
            root=root,
        )
        spread = self._world.spread if is_small else self._world.spread_stream
        spread(sequence, head, as_bytes(buffer), root)
        self._world.end(sequence)

    def _barrier(self) -> None:
        sequence = self._begin_call(_BARRIER)
        self._world.gather(sequence, call_head(sequence, _BARRIER), NOTHING, self._no_sizes)
        self._world.end(sequence)

    def _create_shared_region(self, count: int, dtype: Dtype) -> HeapRegion:
        """Allocate, then hear whether all others could: the outcome must be the same everywhere."""
        region, failure = None, None
        try:
            region = HeapRegion(self, count, dtype)
        except AllocationFailedError as error:
            failure = error
        flags = self._agree(Operation.CREATE_SHARED_REGION, bytes([failure is not None]), count, dtype)
        if failure is not None:
            raise failure
        without = [rank for rank, flag in enumerate(flags) if flag[0]]
        if without or region is None:
            nbytes = count * dtype.itemsize
            raise AllocationFailedError(nbytes, f"no memory for a region of {nbytes} bytes on ranks {without}")
        return region

    def _split_local(self) -> LocalCommunicator:
        """Nobody shares memory with this rank; the others must agree to the call all the same."""
        self._agree(Operation.SPLIT_LOCAL, b"", 0, None)
        return LocalCommunicator()

    def _agree(self, operation: Operation, own: bytes, count: int, dtype: Dtype | None) -> list[memoryview]:
        sequence = self._begin_call(operation)
        described = NO_DTYPE if dtype is None else describe_dtype(dtype)
        head = call_head(sequence, operation, inline_bytes=len(own), count=count, total=count, dtype=described)
        answers = self._world.gather(sequence, head, memoryview(own), (len(own),) * self._size)
        self._world.end(sequence)
        return answers

    def _begin_call(self, operation: int) -> int:
        sequence = self._guard.sequence
        self._world.begin(sequence, operation)
        return sequence

    def _close(self) -> None:
        self._world.close()

    def _abort(self, reason: str) -> None:
        self._world.abort(reason, this_process(self._rank))

    def _translate(self, error: BaseException, operation: Operation) -> BaseException:
        try:
            if isinstance(error, LinkLostError):
                return error_of(self._world.explain(error), operation, self.sequence)
        except WorldFailedError as failure:  # the verdict came while we were asking
            error = failure
        if isinstance(error, WorldFailedError):
            return error_of(error.verdict, operation, self.sequence)
        if isinstance(error, ProtocolError):
            return CollectiveFailedError(operation.title, 0, str(error), self.sequence)
        return super()._translate(error, operation)

    def __repr__(self) -> str:
        return (
            f"{super().__repr__()[:-1]}, {self._config.coordinator or f'port {self._config.port}'}, pid {os.getpid()}>"
        )


def _is_in_place(send: Array, recv: Array, start: int) -> bool:
    place = recv.__array_interface__["data"][0] + start * recv.itemsize
    return bool(send.__array_interface__["data"][0] == place)


def _last_label(guard: CallGuard) -> str:
    """The label of the last call; looked up for heartbeats only, so that calls need not hand it on."""
    calls = guard.recent()
    return calls[-1][3] if calls else ""


def _let_go_in_children(world: World) -> None:
    """A forked child holds copies of our connections: as long as it does, nobody would notice our death."""
    _watch_forks()
    _worlds.add(world)


@cache
def _watch_forks() -> None:
    os.register_at_fork(after_in_child=_drop_worlds)


def _drop_worlds() -> None:
    for world in list(_worlds):
        world.drop()
    _worlds.clear()

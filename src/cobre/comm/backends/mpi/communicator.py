"""The MPI backend: the contract's collectives as MPI calls on a communicator of our own.

On MPI a failure cannot be told to the other ranks: it can only end the job. `abort`, leaving the `with` block by an
exception and an unhandled exception do so at once. A failure inside a collective is raised to the caller first, with
its `mpi_error_code`; the job ends when the communicator is closed or the process ends. An error with an exit report is
given a moment: where all ranks have one, or call `check_failures`, they leave in order and one of them prints it.
"""

import weakref
from collections.abc import Callable, Sequence

import numpy as np

from cobre._native import fold
from cobre.comm.backends.mpi.call_check import (
    Call,
    CallCheck,
    allgatherv_call,
    allreduce_call,
    broadcast_call,
    fence_call,
    region_call,
)
from cobre.comm.backends.mpi.chunks import broadcast_in_chunks, gather_in_chunks, raw
from cobre.comm.backends.mpi.datatypes import Datatypes
from cobre.comm.backends.mpi.deferred_release import DeferredRelease
from cobre.comm.backends.mpi.error_exchange import agreed_exit
from cobre.comm.backends.mpi.job import Job, is_orderly_exit
from cobre.comm.backends.mpi.library import Mpi, MpiComm, load_mpi
from cobre.comm.backends.mpi.ordered_reduce import OrderedReduction
from cobre.comm.backends.mpi.region import MpiSharedRegion, WindowOwner
from cobre.comm.backends.mpi.windows import Window, Windows
from cobre.comm.config import MpiConfig
from cobre.comm.errors import AbortedError, CollectiveFailedError, MismatchedCallError
from cobre.comm.exit_report import attach_exit_report, exit_report_of
from cobre.comm.types import Array, Dtype, Operation, ReduceOp
from cobre.comm.validation import packed as packed_places

EXCHANGE_S = 2.0  # how long a rank that gives up waits for the others to give up or call `check_failures`


class MpiCommunicator(WindowOwner):
    """A rank of an MPI world, or of one node of it. The lowest rank of each node is its leader."""

    backend = "mpi"

    def __init__(self, config: MpiConfig | None = None, node: MpiComm | None = None) -> None:
        """Join the world that the launcher started; `node`: the part of it that this communicator is for."""
        self._config = config or MpiConfig()
        self._mpi = mpi = load_mpi()
        self._job = Job.current(mpi)
        self._is_world = node is None
        self._comm, self._node = (node, node) if node is not None else self._own_world(mpi)
        super().__init__(self._comm.Get_rank(), self._comm.Get_size())
        for comm in (self._comm, self._node):
            comm.Set_errhandler(mpi.ERRORS_RETURN)
        self._prepare(mpi)
        self._job.watch_over(self, is_world=node is None)
        if node is None:
            self._job.closed_worlds.hold(*_release_of(self))

    @property
    def is_leader(self) -> bool:
        """The lowest rank of its node."""
        return self._is_leader

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None and self._all_leave(error):
            self.close()
        else:
            super().__exit__(kind, None if is_orderly_exit(error) else error, trace)

    def check_failures(self) -> None:
        """Wait until all ranks have come here, and leave with those that gave up before."""
        self._require_open()
        ends = self._job.error_exchange.exchange(None) if self._has_others() else None
        if ends is not None and (agreed := agreed_exit(self._rank, ends)) is not None:
            error = AbortedError("check_failures", 0, agreed.message or "another rank gave up", self.sequence)
            attach_exit_report(error, agreed)
            raise error

    def _all_leave(self, error: BaseException) -> bool:
        """Whether all ranks leave together, so that nobody needs to end the others."""
        end = exit_report_of(error)
        if end is None or end.is_agreed or self.state != "open" or not self._has_others():
            return end is not None and end.is_agreed
        try:
            ends = self._job.error_exchange.exchange(end, EXCHANGE_S)
        except KeyboardInterrupt:  # somebody is impatient
            return False
        if ends is None or (agreed := agreed_exit(self._rank, ends)) is None:
            return False
        attach_exit_report(error, agreed)
        return True

    def _has_others(self) -> bool:
        return self._is_world and self._size > 1

    def _own_world(self, mpi: Mpi) -> tuple[MpiComm, MpiComm]:
        """Communicators of our own, so that our messages never meet the program's."""
        # All ranks are here to make a communicator, so this is where earlier ones, closed by all, can be freed.
        self._job.closed_worlds.agree_and_release(mpi, mpi.COMM_WORLD)
        world = mpi.COMM_WORLD.Dup()
        return world, world.Split_type(mpi.COMM_TYPE_SHARED, world.Get_rank())

    def _prepare(self, mpi: Mpi) -> None:
        self._limit = self._config.max_message_bytes
        self._byte, self._in_place = mpi.BYTE, mpi.IN_PLACE
        self._datatypes = Datatypes(mpi)
        self._reduction = OrderedReduction(mpi, self._comm, self._datatypes, self._limit)
        self._is_leader = bool(self._node.Get_rank() == 0)
        self._is_one_node = bool(self._node.Get_size() == self._size)
        self._windows = Windows(mpi, self._comm, self._node)
        self._region_bytes = 0  # no region in which a gather could land is larger; the same on all ranks
        self._nodes = DeferredRelease()
        self._call_check = CallCheck(mpi, self._comm, self._guard) if self._config.checked else None

    # The collectives.

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        if self._call_check is not None:
            self._call_check.compare(allgatherv_call(recv.dtype, counts, self._rank))
        if not (self._region_bytes and self._gather_beside_regions(send, recv, counts, displs)):
            self._gather(send, recv, counts, displs)

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        if self._call_check is not None:
            self._call_check.compare(allreduce_call(send.dtype, send.size, op))
        if self._size == 1:
            fold([send.reshape(-1)], recv.reshape(-1), op)
        else:
            self._reduction.reduce(send, recv, op)

    def _broadcast(self, buffer: Array, root: int) -> None:
        if self._call_check is not None:
            self._call_check.compare(broadcast_call(buffer.dtype, buffer.size, root))
        nbytes = buffer.nbytes
        if nbytes <= self._limit:
            self._comm.Bcast((buffer, nbytes, self._byte), root)
        else:
            broadcast_in_chunks(self._mpi, self._comm, raw(buffer), root, self._limit)

    def _barrier(self) -> None:
        if self._call_check is not None:
            self._call_check.compare(Call(Operation.BARRIER, None))
        self._comm.Barrier()

    # Which MPI call is made must follow from what all ranks know alike (counts, dtype, limit), never from one rank's
    # own buffers: ranks in different collectives wait for each other for ever.

    # Gathering. A send buffer that shares memory with the receive buffer has been checked to be its place there.

    def _gather(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        # Only what all ranks know may decide how: receive buffers and displacements may differ.
        if sum(counts) * recv.itemsize > self._limit:
            self._gather_large(send, recv, counts, displs)
        elif recv.nbytes > self._limit:
            self._gather_far(send, recv, counts, displs)
        else:
            unit = self._datatypes[recv.itemsize]
            source = self._in_place if np.may_share_memory(send, recv) else (send, send.size, unit)
            self._comm.Allgatherv(source, (recv, counts, displs, unit))

    def _gather_large(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        place(send, recv, displs[self._rank])
        unit = recv.itemsize
        places = [(start * unit, (start + count) * unit) for count, start in zip(counts, displs, strict=True)]
        gather_in_chunks(self._mpi, self._comm, raw(recv), places, self._limit)

    def _gather_far(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        """A small gather into places that a 32-bit displacement may not reach."""
        packed = np.empty(sum(counts), recv.dtype)
        starts = packed_places(counts)
        self._gather(send, packed, counts, starts)
        for count, source, target in zip(counts, starts, displs, strict=True):
            place(packed[source : source + count], recv, target)

    def _gather_beside_regions(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> bool:
        """Gather when ranks may receive in one memory; says whether it did, the same on all ranks.

        If all ranks receive in the same place of a region, each writes its part once. If only some do, they must not
        return, and perhaps write anew, while others still write what they received.
        """
        if sum(counts) * recv.itemsize > self._region_bytes:
            return False
        own = (*self._windows.locate(recv), hash(tuple(displs)), self._windows.largest_bytes())
        landings = self._exchange_landings(own)
        # The largest region that every rank still has: ranks learn of closed ones here, where all talk anyway.
        self._region_bytes = int(landings[:, 3].min())
        number = int(landings[0, 0])
        if number and self._is_one_node and (landings[:, :3] == landings[0, :3]).all():
            # The same memory on all ranks: each writes its part, and a fence makes it everybody's.
            place(send, recv, displs[self._rank])
            self._synchronise(number, self._comm)
            return True
        if landings[:, 0].any():
            self._gather(send, recv, counts, displs)
            self._comm.Barrier()  # some ranks received in one memory: nobody goes on while another still writes there
            return True
        return False

    def _exchange_landings(self, own: tuple[int, ...]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        everybody = np.empty((self._size, len(own)), np.int64)
        self._comm.Allgather(np.array(own, np.int64), everybody)
        return everybody

    # Regions and nodes.

    def _create_shared_region(self, count: int, dtype: Dtype) -> MpiSharedRegion:
        if self._call_check is not None:
            self._call_check.compare(region_call(dtype, count))
        window = self._windows.create(count * dtype.itemsize)
        self._region_bytes = max(self._region_bytes, window.nbytes)
        return MpiSharedRegion(self, window, count, dtype)

    def _fence_window(self, window: Window) -> None:
        if self._call_check is not None:
            self._call_check.compare(fence_call(window.number))
        self._synchronise(window.number, self._node)

    def _synchronise(self, number: int, comm: MpiComm) -> None:
        # Publish, wait, read afresh: MPI's barrier alone does not order plain loads and stores of a window.
        self._windows.synchronise(number)
        comm.Barrier()
        self._windows.synchronise(number)

    def _split_local(self) -> "MpiCommunicator":
        if self._call_check is not None:
            self._call_check.compare(Call(Operation.SPLIT_LOCAL, None))
        # Freeing and duplicating are collective: all ranks are here, so earlier ones that all have closed go first.
        self._nodes.agree_and_release(self._mpi, self._comm)
        node = MpiCommunicator(self._config, self._node.Dup())
        self._nodes.hold(*_release_of(node))
        return node

    # The end.

    def _close(self) -> None:
        """Freeing would wait for the others, so MPI keeps what we had until all ranks have given it up."""
        if self._left_others_waiting():
            self._job.end(f"{self!r} is closed after a failure: {self._first_failure}")

    def _abort(self, reason: str) -> None:
        if isinstance(self._first_failure, CollectiveFailedError) and self._first_failure.operation == "abort":
            if self._size > 1:
                self._job.end(reason)
        elif self._left_others_waiting():
            self._job.end_at_exit(reason)

    def _left_others_waiting(self) -> bool:
        # A mismatch was found by all ranks together.
        return self._size > 1 and not isinstance(self._first_failure, MismatchedCallError | None)

    def _translate(self, error: BaseException, operation: Operation) -> BaseException:
        if isinstance(error, self._mpi.Exception):
            return CollectiveFailedError(
                operation.title, error.Get_error_code(), error.Get_error_string(), self.sequence
            )
        return super()._translate(error, operation)


def place(data: Array, recv: Array, start: int) -> None:
    """Copy elements to where they belong, unless they are there."""
    if data.size == 0 or np.may_share_memory(data, recv):
        return
    if recv.dtype.kind == "V":  # NumPy would copy field by field and leave the padding
        unit = recv.itemsize
        raw(recv)[start * unit : start * unit + data.nbytes] = raw(data)
    else:
        recv.reshape(-1)[start : start + data.size] = data.reshape(-1)


def _release_of(communicator: MpiCommunicator) -> tuple[Callable[[], bool], Callable[[], None]]:
    """When a communicator is given up, and how its MPI communicators are freed, without keeping it alive."""
    owner = weakref.ref(communicator)
    comms = {id(comm): comm for comm in (communicator._comm, communicator._node)}.values()

    def is_given_up() -> bool:
        alive = owner()
        return alive is None or alive.state == "closed"

    def release() -> None:
        for comm in comms:
            comm.Free()

    return is_given_up, release

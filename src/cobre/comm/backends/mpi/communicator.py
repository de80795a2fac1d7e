"""The MPI backend: the contract's collectives as MPI calls on duplicated communicators.

With MPI, a rank cannot inform the others of a failure; it can only end the job. `abort`, leaving the `with` block by an
exception, and an unhandled exception do so at once. A failure inside a collective is raised to the caller first, with
its `mpi_error_code`; the job ends when the communicator is closed or the process ends. An error with an exit report
waits for a moment: if all ranks have one, or call `check_failures`, they leave in order and one of them prints it.
"""

import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest

import numpy as np

from cobre._native import fold
from cobre.comm.backends.mpi.call_checks import (
    CallCheck,
    CheckedCall,
    agreed_exit,
    allgatherv_call,
    allreduce_call,
    broadcast_call,
    fence_call,
    reasons,
    region_call,
)
from cobre.comm.backends.mpi.job import CommGroup, Job
from cobre.comm.backends.mpi.library import Mpi, MpiComm, load_mpi
from cobre.comm.backends.mpi.windows import DeferredRelease, MpiSharedRegion, Window, WindowRegionBackend, Windows
from cobre.comm.config import MpiConfig
from cobre.comm.errors import AbortedError, CollectiveFailedError, InitializationFailedError, MismatchedCallError
from cobre.comm.exit_report import attach_exit_report, exit_report_of
from cobre.comm.types import Array, Dtype, Operation, ReduceOp
from cobre.comm.validation import as_octets, copy_into, packed_displacements

# MPI datatypes by the size of an element, so that counts and displacements can be passed to MPI as they are.


class Datatypes(dict[int, object]):
    """`datatypes[itemsize]`: an MPI datatype of this many bytes, created on first use and never freed."""

    def __init__(self, mpi: Mpi) -> None:
        # MPI copies predefined types with memcpy; a derived type may take its slow path for packing.
        super().__init__({1: mpi.BYTE, 2: mpi.INT16_T, 4: mpi.INT32_T, 8: mpi.INT64_T, 16: mpi.C_DOUBLE_COMPLEX})
        self._byte = mpi.BYTE

    def __missing__(self, itemsize: int) -> object:
        datatype = self._byte.Create_contiguous(itemsize).Commit()
        self[itemsize] = datatype
        return datatype


# `allreduce` as the left fold in rank order: MPI moves the data, `cobre._native.fold` combines it.
#
# MPI's own reductions may combine in any order, and do: the last digits depend on the number of ranks and on the
# library.

SMALL_BYTES = 1 << 16  # of all ranks together; below, one exchange is cheaper than two
CHUNK_BYTES = 1 << 22  # fits into the caches, and bounds the memory for a reduction of any size
MAX_CACHED_SHAPES = 256


class OrderedReduction:
    """Reductions over one communicator, with scratch memory that is reused."""

    def __init__(self, mpi: Mpi, comm: MpiComm, datatypes: Datatypes, max_message_bytes: int) -> None:
        self._mpi = mpi
        self._comm = comm
        self._datatypes = datatypes
        self._rank, self._size = comm.Get_rank(), comm.Get_size()
        self._byte = mpi.BYTE
        self._small_bytes = min(SMALL_BYTES, max_message_bytes) // self._size
        self._chunk_bytes = min(CHUNK_BYTES, max_message_bytes)
        self._scratch = np.empty(self._small_bytes * self._size, np.uint8)
        self._shapes: dict[tuple[str, int], tuple[tuple[object, ...], list[Array]]] = {}

    def reduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        """Fold all ranks' `send` in rank order into every rank's `recv`, which may be `send`. A collective."""
        nbytes = send.nbytes
        if nbytes > self._small_bytes:
            self._reduce_large(send.reshape(-1), recv.reshape(-1), op)
            return
        gathered, parts = self._shapes.get((send.dtype.char, nbytes)) or self._shape(send)
        self._comm.Allgather((send, nbytes, self._byte), gathered)
        fold(parts, recv, op)

    def _shape(self, send: Array) -> tuple[tuple[object, ...], list[Array]]:
        """Return a receive buffer for small operands of this dtype and size, and a view of each rank's operand."""
        if len(self._shapes) >= MAX_CACHED_SHAPES:
            self._shapes.clear()
        nbytes = send.nbytes
        parts = [self._scratch[rank * nbytes : (rank + 1) * nbytes].view(send.dtype) for rank in range(self._size)]
        shape = ((self._scratch[: nbytes * self._size], nbytes, self._byte), parts)
        self._shapes[send.dtype.char, nbytes] = shape
        return shape

    def _reduce_large(self, send: Array, recv: Array, op: ReduceOp) -> None:
        chunk = max(1, self._chunk_bytes // send.itemsize)
        room = -(-min(chunk, send.size) // self._size) * self._size  # every rank's slice, rounded up
        scratch = np.empty(room, send.dtype)
        for start in range(0, send.size, chunk):
            self._reduce_chunk(send[start : start + chunk], recv[start : start + chunk], scratch, op)

    def _reduce_chunk(self, send: Array, recv: Array, scratch: Array, op: ReduceOp) -> None:
        """Fold one slice in rank order on each rank, then gather the slices on all."""
        # Alltoallv, fold, Allgatherv: the work is divided between ranks, yet each element is folded in rank order.
        # One rank that folds everything would take `size` times as long; MPI's own Allreduce has no fixed order.
        datatype = self._datatypes[send.itemsize]
        bounds = [send.size * rank // self._size for rank in range(self._size + 1)]
        counts = [end - start for start, end in pairwise(bounds)]
        slice_size = counts[self._rank]
        starts = [slice_size * rank for rank in range(self._size)]
        self._comm.Alltoallv(
            (send, (counts, bounds[:-1]), datatype), (scratch, ([slice_size] * self._size, starts), datatype)
        )
        own_slice = recv[bounds[self._rank] : bounds[self._rank + 1]]
        fold([scratch[start : start + slice_size] for start in starts], own_slice, op)
        self._comm.Allgatherv(self._mpi.IN_PLACE, (recv, (counts, bounds[:-1]), datatype))


# Payloads that exceed one MPI call, whose counts and displacements are 32-bit in most MPI libraries.


def broadcast_in_chunks(mpi: Mpi, comm: MpiComm, data: Array, root: int, limit: int) -> None:
    """Broadcast bytes, at most `limit` per MPI call."""
    for chunk in _chunks(data, limit):
        comm.Bcast((chunk, chunk.size, mpi.BYTE), root)


def gather_in_chunks(mpi: Mpi, comm: MpiComm, data: Array, byte_ranges: Sequence[tuple[int, int]], limit: int) -> None:
    """Gather bytes in place: every rank's own part is in `data` already.

    byte_ranges: start and end of each part, by rank.

    A ring: in every step each rank sends to its right neighbour what it received from its left one in the step before.
    """
    rank, size = comm.Get_rank(), comm.Get_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    blocks = [_chunks(data[start:end], limit) for start, end in byte_ranges]
    # Allgatherv cannot be used, because its displacements are 32-bit too. In the ring every message starts at zero.
    for step in range(size - 1):
        outgoing, incoming = blocks[(rank - step) % size], blocks[(rank - step - 1) % size]
        # Sendrecv, because blocking sends of all ranks to the right would deadlock. Blocks of different sizes have
        # different numbers of chunks: a neighbour without one is replaced by PROC_NULL.
        for outgoing_chunk, incoming_chunk in zip_longest(outgoing, incoming):
            comm.Sendrecv(
                _message(mpi, outgoing_chunk),
                mpi.PROC_NULL if outgoing_chunk is None else right,
                recvbuf=_message(mpi, incoming_chunk),
                source=mpi.PROC_NULL if incoming_chunk is None else left,
            )


def _chunks(data: Array, limit: int) -> list[Array]:
    return [data[start : start + limit] for start in range(0, data.size, limit)]


def _message(mpi: Mpi, chunk: Array | None) -> tuple[Array | None, int, object]:
    return (chunk, 0 if chunk is None else chunk.size, mpi.BYTE)


EXCHANGE_S = 2.0  # how long a rank that gives up waits for the others to do so too, or to call `check_failures`


class MpiCommunicator(WindowRegionBackend):
    """A rank of an MPI world, or of one node of it. The lowest rank of each node is its leader."""

    backend = "mpi"

    def __init__(
        self, config: MpiConfig | None = None, comm: MpiComm | None = None, *, _node: MpiComm | None = None
    ) -> None:
        """Join the world that the launcher started, or the processes of one of the program's own communicators.

        comm: an `mpi4py.MPI.Intracomm`, such as a part that `MPI.COMM_WORLD.Split` made; None: MPI_COMM_WORLD. All of
        its ranks must make this call. It is duplicated: our messages never match those of the program, and closing
        this communicator leaves it as it is. _node: the communicator of a `split_local`, which is used as it is.

        Raises `BackendNotAvailableError` without a usable MPI, and `InitializationFailedError` under a launcher of
        another MPI, and for an object that is not an intracommunicator.

            with MpiCommunicator(comm=MPI.COMM_WORLD.Split(color)) as part: ...
        """
        self._config = config or MpiConfig()
        self._mpi = mpi = load_mpi()
        self._job = Job.current(mpi)
        self._group: CommGroup | None = None
        if _node is not None:
            self._comm = self._node = _node
        else:
            parent = mpi.COMM_WORLD if comm is None else _require_intracomm(mpi, comm)
            self._group = self._job.group(parent)
            self._comm, self._node = self._duplicate(mpi, parent, self._group)
        super().__init__(self._comm.Get_rank(), self._comm.Get_size())
        # MPI's default error handler aborts the job at the first error, before the caller could see it.
        for comm_handle in (self._comm, self._node):
            comm_handle.Set_errhandler(mpi.ERRORS_RETURN)
        self._prepare(mpi)
        self._job.watch(self, self._group)
        if self._group is not None:
            self._group.communicators.hold(*_release_hooks(self))

    @property
    def is_leader(self) -> bool:
        """Whether this is the lowest rank of its node."""
        return self._is_leader

    def give_up(self, error: BaseException) -> None:
        """Exchange exit reports with the other ranks; end the job unless all of them give up or check for failures."""
        if not self._leave_together(error):
            super().give_up(error)

    def check_failures(self) -> None:
        """Wait until all ranks have made this call or have given up; raise `AbortedError` if any has given up."""
        self._require_open()
        group = self._shared_group()
        reports = None if group is None else group.error_exchange.exchange(None)
        if reports is not None and (agreed := agreed_exit(self._rank, reports)) is not None:
            error = AbortedError("check_failures", 0, reasons(reports) or "another rank gave up", self.sequence)
            attach_exit_report(error, agreed)
            raise error

    def _leave_together(self, error: BaseException) -> bool:
        """Exchange exit reports; whether all ranks leave in order, so that the job need not be aborted."""
        report = exit_report_of(error)
        group = self._shared_group()
        if report is None or report.is_agreed or self.state != "open" or group is None:
            return report is not None and report.is_agreed
        try:
            reports = group.error_exchange.exchange(report, EXCHANGE_S)
        except KeyboardInterrupt:  # Ctrl-C while waiting for the other ranks: abort the job now
            return False
        if reports is None or (agreed := agreed_exit(self._rank, reports)) is None:
            return False
        attach_exit_report(error, agreed)
        return True

    def _shared_group(self) -> CommGroup | None:
        """Return the group by which ranks exchange failures; None for a single rank, and for a part of a group."""
        return self._group if self._size > 1 else None

    def _duplicate(self, mpi: Mpi, parent: MpiComm, group: CommGroup) -> tuple[MpiComm, MpiComm]:
        """Duplicate a communicator, so that our messages never match receives of the program; and split it by node."""
        # Freeing is collective: all ranks are here, so earlier communicators that all of them have closed can go.
        group.communicators.agree_and_release(mpi, parent)
        world = parent.Dup()
        return world, world.Split_type(mpi.COMM_TYPE_SHARED, world.Get_rank())

    def _prepare(self, mpi: Mpi) -> None:
        self._limit = self._config.max_message_bytes
        self._byte, self._in_place = mpi.BYTE, mpi.IN_PLACE
        self._datatypes = Datatypes(mpi)
        self._reduction = OrderedReduction(mpi, self._comm, self._datatypes, self._limit)
        self._is_leader = bool(self._node.Get_rank() == 0)
        self._is_one_node = bool(self._node.Get_size() == self._size)
        self._windows = Windows(mpi, self._comm, self._node)
        # The largest region that a gather could receive into; the same on all ranks, so that it may decide which MPI
        # calls are made.
        self._region_bytes = 0
        self._nodes = DeferredRelease()
        self._call_check = CallCheck(mpi, self._comm, self._guard) if self._config.checked else None
        if self._call_check is None:
            # No Python frame between the guard and MPI: the reduction replaces the method that would call it.
            self._guard.bind_barrier(self._comm.Barrier)
            if self._size > 1:
                self._allreduce = self._reduction.reduce  # type: ignore[method-assign]  # one frame less

    # The collectives.

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        if self._call_check is not None:
            self._call_check.compare(allgatherv_call(recv.dtype, counts, self._rank))
        if not (self._region_bytes and self._gather_with_regions(send, recv, counts, displs)):
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
            broadcast_in_chunks(self._mpi, self._comm, as_octets(buffer), root, self._limit)

    def _barrier(self) -> None:
        if self._call_check is not None:
            self._call_check.compare(CheckedCall(Operation.BARRIER, None))
        self._comm.Barrier()

    # The choice of an MPI call must depend on values that are equal on all ranks (counts, dtype, limit), never on one
    # rank's buffers: ranks in different collectives deadlock.

    # Gathering. A send buffer that overlaps the receive buffer has been checked to be this rank's part of it.

    def _gather(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        # The first test is the same on all ranks. The second one is not, as receive buffers may differ in length, but
        # `_gather_through_packed` makes the same Allgatherv as the last branch.
        if sum(counts) * recv.itemsize > self._limit:
            self._gather_large(send, recv, counts, displs)
        elif recv.nbytes > self._limit:
            self._gather_through_packed(send, recv, counts, displs)
        else:
            datatype = self._datatypes[recv.itemsize]
            source = self._in_place if np.may_share_memory(send, recv) else (send, send.size, datatype)
            self._comm.Allgatherv(source, (recv, counts, displs, datatype))

    def _gather_large(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        copy_into(send, recv, displs[self._rank])
        unit = recv.itemsize
        byte_ranges = [(start * unit, (start + count) * unit) for count, start in zip(counts, displs, strict=True)]
        gather_in_chunks(self._mpi, self._comm, as_octets(recv), byte_ranges, self._limit)

    def _gather_through_packed(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        """Gather packed, then copy: the receive buffer is too long for 32-bit displacements."""
        packed = np.empty(sum(counts), recv.dtype)
        starts = packed_displacements(counts)
        self._gather(send, packed, counts, starts)
        for count, source, target in zip(counts, starts, displs, strict=True):
            copy_into(packed[source : source + count], recv, target)

    def _gather_with_regions(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> bool:
        """Gather if ranks may be receiving into shared regions; False, on all ranks alike, if none of them is.

        If all ranks receive into the same part of a region, each writes its part once. If only some do, no rank may
        return, and perhaps write there again, while others still write what they received.
        """
        if sum(counts) * recv.itemsize > self._region_bytes:
            return False
        location = (*self._windows.locate(recv), hash(tuple(displs)), self._windows.largest_bytes())
        locations = self._exchange_locations(location)
        # The largest region that every rank still has open: this exchange also spreads which have been closed.
        self._region_bytes = int(locations[:, 3].min())
        number = int(locations[0, 0])
        if number and self._is_one_node and (locations[:, :3] == locations[0, :3]).all():
            # The same memory on all ranks: each writes its part, and a fence makes it visible to all.
            copy_into(send, recv, displs[self._rank])
            self._windows.synchronise(number)
            self._comm.Barrier()
            self._windows.synchronise(number)
            return True
        if locations[:, 0].any():
            self._gather(send, recv, counts, displs)
            self._comm.Barrier()  # some ranks share their receive buffer: wait until all writes there are done
            return True
        return False

    def _exchange_locations(self, location: tuple[int, ...]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        gathered = np.empty((self._size, len(location)), np.int64)
        self._comm.Allgather(np.array(location, np.int64), gathered)
        return gathered

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
        # Sync, barrier, sync: MPI's barrier does not order plain loads and stores to a window.
        window.synchronise()
        self._node.Barrier()
        window.synchronise()

    def _split_local(self) -> "MpiCommunicator":
        if self._call_check is not None:
            self._call_check.compare(CheckedCall(Operation.SPLIT_LOCAL, None))
        # Freeing and duplicating are collective: all ranks are here, so those that all of them have closed go first.
        self._nodes.agree_and_release(self._mpi, self._comm)
        node = MpiCommunicator(self._config, _node=self._node.Dup())
        self._nodes.hold(*_release_hooks(node))
        return node

    # The end.

    def _close(self) -> None:
        """Leave the MPI communicators to a later collective call: freeing them here would wait for the other ranks."""
        if self._others_may_wait():
            self._job.abort(f"{self!r} was closed after a failure: {self._first_failure}")

    def _abort(self, reason: str) -> None:
        if isinstance(self._first_failure, CollectiveFailedError) and self._first_failure.operation == "abort":
            if self._size > 1:
                self._job.abort(reason)
        elif self._others_may_wait():
            self._job.abort_at_exit(reason)

    def _others_may_wait(self) -> bool:
        # All ranks found the mismatch together: no rank waits for this one.
        return self._size > 1 and not isinstance(self._first_failure, MismatchedCallError | None)

    def _translate(self, error: BaseException, operation: Operation) -> BaseException:
        if isinstance(error, self._mpi.Exception):
            return CollectiveFailedError(
                operation.title, error.Get_error_code(), error.Get_error_string(), self.sequence
            )
        return super()._translate(error, operation)


def _require_intracomm(mpi: Mpi, comm: object) -> MpiComm:
    """Return the program's MPI communicator; refuse anything else, and MPI_COMM_NULL, which would end the job."""
    if comm == mpi.COMM_NULL:
        raise InitializationFailedError("mpi", "comm is MPI.COMM_NULL: this process is not one of its ranks")
    if not isinstance(comm, mpi.Intracomm):
        raise InitializationFailedError(
            "mpi", f"comm must be an mpi4py.MPI.Intracomm (MPI.COMM_WORLD, or what its Split returned), got {comm!r}"
        )
    return comm


def _release_hooks(communicator: MpiCommunicator) -> tuple[Callable[[], bool], Callable[[], None]]:
    """Return a test of whether a communicator is unused, and a function that frees its MPI objects.

    Neither keeps it alive.
    """
    owner = weakref.ref(communicator)
    comms = {id(comm): comm for comm in (communicator._comm, communicator._node)}.values()

    def is_unused() -> bool:
        alive = owner()
        return alive is None or alive.state == "closed"

    def release() -> None:
        for comm in comms:
            comm.Free()

    return is_unused, release

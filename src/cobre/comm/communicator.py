"""The contract of every backend: four collectives, and what callers may rely on.

Public methods are concrete: they check their arguments, number the call, guard the state, record the call and map
errors, once for all backends. A backend implements the methods that start with `_`.

General clauses (the conformance cases quote their numbers):

1. *Order.* All ranks make the same collective calls in the same order. Every call has a sequence number, counted from
   1, which appears in errors.
2. *Mismatch.* Calls that disagree in operation, dtype, counts, root or reduction deliver no data and raise
   `MismatchedCallError` on every rank, naming two ranks that disagree. There is never a hang, and never corrupt data.
   (On mpi only in checked mode, `MpiConfig.checked`; otherwise the outcome is up to the MPI library.)
3. *Local checks first.* A bad argument raises before a byte is sent and before the call is numbered; the communicator
   stays usable. The checks do not depend on the number of ranks: what fails on 64 ranks fails on one.
4. *After any other failure* the communicator is broken: later calls raise `CommunicatorBrokenError` with the first
   error as cause; `close` still works and never hangs. `AllocationFailedError` is raised on every rank alike and does
   not break it.
5. *Failure of a rank* reaches all ranks: at once if its process died, after the timeout if it is silent (no heartbeat:
   stopped, or unreachable). The error names the missing ranks with host and pid, the operation and the sequence number.
   A rank that is alive and computing is waited for without limit, with a log line every 30 s that says which ranks are
   missing in which call. A hard limit per operation can be set; there is none by default. (On mpi, a rank that fails
   ends the whole job, and detecting silent ranks is up to the MPI library.)
6. *Threads and processes.* One caller at a time: a second thread gets `CommunicatorBusyError`. Calls in a forked child
   raise `ForkedCommunicatorError`. A communicator cannot be pickled. Waiting releases the GIL, and reacts to Ctrl-C
   within 200 ms.
7. *Size.* Payloads are limited by memory only: backends move large ones in pieces through a bounded window.
8. *Determinism.* `allgatherv` places rank r's data at `displs[r]`; gaps stay untouched; counts may be zero. `allreduce`
   is the left fold in rank order, `((x0 op x1) op x2) ...`, element by element, in the precision of the arrays. A NaN
   in any rank's element makes the result the canonical quiet NaN, and -0.0 is less than 0.0, so that MIN and MAX are
   unique too; integers wrap around. The bits are the same on all ranks, in all runs and on all backends.

Buffers are C-contiguous NumPy arrays (or objects with the buffer protocol) of a fixed-size dtype in native byte order;
structured dtypes are accepted, object dtypes are not. The shape does not matter: counts are elements of the flattened
array. Send and receive buffers may overlap only if a method says so.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import update_wrapper
from types import MemberDescriptorType
from typing import Any, TypeVar, cast

from cobre._native import GuardedMethod
from cobre.comm import validation
from cobre.comm.endpoint import Endpoint
from cobre.comm.types import Array, Operation, ReduceOp

# Module-level names: looking up an enum member costs as much as the whole guard.
_ALLGATHERV, _ALLREDUCE, _BROADCAST, _BARRIER = (
    Operation.ALLGATHERV,
    Operation.ALLREDUCE,
    Operation.BROADCAST,
    Operation.BARRIER,
)

Method = TypeVar("Method", bound=Callable[..., None])


def _guarded_natively(method: Method) -> Method:
    """Run the common case of `barrier` in native code: a Python frame would be a sixth of a barrier on some MPIs."""
    slot = cast("MemberDescriptorType", Endpoint.__dict__["_guard"])
    return cast("Method", update_wrapper(GuardedMethod(method, _BARRIER, slot), method))


class Communicator(Endpoint):
    """One rank's handle on a world of ranks, with the collectives over it; made by `create_communicator`.

    Users call `allgatherv`, `allreduce`, `broadcast`, `barrier` and `check_failures`, and may rely on the numbered
    clauses in the docstring of this module. All of them raise `InvalidCommunicatorError` if the communicator is closed,
    broken, busy or forked, and, once started, `CollectiveFailedError` or the subclass that names the cause:
    `PeerLostError`, `PeerTimeoutError`, `MismatchedCallError`, `AbortedError`. `label` names a call in errors, reports
    and traces; it may differ between ranks.

    A public method calls the native guard, which checks the arguments, records the call and calls the hook of the same
    name. Where the hooks lead: `StarCollectives` and `HierarchicalCollectives` on tcp (its package docstring gives the
    reading order), native code on shm (`ShmTransport`), methods of `MpiCommunicator` on mpi.

    A backend must define `_allgatherv`, `_allreduce`, `_broadcast`, `_barrier`, `_close` and `_abort`, and may override
    `_translate` and `check_failures`. It may rely on this: arguments are valid, arrays are C-contiguous and in native
    byte order, one thread calls at a time, calls are numbered (`sequence`), and whatever a hook raises is translated,
    breaks the communicator, and reaches the other ranks through `_abort`.
    """

    def allgatherv(
        self,
        send: Any,
        recv: Any,
        counts: Sequence[int],
        displs: Sequence[int] | None = None,
        *,
        label: str = "",
    ) -> None:
        """Gather every rank's data on every rank.

        Before: `send` has `counts[rank]` elements; `counts` is the same on all ranks; `recv` has the dtype of `send`
        and at least `displs[r] + counts[r]` elements for every r; the parts do not overlap. Without `displs` the parts
        are packed in rank order. `displs` may differ between ranks. `send` may be exactly this rank's part of `recv`
        (in place). `recv` may be a `SharedRegion`: then every rank writes its part once, and nothing is copied out.

        After: `recv[displs[r]:displs[r] + counts[r]]` is rank r's data, for every r; the rest is untouched.

        Raises `InvalidBufferSizeError` or `UnsupportedBufferError` for bad arguments (clause 3).

            counts = [3, 1, 2]    # rank 0 sends three elements, rank 1 one, rank 2 two
            recv = np.empty(6)
            comm.allgatherv(mine, recv, counts)    # the same six numbers on every rank
        """
        try:
            has_run = self._guard.allgatherv(self._allgatherv, send, recv, counts, displs, label)
        except BaseException as error:  # noqa: BLE001 - any exception ends the call
            self._fail(_ALLGATHERV, error)
        if not has_run:
            self._validate_and_run_allgatherv(send, recv, counts, displs, label)

    def allreduce(self, send: Any, recv: Any, op: ReduceOp = ReduceOp.SUM, *, label: str = "") -> None:
        """Reduce every rank's data element by element; every rank gets the result.

        Before: `send` and `recv` have the same numeric dtype and number of elements, on all ranks alike; they are the
        same memory (in place), or do not overlap. MIN and MAX are not defined for complex numbers.

        After: `recv[i]` is the left fold in rank order of all ranks' `send[i]` (clause 8).

        Raises `InvalidBufferSizeError`, `UnsupportedBufferError` or `UnsupportedReductionError` for bad arguments.

            comm.allreduce(costs, costs, ReduceOp.MIN)    # in place
        """
        try:
            has_run = self._guard.allreduce(self._allreduce, send, recv, op, label)
        except BaseException as error:  # noqa: BLE001 - any exception ends the call
            self._fail(_ALLREDUCE, error)
        if not has_run:
            self._validate_and_run_allreduce(send, recv, op, label)

    def broadcast(self, buffer: Any, root: int = 0, *, label: str = "") -> None:
        """Copy the root's buffer to every rank.

        Before: `buffer` is writable, also on the root, and has the same dtype and number of elements on all ranks;
        `root` is the same rank everywhere.

        After: every rank's `buffer` holds the root's bytes.

        Raises `InvalidRootError` or `UnsupportedBufferError` for bad arguments.

            settings = np.array([tolerance, step]) if comm.rank == 0 else np.empty(2)
            comm.broadcast(settings)
        """
        try:
            has_run = self._guard.broadcast(self._broadcast, buffer, root, label)
        except BaseException as error:  # noqa: BLE001 - any exception ends the call
            self._fail(_BROADCAST, error)
        if not has_run:
            self._validate_and_run_broadcast(buffer, root, label)

    @_guarded_natively
    def barrier(self, *, label: str = "") -> None:
        """Return once every rank has made this call.

        It does not order writes to shared regions; `SharedRegion.fence` does.

        Raises `InvalidCommunicatorError` and `CollectiveFailedError` as every call does: `PeerLostError` if a rank died
        or left before it made this call, `PeerTimeoutError` if one is silent, `MismatchedCallError` if one made another
        call.

            comm.barrier(label="files written")
        """
        try:
            has_run = self._guard.barrier(self._barrier, label)
        except BaseException as error:  # noqa: BLE001 - any exception ends the call
            self._fail(_BARRIER, error)
        if not has_run:
            with self._call(_BARRIER, 0, label):
                self._barrier()

    def check_failures(self) -> None:
        """Raise `AbortedError` if another rank has given up. Collective: call on every rank.

        Call it after work that may fail on a single rank: reading a file, preparing data, writing results.

        On mpi it is a collective, and the only point at which a rank can learn of another one's failure without the
        job being aborted in the middle of a call. On the other backends a failure reaches all ranks at any time, and
        this does nothing. A backend need not override it.
        """

    # The hooks of a backend. Arguments have been checked; arrays are C-contiguous. Either all data arrives, or the
    # method raises. No caller's array is written before all ranks are known to make the same call (clause 2).

    @abstractmethod
    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        """Place every rank's `counts[r]` elements at `displs[r]` of `recv`. `send` may be its own part of `recv`."""

    @abstractmethod
    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        """Fold all ranks' `send` in rank order into `recv`, which may be `send`: `cobre._native.fold` does it."""

    @abstractmethod
    def _broadcast(self, buffer: Array, root: int) -> None:
        """Copy the root's `buffer` into every rank's."""

    @abstractmethod
    def _barrier(self) -> None:
        """Return once every rank has called this."""

    # Calls that the native guard does not accept: converted to the common form and run, or reported as an error.

    def _validate_and_run_allgatherv(self, send: Any, recv: Any, counts: Any, displs: Any, label: str) -> None:
        self._require_open()
        if (memory := validation.region_memory(recv)) is not None:
            self.allgatherv(send, memory, counts, displs, label=label)
            return
        checked = validation.check_allgatherv(send, recv, counts, displs, self._rank, self._size)
        with self._call(_ALLGATHERV, checked[1].nbytes, label):
            self._allgatherv(*checked)

    def _validate_and_run_allreduce(self, send: Any, recv: Any, op: Any, label: str) -> None:
        self._require_open()
        checked = validation.check_allreduce(send, recv, op)
        with self._call(_ALLREDUCE, checked[0].nbytes, label):
            self._allreduce(*checked, op)

    def _validate_and_run_broadcast(self, buffer: Any, root: Any, label: str) -> None:
        self._require_open()
        checked = validation.check_broadcast(buffer, root, self._size)
        with self._call(_BROADCAST, checked.nbytes, label):
            self._broadcast(checked, int(root))

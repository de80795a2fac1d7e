"""The contract of every backend: four collectives, and what may be relied on.

Public methods are concrete: they check their arguments, number the call, guard the state, record the
call and map errors, once for all backends. A backend implements the methods that start with `_`.

General clauses (the conformance cases quote their numbers):

1. *Order.* All ranks issue the same collectives in the same order. Every call has a sequence number,
   counted from 1, that appears in errors.
2. *Mismatch.* Calls that disagree in operation, dtype, counts, root or reduction deliver no data and
   raise `MismatchedCallError` on every rank, naming both sides. Never a hang, never corrupt data. (On mpi: in
   checked mode, `MpiConfig.checked`; otherwise what the MPI makes of it.)
3. *Local checks first.* A bad argument raises before a byte leaves and before the call is numbered; the
   communicator stays usable. The checks do not depend on the size: what 64 ranks refuse, one refuses.
4. *After any other failure* the communicator is broken: later calls raise `CommunicatorBrokenError` with
   the first error as cause; `close` still works and never hangs. `AllocationFailedError` is raised
   on every rank alike and does not break it.
5. *Failure of a rank* reaches all ranks: at once when its process died, after the timeout when it is silent
   (no heartbeat: stopped, unreachable). The error names the missing ranks, the operation, the sequence number,
   the host and the pid. A rank that is alive and computing is waited for, however long, with a log line
   every 30 s that says who is missing in which call. A hard limit per operation exists and is off by default.
   (On mpi: a rank that fails ends the whole job; who is silent is the MPI's to find out.)
6. *Threads and processes.* One caller at a time, a second thread gets `CommunicatorBusyError`; refused in
   a forked child; not picklable. Waiting releases the GIL and notices Ctrl-C within 200 ms.
7. *Size.* No payload limit below memory: backends move large payloads in pieces through a bounded window.
8. *Determinism.* `allgatherv` places rank r's data at `displs[r]`; gaps stay untouched; zero counts are legal.
   `allreduce` is the left fold in rank order, `((x0 op x1) op x2) ...`, element by element, in the arrays'
   precision. A NaN in any rank's element makes the result the canonical quiet NaN, and -0.0 is less than 0.0,
   so MIN and MAX have one answer too; integers wrap. The same bits on all ranks, runs and backends.

Buffers are C-contiguous NumPy arrays (or objects with the buffer protocol) of a fixed-size dtype in native byte
order, structured dtypes included and object dtypes refused. Their shape does not matter: counts are elements of
the flattened array. Send and receive buffers may be the same memory only where a method says so.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from cobre.comm import validation
from cobre.comm.endpoint import Endpoint
from cobre.comm.types import Array, Operation, ReduceOp

# Plain names: looking up a member of an enumeration costs as much as the whole guard.
_ALLGATHERV, _ALLREDUCE, _BROADCAST, _BARRIER = (
    Operation.ALLGATHERV,
    Operation.ALLREDUCE,
    Operation.BROADCAST,
    Operation.BARRIER,
)


class Communicator(Endpoint):
    """One rank's handle on a world of ranks, with the collectives over it.

    Users call `allgatherv`, `allreduce`, `broadcast`, `barrier` and `check_failures`, and rely on the numbered clauses
    in this module's text. All of them may raise `InvalidCommunicatorError` (closed, broken, busy, forked) and, once
    started, `CollectiveFailedError` with a cause: `PeerLostError`, `PeerTimeoutError`, `MismatchedCallError`,
    `AbortedError`. `label` names a call in errors, reports and traces; ranks may give different ones.

    A backend must define `_allgatherv`, `_allreduce`, `_broadcast`, `_barrier`, `_close` and `_abort`, and may override
    `_translate` and `check_failures`. It may rely on this: arguments are valid, arrays are C-contiguous and of native
    byte order, one thread calls at a time, calls are numbered (`sequence`), and whatever a hook raises is translated,
    breaks the communicator and reaches the other ranks through `_abort`.
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
        """Collect every rank's data on every rank.

        Before: `send` holds `counts[rank]` elements; `counts` is the same on all ranks; `recv` has the dtype of
        `send` and room for every `displs[r] + counts[r]`; the places do not overlap. Without `displs` the
        data is packed in rank order. `send` may be the very place in `recv` where it would land.
        `recv` may be a `SharedRegion`: then every rank writes its part once and nobody copies out.

        After: `recv[displs[r]:displs[r] + counts[r]]` is rank r's data, for every r; the rest is untouched.

            counts = [3, 1, 2]    # rank 0 sends three elements, rank 1 one, rank 2 two
            recv = np.empty(6)
            comm.allgatherv(mine, recv, counts)    # the same six numbers on every rank
        """
        try:
            done = self._guard.allgatherv(self._allgatherv, send, recv, counts, displs, label)
        except BaseException as error:  # noqa: BLE001 - whatever it was, the call is over
            self._fail(_ALLGATHERV, error)
        if not done:
            self._admit_allgatherv(send, recv, counts, displs, label)

    def allreduce(self, send: Any, recv: Any, op: ReduceOp = ReduceOp.SUM, *, label: str = "") -> None:
        """Combine every rank's data element by element; every rank gets the result.

        Before: `send` and `recv` have one numeric dtype and one number of elements, the same on all ranks, and
        are the same memory or apart. MIN and MAX are not defined for complex numbers.

        After: `recv[i]` is the left fold in rank order of all ranks' `send[i]` (clause 8).

            comm.allreduce(costs, costs, ReduceOp.MIN)    # in place
        """
        try:
            done = self._guard.allreduce(self._allreduce, send, recv, op, label)
        except BaseException as error:  # noqa: BLE001 - whatever it was, the call is over
            self._fail(_ALLREDUCE, error)
        if not done:
            self._admit_allreduce(send, recv, op, label)

    def broadcast(self, buffer: Any, root: int = 0, *, label: str = "") -> None:
        """Copy the root's buffer to every rank.

        Before: `buffer` is writable and has one dtype and one number of elements on all ranks; `root` is the same.
        After: every rank's `buffer` holds the root's bytes.
        """
        try:
            done = self._guard.broadcast(self._broadcast, buffer, root, label)
        except BaseException as error:  # noqa: BLE001 - whatever it was, the call is over
            self._fail(_BROADCAST, error)
        if not done:
            self._admit_broadcast(buffer, root, label)

    def barrier(self, *, label: str = "") -> None:
        """Return when every rank has called. What ranks wrote into shared regions needs a `fence`, not this."""
        try:
            done = self._guard.barrier(self._barrier, label)
        except BaseException as error:  # noqa: BLE001 - whatever it was, the call is over
            self._fail(_BARRIER, error)
        if not done:
            with self._call(_BARRIER, 0, label):
                self._barrier()

    def check_failures(self) -> None:
        """Raise `AbortedError` on this rank if another one gave up before; all ranks call it at the same point.

        Call it after work that may fail on one rank alone: reading a file, preparing data, writing results.

        On mpi it is a collective, and the only point at which a rank can learn of another's failure without the job
        being aborted in the midst of a call. On the other backends a failure reaches all ranks at any time, and this
        does nothing. A backend need not override it.
        """

    # What a backend must define. Arguments are checked; arrays are C-contiguous; data either arrives whole or the
    # method raises. No caller's array is written before all ranks are known to make the same call (clause 2).

    @abstractmethod
    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        """Put every rank's `counts[r]` elements at `displs[r]` of `recv`. `send` may lie in its place in `recv`."""

    @abstractmethod
    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        """Put the left fold in rank order into `recv`, which may be `send`; `cobre._native.fold` has the right bits."""

    @abstractmethod
    def _broadcast(self, buffer: Array, root: int) -> None:
        """Fill `buffer` with the root's."""

    @abstractmethod
    def _barrier(self) -> None:
        """Return when every rank is here."""

    # The guard runs the common calls natively. What it does not accept comes here, where it is either named as an error
    # or brought into the common form and run after all.

    def _admit_allgatherv(self, send: Any, recv: Any, counts: Any, displs: Any, label: str) -> None:
        self._require_open()
        if (memory := validation.region_memory(recv)) is not None:
            self.allgatherv(send, memory, counts, displs, label=label)
            return
        checked = validation.check_allgatherv(send, recv, counts, displs, self._rank, self._size)
        with self._call(_ALLGATHERV, checked[1].nbytes, label):
            self._allgatherv(*checked)

    def _admit_allreduce(self, send: Any, recv: Any, op: Any, label: str) -> None:
        self._require_open()
        checked = validation.check_allreduce(send, recv, op)
        with self._call(_ALLREDUCE, checked[0].nbytes, label):
            self._allreduce(*checked, op)

    def _admit_broadcast(self, buffer: Any, root: Any, label: str) -> None:
        self._require_open()
        checked = validation.check_broadcast(buffer, root, self._size)
        with self._call(_BROADCAST, checked.nbytes, label):
            self._broadcast(checked, int(root))

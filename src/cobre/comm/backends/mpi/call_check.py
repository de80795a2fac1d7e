"""Checked mode: all ranks compare the signatures of their calls before any data moves (clause 2).

Costs one exchange of 16 bytes per call. Only if signatures differ do the ranks exchange descriptions of their calls.
"""

import hashlib
import os
import socket
from collections.abc import Sequence

import numpy as np

from cobre._native import CallGuard
from cobre.comm.backends.mpi.library import Mpi, MpiComm
from cobre.comm.errors import MismatchedCallError, Peer
from cobre.comm.types import Dtype, Operation, ReduceOp

SIGNATURE_BYTES = 16
DESCRIPTION_BYTES = 512
LABEL_CHARACTERS = 32
_LONG_NAMES = {"g": "longdouble", "G": "clongdouble"}


class CheckedCall:
    """One rank's call. signed: what must be equal on all ranks. description: for the error message."""

    def __init__(self, operation: Operation, signed: object, description: str = "") -> None:
        self.operation = operation
        self.signed = signed
        self.description = f"{operation.title} ({description})" if description else operation.title

    @property
    def signature(self) -> bytes:
        """A hash that is equal on two ranks if, and only if, their calls agree."""
        return digest(self.operation.title, self.signed)


def allgatherv_call(dtype: Dtype, counts: Sequence[int], rank: int) -> CheckedCall:
    """The signature of a gather: dtype and counts. Displacements may differ between ranks."""
    amounts = tuple(map(int, counts))
    mark = digest(amounts).hex()[:4]
    description = f"{element_name(dtype)}, {amounts[rank]} of {sum(amounts)}, counts {mark}"
    return CheckedCall(Operation.ALLGATHERV, (dtype.descr, amounts), description)


def allreduce_call(dtype: Dtype, count: int, op: ReduceOp) -> CheckedCall:
    """The signature of a reduction: dtype, length and operation."""
    return CheckedCall(Operation.ALLREDUCE, (dtype.descr, count, int(op)), f"{element_name(dtype)}, {count}, {op.name}")


def broadcast_call(dtype: Dtype, count: int, root: int) -> CheckedCall:
    """The signature of a broadcast: dtype, length and root."""
    description = f"{element_name(dtype)}, {count}, root {root}"
    return CheckedCall(Operation.BROADCAST, (dtype.descr, count, int(root)), description)


def region_call(dtype: Dtype, count: int) -> CheckedCall:
    """The signature of a region: dtype and length."""
    return CheckedCall(Operation.CREATE_SHARED_REGION, (dtype.descr, count), f"{count * dtype.itemsize} bytes")


def fence_call(number: int) -> CheckedCall:
    """The signature of a fence: the number of its region."""
    return CheckedCall(Operation.FENCE, number, f"region {number}")


class CallCheck:
    """Compares the calls of all ranks of one communicator."""

    def __init__(self, mpi: Mpi, comm: MpiComm, guard: CallGuard) -> None:
        self._comm = comm
        self._guard = guard
        self._byte = mpi.BYTE
        self._size = comm.Get_size()

    def compare(self, call: CheckedCall) -> None:
        """Raise `MismatchedCallError` on every rank unless all made the same call. A collective."""
        # Two exchanges: a hash in every call, the long description only if hashes differ. All ranks see the same
        # hashes, so either all of them take part in the second exchange, or none.
        signatures = self._exchange(call.signature, SIGNATURE_BYTES)
        odd = next((rank for rank, other in enumerate(signatures) if other != signatures[0]), None)
        if odd is not None:
            raise self._mismatch(call, odd)

    def _mismatch(self, call: CheckedCall, odd: int) -> MismatchedCallError:
        own = f"{os.getpid()}\n{socket.gethostname()}\n{call.description}{self._label()}"
        # Half of a character that UTF-8 has no bytes for may be in a label: the label is only for display.
        parts = self._exchange(own.encode(errors="replace"), DESCRIPTION_BYTES)
        texts = [part.rstrip(b"\0").decode(errors="replace") for part in parts]
        pids, hosts, descriptions = zip(*(text.split("\n", 2) for text in texts), strict=True)
        sequence = self._guard.sequence
        sides = " vs ".join(f"rank {rank}: {descriptions[rank]}" for rank in (0, odd))
        return MismatchedCallError(
            call.operation.title,
            0,
            f"ranks made different calls: {sides} at call #{sequence}",
            sequence,
            [Peer(rank, hosts[rank], int(pids[rank])) for rank in (0, odd)],
        )

    def _label(self) -> str:
        label = self._guard.recent()[-1][3]
        return f" '{label[:LABEL_CHARACTERS]}'" if label else ""

    def _exchange(self, own: bytes, room: int) -> list[bytes]:
        everybody = np.empty((self._size, room), np.uint8)
        self._comm.Allgather((own[:room].ljust(room, b"\0"), room, self._byte), (everybody, room, self._byte))
        return [row.tobytes() for row in everybody]


def element_name(dtype: Dtype) -> str:
    """The name of a numeric dtype, spelled as in the messages of all backends."""
    return _LONG_NAMES.get(dtype.char, dtype.name) if dtype.kind in "iufcb" else "other dtype"


def digest(*parts: object) -> bytes:
    """A hash of the parts that is the same in every process."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=SIGNATURE_BYTES).digest()

"""The local backend: a world of one rank, which keeps the whole contract."""

from collections.abc import Sequence

from cobre._native import fold
from cobre.comm.backends.base import Backend
from cobre.comm.shared_memory import HeapRegion
from cobre.comm.types import Array, Dtype, ReduceOp
from cobre.comm.validation import copy_into


class LocalCommunicator(Backend):
    """One rank. `allgatherv` and `allreduce` copy (NaNs become canonical), `broadcast` and `barrier` do nothing."""

    backend = "local"

    def __init__(self) -> None:
        super().__init__(0, 1)

    @property
    def is_leader(self) -> bool:
        """True: there is no other rank."""
        return True

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        copy_into(send, recv, displs[0])

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        fold([send.reshape(-1)], recv.reshape(-1), op)

    def _broadcast(self, buffer: Array, root: int) -> None:
        """Do nothing: the only rank is the root."""

    def _barrier(self) -> None:
        """Do nothing: there is no other rank to wait for."""

    def _create_shared_region(self, count: int, dtype: Dtype) -> HeapRegion:
        return HeapRegion(self, count, dtype)

    def _split_local(self) -> "LocalCommunicator":
        return LocalCommunicator()

    def _close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _abort(self, reason: str) -> None:
        """Do nothing: there are no other ranks."""

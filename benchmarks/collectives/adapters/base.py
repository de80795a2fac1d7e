"""Interface of contenders: the calls, bound to their arguments. The loop around them is shared."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collectives.cases import Kind

Array: TypeAlias = NDArray[np.float64]
Call: TypeAlias = Callable[[], object]

WITHOUT_REGIONS = frozenset(Kind) - {Kind.ALLGATHERV_INTO_REGION}


class Adapter(ABC):
    """One rank of one library. Every `bind_` method returns the call that is timed, ready to be repeated.

    kinds: the calls that the library has. communicates: whether results are to be checked.
    """

    kinds: frozenset[Kind] = WITHOUT_REGIONS
    communicates: bool = True

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size

    @abstractmethod
    def synchronise(self) -> None:
        """Let all ranks start a repetition together."""

    @abstractmethod
    def bind_barrier(self) -> Call:
        """Wait for all ranks."""

    @abstractmethod
    def bind_allreduce(self, send: Array, recv: Array) -> Call:
        """Add all ranks' arrays."""

    @abstractmethod
    def bind_allgatherv(self, send: Array, recv: Array, counts: tuple[int, ...]) -> Call:
        """Collect all ranks' arrays, packed."""

    @abstractmethod
    def bind_broadcast(self, buffer: Array) -> Call:
        """Copy rank 0's array."""

    def bind_allgatherv_into_region(
        self, _send: Array, _counts: tuple[int, ...], /
    ) -> AbstractContextManager[tuple[Call, Array]]:
        """Collect all ranks' arrays in memory that they share; also gives that memory, to be read."""
        raise NotImplementedError(f"{type(self).__name__} has no shared regions")

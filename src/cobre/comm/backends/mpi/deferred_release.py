"""Resources that MPI frees collectively, although the contract lets every rank close them on its own.

They are kept until a later collective call, in which all ranks agree on those that none of them uses any more.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.comm.backends.mpi.library import Mpi, MpiComm

Votes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Held:
    """A resource that only all ranks together can free. is_unused: whether this rank no longer needs it."""

    is_unused: Callable[[], bool]
    release: Callable[[], None]


class DeferredRelease:
    """Resources that are kept until no rank uses them, in the same order on all ranks."""

    def __init__(self) -> None:
        self._held: list[Held] = []

    def hold(self, is_unused: Callable[[], bool], release: Callable[[], None]) -> None:
        """Keep a resource; all ranks do so in the same call."""
        self._held.append(Held(is_unused, release))

    def agree_and_release(self, mpi: Mpi, comm: MpiComm, *conditions: bool) -> bool:
        """Free what no rank of `comm` uses; whether the conditions hold on all ranks. A collective."""
        if not conditions and not self._held:
            return True  # on all ranks alike, because all hold the same: none of them enters the collective below
        own = [all(conditions), *(held.is_unused() for held in self._held)]
        agreed = agree(mpi, comm, np.array(own, np.uint8))
        for held, is_unused in zip(self._held, agreed[1:], strict=True):
            if is_unused:
                held.release()
        self._held = [held for held, is_unused in zip(self._held, agreed[1:], strict=True) if not is_unused]
        return bool(agreed[0])


def agree(mpi: Mpi, comm: MpiComm, votes: Votes) -> Votes:
    """The votes that are set on all ranks. A collective."""
    comm.Allreduce(mpi.IN_PLACE, votes, mpi.BAND)
    return votes

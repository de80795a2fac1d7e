"""Things that MPI releases collectively, while the contract lets every rank give them up on its own.

They are kept until all ranks are in a call together anyway and have given up the same one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.comm.backends.mpi.library import Mpi, MpiComm

Votes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Held:
    """A resource that only all ranks together can free. is_given_up: whether this rank needs it no more."""

    is_given_up: Callable[[], bool]
    release: Callable[[], None]


class DeferredRelease:
    """Resources that are kept until all ranks have given them up, in the same order on all ranks."""

    def __init__(self) -> None:
        self._held: list[Held] = []

    def hold(self, is_given_up: Callable[[], bool], release: Callable[[], None]) -> None:
        """Keep something; all ranks do so in the same call."""
        self._held.append(Held(is_given_up, release))

    def agree_and_release(self, mpi: Mpi, comm: MpiComm, *conditions: bool) -> bool:
        """Release what all ranks of `comm` have given up; say whether all ranks' conditions hold. A collective."""
        if not conditions and not self._held:
            return True  # on all ranks alike, because all hold the same: nobody waits in the collective below
        own = [all(conditions), *(held.is_given_up() for held in self._held)]
        agreed = agree(mpi, comm, np.array(own, np.uint8))
        for held, is_given_up in zip(self._held, agreed[1:], strict=True):
            if is_given_up:
                held.release()
        self._held = [held for held, is_given_up in zip(self._held, agreed[1:], strict=True) if not is_given_up]
        return bool(agreed[0])


def agree(mpi: Mpi, comm: MpiComm, votes: Votes) -> Votes:
    """Which votes are set on all ranks. A collective."""
    comm.Allreduce(mpi.IN_PLACE, votes, mpi.BAND)
    return votes

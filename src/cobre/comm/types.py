"""Types that the contract is written in: arrays, reductions, operations, names of backends."""

from enum import IntEnum, StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""A C-contiguous NumPy array of a fixed-size dtype in native byte order."""


Dtype: TypeAlias = np.dtype[Any]


class ReduceOp(IntEnum):
    """Element-wise reduction for `allreduce`, applied as the left fold in rank order (clause 8)."""

    SUM = 0
    MIN = 1
    MAX = 2


class Operation(IntEnum):
    """The collective calls, as errors, reports and traces name them. The numbers are part of the wire format."""

    JOIN = 0
    BARRIER = 1
    ALLGATHERV = 2
    ALLREDUCE = 3
    BROADCAST = 4
    CREATE_SHARED_REGION = 5
    FENCE = 6
    SPLIT_LOCAL = 7

    @property
    def title(self) -> str:
        """The name of the public method, as it appears in messages: "allgatherv"."""
        return self.name.lower()


class BackendKind(StrEnum):
    """The backends by the names that `COBRE_COMM_BACKEND` and `create_communicator` accept.

    AUTO is not a backend: it selects one by the environment.
    """

    AUTO = "auto"
    MPI = "mpi"
    TCP = "tcp"
    SHM = "shm"
    LOCAL = "local"


# The longest timeout that may be passed to a selector.

MAX_SELECT_S = 3600.0  # epoll takes milliseconds in 32 bits; a longer wait is a loop of shorter ones

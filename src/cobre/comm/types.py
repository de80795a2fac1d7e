"""The small vocabulary that the contract is written in."""

from enum import IntEnum, StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""A C-contiguous NumPy array of a fixed-size dtype in native byte order."""

Dtype: TypeAlias = np.dtype[Any]


class ReduceOp(IntEnum):
    """Element-wise reduction, applied as the left fold in rank order."""

    SUM = 0
    MIN = 1
    MAX = 2


class Operation(IntEnum):
    """Every call that all ranks make together. The numbers appear in shared memory and on the wire."""

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
        """The name of the public method, as it appears in messages."""
        return self.name.lower()


class BackendKind(StrEnum):
    """The names that `COBRE_COMM_BACKEND` and `create_communicator` accept."""

    AUTO = "auto"
    MPI = "mpi"
    TCP = "tcp"
    SHM = "shm"
    LOCAL = "local"

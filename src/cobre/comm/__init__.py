"""Collectives over interchangeable backends, with one contract and bitwise equal results on all of them.

    from cobre.comm import create_communicator

    with create_communicator() as comm:    # mpi, tcp, shm or local, as the environment says
        total = np.zeros(1)
        comm.allreduce(np.array([comm.rank + 1.0]), total)

The contract is in `cobre.comm.communicator` (collectives) and `cobre.comm.shared_memory` (regions); read those first.
`cobre.comm.launch` starts ranks on this machine, `cobre.comm.testing` checks that a backend keeps the contract.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from cobre.comm.backends.base import Backend
from cobre.comm.communicator import Communicator
from cobre.comm.config import LocalConfig, MpiConfig, ShmConfig, TcpConfig
from cobre.comm.errors import (
    AbortedError,
    AllocationFailedError,
    BackendError,
    BackendNotAvailableError,
    CollectiveFailedError,
    CommError,
    CommunicatorBrokenError,
    CommunicatorBusyError,
    CommunicatorClosedError,
    ForkedCommunicatorError,
    InitializationFailedError,
    InvalidBackendError,
    InvalidBufferSizeError,
    InvalidCommunicatorError,
    InvalidRootError,
    MismatchedCallError,
    MissingConfigurationError,
    NotLeaderError,
    Peer,
    PeerLostError,
    PeerTimeoutError,
    RegionClosedError,
    SharedMemoryExhaustedError,
    TerminatedError,
    UnsupportedBufferError,
    UnsupportedReductionError,
)
from cobre.comm.factory import BackendConfig, RegisteredConfig, available_backends, create_communicator
from cobre.comm.flight_recorder import RecordedCall
from cobre.comm.shared_memory import SharedMemoryProvider, SharedRegion
from cobre.comm.types import BackendKind, Operation, ReduceOp

if TYPE_CHECKING:
    from cobre.comm.backends.local import LocalCommunicator
    from cobre.comm.backends.mpi.communicator import MpiCommunicator
    from cobre.comm.backends.shm import ShmCommunicator
    from cobre.comm.backends.tcp.communicator import TcpCommunicator
    from cobre.comm.shared_memory import HeapRegion

# A backend is imported on first use: a program does not pay for those that it does not use.
_LAZY = {
    "HeapRegion": "cobre.comm.shared_memory",
    "LocalCommunicator": "cobre.comm.backends.local",
    "MpiCommunicator": "cobre.comm.backends.mpi.communicator",
    "ShmCommunicator": "cobre.comm.backends.shm",
    "TcpCommunicator": "cobre.comm.backends.tcp.communicator",
}

__all__ = [
    "AbortedError",
    "AllocationFailedError",
    "Backend",
    "BackendConfig",
    "BackendError",
    "BackendKind",
    "BackendNotAvailableError",
    "CollectiveFailedError",
    "CommError",
    "Communicator",
    "CommunicatorBrokenError",
    "CommunicatorBusyError",
    "CommunicatorClosedError",
    "ForkedCommunicatorError",
    "HeapRegion",
    "InitializationFailedError",
    "InvalidBackendError",
    "InvalidBufferSizeError",
    "InvalidCommunicatorError",
    "InvalidRootError",
    "LocalCommunicator",
    "LocalConfig",
    "MismatchedCallError",
    "MissingConfigurationError",
    "MpiCommunicator",
    "MpiConfig",
    "NotLeaderError",
    "Operation",
    "Peer",
    "PeerLostError",
    "PeerTimeoutError",
    "RecordedCall",
    "ReduceOp",
    "RegionClosedError",
    "RegisteredConfig",
    "SharedMemoryExhaustedError",
    "SharedMemoryProvider",
    "SharedRegion",
    "ShmCommunicator",
    "ShmConfig",
    "TcpCommunicator",
    "TcpConfig",
    "TerminatedError",
    "UnsupportedBufferError",
    "UnsupportedReductionError",
    "available_backends",
    "create_communicator",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

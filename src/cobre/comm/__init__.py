"""Collectives over interchangeable backends, with one contract and the same bits on all of them.

Start reading at `cobre.comm.communicator`, which states the contract.
"""

from cobre.comm.backends.base import Backend
from cobre.comm.communicator import Communicator
from cobre.comm.config import BackendConfig, LocalConfig, MpiConfig, ShmConfig, TcpConfig
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
from cobre.comm.factory import available_backends, create_communicator
from cobre.comm.flight_recorder import RecordedCall
from cobre.comm.shared_memory import SharedMemoryProvider, SharedRegion
from cobre.comm.types import BackendKind, Operation, ReduceOp

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
    "InitializationFailedError",
    "InvalidBackendError",
    "InvalidBufferSizeError",
    "InvalidCommunicatorError",
    "InvalidRootError",
    "LocalConfig",
    "MismatchedCallError",
    "MissingConfigurationError",
    "MpiConfig",
    "NotLeaderError",
    "Operation",
    "Peer",
    "PeerLostError",
    "PeerTimeoutError",
    "RecordedCall",
    "ReduceOp",
    "RegionClosedError",
    "SharedMemoryExhaustedError",
    "SharedMemoryProvider",
    "SharedRegion",
    "ShmConfig",
    "TcpConfig",
    "TerminatedError",
    "UnsupportedBufferError",
    "UnsupportedReductionError",
    "available_backends",
    "create_communicator",
]

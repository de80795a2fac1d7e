"""Errors of the contract: pickling, families and messages."""

import pickle

import pytest

from cobre.comm import errors

EXAMPLES = [
    errors.CollectiveFailedError("barrier", 13, "no", 7),
    errors.PeerLostError("allreduce", 0, "gone", 3, [errors.Peer(1, "n07", 4412, "died")]),
    errors.PeerTimeoutError("allreduce", 0, "silent", 3),
    errors.MismatchedCallError("barrier", 0, "differs", 9),
    errors.AbortedError("barrier", 0, "stop", 9),
    errors.InvalidBufferSizeError("allreduce", 4, 5),
    errors.UnsupportedBufferError("allreduce", "this", "that"),
    errors.UnsupportedReductionError("allreduce", "this", "that"),
    errors.InvalidRootError(9, 4),
    errors.CommunicatorClosedError("closed"),
    errors.AllocationFailedError(10, "no memory"),
    errors.BackendNotAvailableError("mpi", "pip install"),
    errors.InvalidBackendError("foo", ["shm", "local"]),
    errors.InitializationFailedError("shm", "no"),
    errors.SharedMemoryExhaustedError("shm", 10, "no memory"),
    errors.MissingConfigurationError("shm", "COBRE_SHM_NAME", "is not set"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_five_classes_catch_every_failed_call():
    five = (
        errors.CollectiveFailedError,
        errors.InvalidBufferSizeError,
        errors.InvalidRootError,
        errors.InvalidCommunicatorError,
        errors.AllocationFailedError,
    )
    leaves = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.CommError)]
    assert len(leaves) > len(five)
    assert all(issubclass(kind, five) for kind in leaves if kind is not errors.CommError)


def test_message_names_rank_host_pid_operation_and_number():
    text = str(errors.PeerLostError("allreduce", 0, str(errors.Peer(3, "n07", 4412, "died")), 1432))
    assert text == "allreduce call #1432 failed: rank 3 (host n07, pid 4412) died"


def test_exhausted_shared_memory_belongs_to_both_families():
    error = errors.SharedMemoryExhaustedError("shm", 212 << 20, "need 212 MiB")
    assert isinstance(error, errors.BackendError)
    assert isinstance(error, errors.AllocationFailedError)
    assert error.requested_bytes == 212 << 20

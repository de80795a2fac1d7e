"""Errors of workers, as scripts receive them."""

import pytest

from cobre.comm import InitializationFailedError
from cobre.comm.launch import WorkerError
from cobre.io.findings import InvalidCaseError
from cobre.study.placement import raising_worker_errors


def test_case_error_of_worker_is_raised_itself():
    inner = InvalidCaseError("here", ())
    failed = WorkerError(1, 1, inner)
    with pytest.raises(InvalidCaseError) as caught, raising_worker_errors():
        raise failed
    assert (caught.value, caught.value.__cause__) == (inner, failed)


@pytest.mark.parametrize(
    "inner",
    [None, KeyError("a bug"), InitializationFailedError("shm", "no memory")],
    ids=lambda inner: type(inner).__name__,
)
def test_other_failures_raise_worker_error(inner):
    failed = WorkerError(1, -9, inner)
    with pytest.raises(WorkerError) as caught, raising_worker_errors():
        raise failed
    assert caught.value is failed

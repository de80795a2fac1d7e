"""Python and native code use the same numbers and names: they meet in shared memory, on the wire and in errors."""

import errno

import pytest

from cobre import _native
from cobre.comm import config
from cobre.comm.backends.shm import ERRORS
from cobre.comm.backends.tcp.wire.messages import FailureKind
from cobre.comm.types import Operation, ReduceOp


def test_operations_have_same_numbers_in_native_code():
    assert {operation.value: operation.title for operation in Operation} == dict(enumerate(_native.OPERATION_NAMES))


def test_reductions_have_same_numbers_in_native_code():
    assert {reduction.value: reduction.name for reduction in ReduceOp} == dict(enumerate(_native.REDUCTION_NAMES))


def test_failure_kinds_have_same_names_in_native_code():
    assert set(_native.FAILURE_NAMES) == {"none", *ERRORS}
    assert {kind.name.lower() for kind in FailureKind} == set(ERRORS)


def test_max_ranks_equals_native_limit():
    assert config.MAX_RANKS == _native.MAX_RANKS == 1024


def test_memory_beyond_the_limit_of_the_cgroups_is_not_allocated():
    with pytest.raises(OSError) as caught:
        _native.ShmSegment.create(2, memory_limit_bytes=4096)
    assert caught.value.errno == errno.ENOMEM
    assert _native.ShmSegment.create(2, memory_limit_bytes=1 << 30).inode

"""The native guard may accept only what `validation` accepts, and only `validation` raises errors (clause 3)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cobre._native import CallGuard
from cobre.comm import CommError, ReduceOp, validation

DTYPES = [
    "int8",
    "uint16",
    "int32",
    "float16",
    "float64",
    "longdouble",
    "complex64",
    "bool",
    ">f8",
    "S3",
    "M8[s]",
    "O",
]


@st.composite
def arrays(draw):
    array = np.zeros(draw(st.integers(0, 6)), draw(st.sampled_from(DTYPES)))
    if draw(st.booleans()):
        array = array[:: draw(st.sampled_from([1, 2, -1]))]
    if draw(st.integers(0, 5)) == 0:
        array.flags.writeable = False
    return array


def ignore(*_):
    """Do nothing, in place of a hook of the backend."""


def is_accepted(check, *arguments):
    try:
        check(*arguments)
    except CommError:
        return False
    return True


@given(arrays(), arrays(), st.sampled_from([*ReduceOp, 0, "SUM", None]), st.booleans())
def test_guard_accepts_only_valid_allreduce_calls(send, recv, op, same):
    recv = send if same else recv
    if CallGuard(0, 2, ReduceOp).allreduce(ignore, send, recv, op, ""):
        assert is_accepted(validation.check_allreduce, send, recv, op)


@given(arrays(), st.integers(-1, 3) | st.none() | st.just("0"))
def test_guard_accepts_only_valid_broadcast_calls(buffer, root):
    if CallGuard(0, 2, ReduceOp).broadcast(ignore, buffer, root, ""):
        assert is_accepted(validation.check_broadcast, buffer, root, 2)


integers = st.lists(st.integers(-1, 6), min_size=1, max_size=4)


@settings(max_examples=300)
@given(arrays(), arrays(), integers, integers | st.none(), st.integers(0, 2))
def test_guard_accepts_only_valid_allgatherv_calls(send, recv, counts, displs, rank):
    if CallGuard(rank, 3, ReduceOp).allgatherv(ignore, send, recv, counts, displs, ""):
        assert is_accepted(validation.check_allgatherv, send, recv, counts, displs, rank, 3)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "float64", "longdouble", "complex128"])
def test_common_calls_are_accepted_natively(dtype):
    guard = CallGuard(1, 3, ReduceOp)
    send, recv = np.zeros(2, dtype), np.zeros(7, dtype)
    for call in (
        lambda: guard.allgatherv(ignore, send, recv, [1, 2, 3], None, ""),
        lambda: guard.allgatherv(ignore, send, recv, (1, 2, 3), (0, 2, 4), ""),
        lambda: guard.allgatherv(ignore, recv[1:3], recv, [1, 2, 3], None, "in place"),
        lambda: guard.allreduce(ignore, send, send, ReduceOp.SUM, ""),
        lambda: guard.broadcast(ignore, recv, 2, ""),
        lambda: guard.barrier(ignore, ""),
    ):
        assert call()
    assert guard.sequence == 6


def test_rejected_calls_are_not_numbered():
    guard = CallGuard(0, 2, ReduceOp)
    array = np.zeros(4)
    assert not guard.allreduce(ignore, array, array[:2], ReduceOp.SUM, "")
    assert guard.sequence == 0
    assert guard.state == "open"


def test_ring_keeps_the_last_1024_calls():
    guard = CallGuard(0, 2, ReduceOp)
    for number in range(1500):
        assert guard.begin(1, number, f"call {number}")
        guard.end()
    recent = guard.recent()
    assert len(recent) == 1024
    assert recent[-1][0] == 1500
    assert recent[-1][3] == "call 1499"
    assert all(begin <= end for *_, begin, end in recent)

"""The ordered fold against NumPy, element by element (clause 8)."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cobre._native import fold
from cobre.comm import ReduceOp

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64", "longdouble"]
STEPS = {ReduceOp.SUM: np.add, ReduceOp.MIN: np.minimum, ReduceOp.MAX: np.maximum}


def fold_result(inputs, op):
    out = np.empty_like(inputs[0])
    fold(list(inputs), out, int(op))
    return out


def same_bits(one, other):
    return one.tobytes() == other.tobytes()


@pytest.mark.parametrize("op", list(ReduceOp))
@pytest.mark.parametrize("dtype", INTEGERS)
@given(data=st.data())
def test_integers_wrap(dtype, op, data):
    inputs = data.draw(hnp.arrays(dtype, (data.draw(st.integers(2, 5)), data.draw(st.integers(0, 20)))))
    with np.errstate(over="ignore"):
        assert same_bits(fold_result(inputs, op), functools.reduce(STEPS[op], inputs))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@given(data=st.data())
def test_sum_is_the_left_fold_in_the_arrays_precision(dtype, data):
    elements = hnp.from_dtype(np.dtype(dtype), allow_nan=False, allow_infinity=False)
    inputs = data.draw(hnp.arrays(dtype, (data.draw(st.integers(2, 5)), 7), elements=elements))
    with np.errstate(all="ignore"):
        expected = functools.reduce(np.add, inputs)
    result = fold_result(inputs, ReduceOp.SUM)
    finite = np.isfinite(expected)
    assert same_bits(result[finite], expected[finite])
    assert np.array_equal(result, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", ["longlong", "ulonglong"])
def test_long_long_is_folded_as_int64(dtype):
    """NumPy distinguishes long long from int64, although both have 64 bits."""
    inputs = np.arange(12, dtype=dtype).reshape(3, 4)
    assert fold_result(inputs, ReduceOp.SUM).tolist() == [12, 15, 18, 21]


@pytest.mark.parametrize(
    ("other", "error"),
    [
        (np.zeros(4, np.float32), ValueError),
        (np.zeros(5), ValueError),
        (np.zeros(8)[::2], TypeError),
        ([0.0], TypeError),
    ],
    ids=["dtype", "length", "not contiguous", "no array"],
)
def test_mismatched_shapes_or_dtypes_raise(other, error):
    with pytest.raises(error):
        fold([np.zeros(4), other], np.zeros(4), int(ReduceOp.SUM))


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_every_length_and_rank_count_equals_numpy(ranks, count):
    inputs = np.random.default_rng(count + ranks).standard_normal((ranks, count))
    assert same_bits(fold_result(inputs, ReduceOp.SUM), functools.reduce(np.add, inputs))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("order", [(0.0, -0.0), (-0.0, 0.0)])
def test_negative_zero_is_less_than_zero(dtype, order):
    pair = np.array(order, dtype).reshape(2, 1)
    assert np.signbit(fold_result(pair, ReduceOp.MIN)[0])
    assert not np.signbit(fold_result(pair, ReduceOp.MAX)[0])


@pytest.mark.parametrize("op", list(ReduceOp))
@pytest.mark.parametrize(
    "dtype,kind,canonical",
    [("float32", "u4", 0x7FC00000), ("float64", "u8", 0x7FF8000000000000), ("float16", "u2", 0x7E00)],
)
def test_every_nan_becomes_the_canonical_one(dtype, kind, canonical, op):
    bits = np.dtype(kind).itemsize * 8
    odd_nan = np.array([canonical | 1 | (1 << (bits - 1))], kind).view(dtype)  # negative, with a payload
    one = np.ones(1, dtype)
    for inputs in ([odd_nan, one], [one, odd_nan], [one, odd_nan, one], [odd_nan, odd_nan], [odd_nan]):
        assert fold_result(inputs, op).view(kind)[0] == canonical


def test_infinities_of_both_signs_give_the_canonical_nan():
    result = fold_result([np.array([np.inf]), np.array([-np.inf])], ReduceOp.SUM)
    assert result.view("u8")[0] == 0x7FF8000000000000


def test_one_rank_is_copied_bit_by_bit_except_for_nans():
    values = np.array([-0.0, 5e-324, np.inf, 1.5])
    assert same_bits(fold_result([values], ReduceOp.SUM), values)


def test_result_may_be_one_of_the_inputs():
    inputs = np.random.default_rng(1).standard_normal((3, 3000))
    expected = functools.reduce(np.add, inputs)
    for rank in range(3):
        work = inputs.copy()
        fold(list(work), work[rank], 0)
        assert same_bits(work[rank], expected)


@pytest.mark.parametrize("dtype,op", [("bool", 0), ("complex128", 1), ("S4", 0)])
def test_unsupported_dtypes_raise(dtype, op):
    array = np.zeros(3, dtype)
    with pytest.raises(ValueError, match="fold"):
        fold([array, array], array.copy(), op)

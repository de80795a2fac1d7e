"""The oracle itself, compared with plain Python and with the text of the contract."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.comm import validation
from cobre.comm.testing import inputs, oracle
from cobre.comm.testing.case import Depth, all_cases
from cobre.comm.testing.steps import expected_digest, program
from cobre.comm.types import ReduceOp


def bits(value):
    return struct.pack("<d", value)


def fold_by_hand(values, op):
    """Clause 8, element by element, without NumPy."""
    if any(map(math.isnan, values)):
        return math.nan
    result = values[0]
    for value in values[1:]:
        if op is ReduceOp.SUM:
            result = result + value
        else:
            ordered = sorted((result, value), key=lambda one: (one, math.copysign(1.0, one)))
            result = ordered[0] if op is ReduceOp.MIN else ordered[1]
    return math.nan if math.isnan(result) else result


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=2, max_size=6), st.sampled_from(list(ReduceOp))
)
def test_fold_matches_contract(values, op):
    result = oracle.fold([np.array([value]) for value in values], op)
    assert result.tobytes() == bits(fold_by_hand(values, op))


def test_fold_of_one_rank_keeps_bits_except_nan():
    odd_nan = np.array([0xFFF8000000000123], np.uint64).view(np.float64)
    assert oracle.fold([odd_nan], ReduceOp.SUM).view(np.uint64) == [0x7FF8000000000000]
    assert oracle.fold([np.array([-0.0])], ReduceOp.SUM).tobytes() == np.array([-0.0]).tobytes()


def test_fold_of_two_ranks_makes_nan_canonical():
    odd_nan = np.array([0xFFF8000000000123], np.uint64).view(np.float64)
    assert oracle.fold([odd_nan, np.ones(1)], ReduceOp.MIN).tobytes() == bits(math.nan)
    assert oracle.fold([np.array([math.inf]), np.array([-math.inf])], ReduceOp.SUM).tobytes() == bits(math.nan)


def test_fold_of_integers_wraps():
    assert oracle.fold([np.array([127], np.int8), np.array([1], np.int8)], ReduceOp.SUM).tolist() == [-128]


@pytest.mark.parametrize("dtype", inputs.FLOATING)
def test_special_values_hold_both_zeros_and_every_kind_of_nan(dtype):
    values = inputs.special_values(dtype, 0, 1)
    assert np.isnan(values).sum() >= 3
    assert np.signbit(values[values == 0]).tolist() == [False, True]
    assert np.isinf(values).sum() == 2


@pytest.mark.parametrize("pattern", oracle.PATTERNS)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("elements", [0, 1, 5, 64])
def test_layouts_are_legal(pattern, size, elements):
    layout = oracle.layout(pattern, elements, size)
    places = validation.check_counts_and_displs("allgatherv", layout.counts, layout.displs, size)
    assert [start for _, start in places] == list(layout.starts)
    assert all(start + count <= layout.room for count, start in places if count)


def test_layouts_have_the_pattern_of_their_name():
    assert oracle.layout("gaps", 4, 2).displs == (2, 9)
    assert list(oracle.layout("permuted", 4, 3).starts) != sorted(oracle.layout("permuted", 4, 3).starts)
    assert 0 in oracle.layout("one_empty", 4, 3).counts
    assert len(set(oracle.layout("ragged", 4, 3).counts)) > 1


@pytest.mark.parametrize("dtype", inputs.DTYPES)
def test_inputs_are_the_same_every_time_and_differ_between_ranks(dtype):
    one, again, other = (inputs.payload(dtype, 50, "x", rank) for rank in (0, 0, 1))
    assert inputs.fingerprint(one) == inputs.fingerprint(again) != inputs.fingerprint(other)


def test_fingerprint_sees_every_byte_of_structures():
    padded = np.zeros(3, inputs.DTYPES["padded"])
    for number in range(padded.nbytes):  # also those between the fields, which backends move like any other
        dirty = inputs.copied(padded)
        inputs.raw(dirty)[number] = 99
        assert inputs.fingerprint(padded) != inputs.fingerprint(dirty)


def test_fingerprint_ignores_the_padding_of_extended_floats():
    plain = np.zeros(3, np.longdouble)
    dirty = plain.copy()
    inputs.raw(dirty)[-1] = 99
    assert (inputs.fingerprint(plain) == inputs.fingerprint(dirty)) == (np.finfo(np.longdouble).nmant == 63)


def test_numbers_make_the_order_of_a_sum_visible():
    data = [inputs.numbers("float64", 1000, "order", rank) for rank in range(4)]
    assert (oracle.fold(data, ReduceOp.SUM) != oracle.fold(data[::-1], ReduceOp.SUM)).any()


def test_programs_are_reproducible_and_of_the_right_length():
    assert len(list(program(5))) == 200
    assert list(program(5)) == list(program(5))
    assert expected_digest(3, 5, 40) == expected_digest(3, 5, 40) != expected_digest(3, 6, 40)


def test_every_clause_of_the_contract_has_a_case():
    assert {clause for case in all_cases().values() for clause in case.clauses} == set(range(1, 9))


@pytest.mark.parametrize("size", [1, 2, 7])
def test_quick_grid_is_part_of_every_case_and_smaller_than_the_full_one(size):
    for case in all_cases().values():
        quick, full = case.grid(size, Depth.QUICK), case.grid(size, Depth.FULL)
        assert len(quick) <= len(full)

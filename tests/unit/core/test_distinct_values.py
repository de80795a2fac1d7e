"""Distinct values are ascending and keep their type."""

import numpy as np
import pytest

from cobre.core.arrays import distinct_values

DRAW = np.random.default_rng(11)


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(0, np.int32),
        np.zeros(0),
        DRAW.integers(-5, 40, 300).astype(np.int32),
        DRAW.integers(0, 10**15, 300),
        DRAW.integers(-128, 128, 300).astype(np.int8),
        DRAW.integers(0, 9, (20, 3)).astype(np.uint32),
        np.array([2**63 - 1, -(2**63)]),
        np.array([2**64 - 1, 2**64 - 2], np.uint64),
        DRAW.normal(size=300).round(1),
        np.array(["2020-02-01", "2019-05-05", "2020-02-01"], "datetime64[D]"),
    ],
    ids=lambda values: f"{values.dtype}-{values.shape}",
)
def test_distinct_values_equal_numpy_unique(values):
    actual, expected = distinct_values(values), np.unique(values)
    assert actual.dtype == expected.dtype
    assert actual.tolist() == expected.tolist()

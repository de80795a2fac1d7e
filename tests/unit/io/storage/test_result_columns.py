"""Columns of results as NumPy arrays."""

import numpy as np
import pyarrow as pa
import pytest

from cobre.io.storage.arrow_columns import numbers_of


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.float64()])
@pytest.mark.parametrize("chunks", [[], [[]], [[1, 2, 3]], [[1], [], [2, 3]]])
def test_numbers_of_any_chunks(kind, chunks):
    found = numbers_of(pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind))
    assert found.tolist() == [number for chunk in chunks for number in chunk]
    assert found.dtype == kind.to_pandas_dtype()


def test_part_of_an_array():
    assert numbers_of(pa.chunked_array([pa.array([1.0, 2.0, 3.0, 4.0]).slice(1, 2)])).tolist() == [2.0, 3.0]


def test_null_becomes_nan():
    found = numbers_of(pa.chunked_array([[1.5, None]]))
    assert found[0] == 1.5
    assert np.isnan(found[1])

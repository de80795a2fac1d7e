"""Two tables read side by side, for any row groups."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from cobre.io.output.results import RowsInMemory, StoredRows, paired_pieces


def stored(folder, name, values, rows_per_group):
    path = folder / f"{name}.parquet"
    parquet.write_table(pa.table({"x": values}), path, row_group_size=rows_per_group)
    return StoredRows(path)


@pytest.mark.parametrize(("one", "other"), [(3, 5), (1, 100), (7, 7)])
def test_pieces_cover_the_rows_that_both_have(tmp_path, one, other):
    first, second = np.arange(40), np.arange(33) * 10
    pairs = list(paired_pieces(stored(tmp_path, "a", first, one), stored(tmp_path, "b", second, other), "x"))
    assert [start for start, *_ in pairs] == list(np.cumsum([0, *(len(a) for _, a, _ in pairs)])[:-1])
    assert [value for _, a, _ in pairs for value in a.to_pylist()] == first[:33].tolist()
    assert [value for _, _, b in pairs for value in b.to_pylist()] == second.tolist()
    assert max(len(a) for _, a, _ in pairs) <= min(one, other)


@given(st.integers(0, 5), st.integers(0, 5))
def test_tables_in_memory_may_be_empty(first, second):
    tables = [RowsInMemory(pa.table({"x": np.arange(count)})) for count in (first, second)]
    assert sum(len(a) for _, a, _ in paired_pieces(*tables, "x")) == min(first, second)

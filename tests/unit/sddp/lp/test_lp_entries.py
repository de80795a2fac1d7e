"""Entries of the builder, compared with NumPy's own broadcasting."""

import numpy as np
import pytest

from cobre.sddp.lp.lp_builder import ABSENT, LpBuilder

SHAPES = [
    ((3, 4), (4,), ()),
    ((3, 4), (3, 1), (3, 4)),
    ((3, 1), (4,), (3, 1)),
    ((5,), (), (5,)),
    ((), (), ()),
    ((0,), (), (0,)),
    ((2, 0), (2, 1), ()),
]


def plain_entries(rows, columns, values):
    """Return coefficients by (row, column), added one after the other."""
    by_key = {}
    for row, column, value in np.broadcast(rows, columns, values):
        if ABSENT not in (row, column) and value != 0.0:
            key = int(row), int(column)
            by_key[key] = by_key.get(key, 0.0) + float(value)
    return dict(sorted(by_key.items()))


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_entries_are_broadcast_and_absent_ones_dropped(shapes, seed):
    random = np.random.default_rng(seed)
    lp = LpBuilder()
    lp.add_rows("row", (6,), -1.0, np.arange(6.0))
    lp.add_columns("column", (5,), 0.0, np.inf, 1.0)
    rows = random.integers(ABSENT, 6, shapes[0])
    columns = random.integers(ABSENT, 5, shapes[1])
    values = random.normal(size=shapes[2]) * random.integers(0, 2, shapes[2])
    lp.add_entries(rows, columns, values)
    start, index, value = lp.matrix()
    row = np.repeat(np.arange(6), np.diff(start))
    by_key = dict(zip(zip(row.tolist(), index.tolist(), strict=True), value.tolist(), strict=True))
    assert by_key == plain_entries(rows, columns, values)


def test_bounds_are_broadcast_and_absent_rows_and_columns_left_out():
    lp = LpBuilder()
    exists = np.array([True, False, True])
    rows = lp.add_rows("row", (2, 3), np.array([[1.0], [2.0]]), [7.0, 8.0, 9.0], exists)
    columns = lp.add_columns("column", [3], 0.0, np.inf, [1.0, 2.0, 3.0], exists)
    assert rows.tolist() == [[0, ABSENT, 1], [2, ABSENT, 3]]
    assert columns.tolist() == [0, ABSENT, 1]
    assert [part.tolist() for part in lp.rows()] == [[1.0, 1.0, 2.0, 2.0], [7.0, 9.0, 7.0, 9.0]]
    assert [part.tolist() for part in lp.columns()] == [[0.0, 0.0], [np.inf, np.inf], [1.0, 3.0]]


def test_mismatched_entries_raise():
    with pytest.raises(ValueError, match="broadcast"):
        LpBuilder().add_entries(np.arange(3), np.arange(2), 1.0)

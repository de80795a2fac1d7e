"""Rows are placed in the right cells for any size of row groups, and if scenarios differ."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from cobre.io.output.results import StoredRows
from cobre.report.entity_rows import (
    EntityRows,
    TableColumns,
    last_block,
    mean_over_blocks,
    row_pattern,
    sum_over_blocks,
)


def table(scenarios=(0, 1, 2, 5), stages=(3, 1), entities=(4, 9, 7), blocks=(0, 1)):
    """Return a table ordered by scenario, stage, entity and block; stages are not ascending."""
    keys = [(s, t, e, b) for s in scenarios for t in stages for e in sorted(entities) for b in blocks]
    names = ("scenario_id", "stage_id", "hydro_id", "block_id")
    columns = {name: np.array([key[place] for key in keys], np.int32) for place, name in enumerate(names)}
    return columns | {"value": np.arange(len(keys), dtype=np.float64)}


def drop_rows(columns, rows):
    return {name: np.delete(values, rows) for name, values in columns.items()}


@pytest.mark.parametrize("rows_per_group", [1, 5, 12, 13, 1000])
def test_row_groups_of_any_size_give_same_grid(tmp_path, rows_per_group):
    columns = table()
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=rows_per_group)
    found = EntityRows(TableColumns(StoredRows(tmp_path / "t.parquet")), "hydro_id")
    assert (found.scenarios, found.stages, found.entities, found.blocks) == ((0, 1, 2, 5), (3, 1), (4, 7, 9), (0, 1))
    np.testing.assert_array_equal(found.grid("value"), columns["value"].reshape(4, 2, 3, 2))
    np.testing.assert_array_equal(found.total("value"), columns["value"].reshape(4, 2, 3, 2).sum(axis=3))


def test_entity_missing_in_some_stages_is_nan():
    columns = table()
    rows = np.flatnonzero((columns["stage_id"] == 3) & (columns["hydro_id"] == 7))
    expected = columns["value"].reshape(4, 2, 3, 2).copy()
    expected[:, 0, 1] = np.nan
    np.testing.assert_array_equal(EntityRows(drop_rows(columns, rows), "hydro_id").grid("value"), expected)


def test_scenarios_with_different_rows_are_read_at_once():
    columns = table()
    rows = np.flatnonzero((columns["scenario_id"] == 2) & (columns["hydro_id"] == 7))
    expected = columns["value"].reshape(4, 2, 3, 2).copy()
    expected[2, :, 1] = np.nan
    np.testing.assert_array_equal(EntityRows(drop_rows(columns, rows), "hydro_id").grid("value"), expected)


def test_row_pattern_is_none_for_differing_scenarios():
    keys = [np.array([0, 0, 1, 1]), np.array([5, 6, 5, 6])]
    assert row_pattern([keys]).scenarios == (0, 1)
    assert row_pattern([[key[:1] for key in keys], [key[1:] for key in keys]]).rows == 2
    assert row_pattern([[np.array([0, 0]), np.array([5, 6])]]).scenarios == (0,)
    assert row_pattern([[np.array([1, 1, 0, 0]), keys[1]]]) is None, "descending ids"
    assert row_pattern([[keys[0], np.array([5, 6, 6, 5])]]) is None, "different order"
    assert row_pattern([[np.array([0, 0, 1]), np.array([5, 6, 5])]]) is None, "incomplete scenario"
    assert row_pattern([]) is None


def test_blocks_are_reduced_by_sum_mean_or_last():
    # A stage without the third block, and an entity without rows.
    grid = np.array([[[[1.0, 3.0, np.nan], [np.nan, np.nan, np.nan]]]])
    hours = np.array([[1.0, 2.0, 0.0]])
    np.testing.assert_array_equal(sum_over_blocks(grid), [[[4.0, 0.0]]])
    np.testing.assert_array_equal(last_block(grid), [[[3.0, np.nan]]])
    np.testing.assert_allclose(mean_over_blocks(grid, hours), [[[7.0 / 3.0, np.nan]]])

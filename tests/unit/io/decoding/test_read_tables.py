"""Parquet tables: types, nulls, compressions, order of rows."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from cobre.core.case import ABSENT_ID
from cobre.io.decoding.parquet_tables import Column, TableFormat, read_table
from cobre.io.findings import Findings, Layer
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, PRODUCTION_TABLES, SCENARIO_TABLES

ALL_TABLES = [*SCENARIO_TABLES.values(), *OVERRIDE_TABLES.values(), *PRODUCTION_TABLES.values()]
TYPES = {"id": pa.int32(), "index": pa.uint32(), "number": pa.float64(), "date": pa.date32()}
WRONG_TYPES = {"id": pa.int64(), "index": pa.int32(), "number": pa.float32(), "date": pa.timestamp("ms")}
WORDS = {"id": "int32", "index": "uint32", "number": "float64", "date": "date32"}
BOUNDS = OVERRIDE_TABLES["thermal_bounds"]


def by_file(table):
    return table.file.rsplit("/", 1)[1].removesuffix(".parquet")


def full_table(table, rows=3):
    """Return a table with all columns of a format, with values."""
    return pa.table({column.name: pa.array(range(rows), TYPES[column.kind]) for column in table.columns})


def write(folder, table, content, **options):
    path = folder / table.file
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(content, path, **options)


def read(folder, table):
    problems = Findings()
    return read_table(folder, table, problems), problems


@pytest.mark.parametrize("table", ALL_TABLES, ids=by_file)
def test_complete_table_is_read(tmp_path, table):
    write(tmp_path, table, full_table(table))
    columns, problems = read(tmp_path, table)
    assert not list(problems)
    assert list(columns) == [column.name for column in table.columns]
    for column in table.columns:
        expected = {"id": "int32", "index": "int64", "number": "float64", "date": "datetime64[D]"}[column.kind]
        assert columns[column.name].dtype == expected
        assert columns[column.name].size == 3


def test_public_and_private_arrow_readers_agree(tmp_path, monkeypatch):
    write(tmp_path, BOUNDS, full_table(BOUNDS))
    expected, _ = read(tmp_path, BOUNDS)
    monkeypatch.setitem(sys.modules, "pyarrow._parquet", None)
    columns, problems = read(tmp_path, BOUNDS)
    assert not list(problems)
    assert {name: values.tolist() for name, values in columns.items()} == {
        name: values.tolist() for name, values in expected.items()
    }


@pytest.mark.parametrize("table", ALL_TABLES, ids=by_file)
def test_empty_table_is_read(tmp_path, table):
    write(tmp_path, table, full_table(table, rows=0))
    columns, problems = read(tmp_path, table)
    assert not list(problems)
    assert all(values.size == 0 for values in columns.values())


@pytest.mark.parametrize("table", ALL_TABLES, ids=by_file)
def test_optional_columns_may_be_missing(tmp_path, table):
    required = [column.name for column in table.columns if column.is_required]
    write(tmp_path, table, full_table(table).select(required))
    columns, problems = read(tmp_path, table)
    assert not list(problems)
    for column in table.columns:
        if not column.is_required:
            values = columns[column.name]
            assert np.isnan(values).all() if column.kind == "number" else (values == ABSENT_ID).all()


@pytest.mark.parametrize("table", ALL_TABLES, ids=by_file)
def test_missing_required_column_is_reported(tmp_path, table):
    required = [column for column in table.columns if column.is_required]
    write(tmp_path, table, pa.table({"note": ["a"]}))
    columns, problems = read(tmp_path, table)
    assert columns is None
    assert [problem.field for problem in problems.errors] == [column.name for column in required]
    assert all(problem.layer is Layer.SCHEMA for problem in problems.errors)


@pytest.mark.parametrize("table", ALL_TABLES, ids=by_file)
def test_wrong_column_type_names_the_expected_one(tmp_path, table):
    for position, column in enumerate(table.columns):
        content = full_table(table).set_column(position, column.name, pa.array([None] * 3, WRONG_TYPES[column.kind]))
        write(tmp_path, table, content)
        columns, problems = read(tmp_path, table)
        assert columns is None
        assert [problem.field for problem in problems.errors] == [column.name]
        assert WORDS[column.kind] in problems.errors[0].advice


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
def test_every_compression_is_read(tmp_path, compression):
    write(tmp_path, BOUNDS, full_table(BOUNDS), compression=compression)
    columns, problems = read(tmp_path, BOUNDS)
    assert not list(problems)
    assert columns["cost_per_mwh"].tolist() == [0.0, 1.0, 2.0]


def test_columns_may_be_declared_not_null(tmp_path):
    fields = [pa.field(column.name, TYPES[column.kind], nullable=False) for column in BOUNDS.columns]
    write(tmp_path, BOUNDS, full_table(BOUNDS).cast(pa.schema(fields)))
    assert not list(read(tmp_path, BOUNDS)[1])


def test_missing_optional_table_returns_none_without_finding(tmp_path):
    columns, problems = read(tmp_path, BOUNDS)
    assert columns is None
    assert not list(problems)


def test_other_columns_are_a_warning(tmp_path):
    write(tmp_path, BOUNDS, full_table(BOUNDS).append_column("comment", pa.array(["a", "b", "c"])))
    columns, problems = read(tmp_path, BOUNDS)
    assert "comment" not in columns
    assert [problem.is_warning for problem in problems] == [True]
    assert "`comment`" in problems.warnings[0].message


def test_nulls_of_overrides_are_nan_and_absent_ids(tmp_path):
    content = pa.table(
        {
            "thermal_id": pa.array([1], pa.int32()),
            "stage_id": pa.array([0], pa.int32()),
            "block_id": pa.array([None], pa.int32()),
            "max_generation_mw": pa.array([None], pa.float64()),
        }
    )
    write(tmp_path, BOUNDS, content)
    columns, _ = read(tmp_path, BOUNDS)
    assert columns["block_id"].tolist() == [ABSENT_ID]
    assert np.isnan(columns["max_generation_mw"]).all()


def test_nulls_of_required_values_are_reported_by_row(tmp_path):
    table = SCENARIO_TABLES["load_seasonal_stats"]
    content = full_table(table, rows=9).set_column(2, "mean_mw", pa.array([1.0, None, 2.0] + [None] * 6, pa.float64()))
    write(tmp_path, table, content)
    columns, problems = read(tmp_path, table)
    assert columns is None
    assert problems.errors[0].entity == "row 1, 3, 4, 5, 6 and 2 more"
    assert problems.errors[0].field == "mean_mw"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_infinite_numbers_are_reported(tmp_path, value):
    content = full_table(BOUNDS).set_column(
        5, "cost_per_mwh", pa.array([1.0, value, 2.0], pa.float64(), from_pandas=False)
    )
    write(tmp_path, BOUNDS, content)
    columns, problems = read(tmp_path, BOUNDS)
    assert columns is None
    assert "row 1" in problems.errors[0].entity
    assert "null" in problems.errors[0].advice


def test_several_row_groups_are_one_table(tmp_path):
    write(tmp_path, BOUNDS, full_table(BOUNDS, rows=50), row_group_size=7)
    assert read(tmp_path, BOUNDS)[0]["stage_id"].tolist() == list(range(50))


def test_negative_stages_differ_from_absent_ones(tmp_path):
    table = SCENARIO_TABLES["inflow_seasonal_stats"]
    content = full_table(table).set_column(1, "stage_id", pa.array([-1, 0, 1], pa.int32()))
    write(tmp_path, table, content)
    assert read(tmp_path, table)[0]["stage_id"].tolist() == [-1, 0, 1]


PAIRS = TableFormat("pairs.parquet", (Column("a", "id"), Column("b", "id"), Column("value", "number")), ("a", "b"))


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=st.sets(st.tuples(st.integers(-3, 3), st.integers(-3, 3))), data=st.data())
def test_rows_are_sorted_by_their_keys(tmp_path, keys, data):
    shuffled = data.draw(st.permutations(sorted(keys)))
    columns = {"a": [key[0] for key in shuffled], "b": [key[1] for key in shuffled]}
    table = pa.table({name: pa.array(values, pa.int32()) for name, values in columns.items()})
    values = pa.array([10.0 * key[0] + key[1] for key in shuffled], pa.float64())
    write(tmp_path, PAIRS, table.append_column("value", values))
    read_back, problems = read(tmp_path, PAIRS)
    assert not list(problems)
    assert list(zip(read_back["a"].tolist(), read_back["b"].tolist(), strict=True)) == sorted(keys)
    assert read_back["value"].tolist() == [10.0 * key[0] + key[1] for key in sorted(keys)]

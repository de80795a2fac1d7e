"""Flat tables read without Arrow: the same numbers as Arrow's, and everything unusual is left to Arrow."""

import io
import random
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from cobre._native import ParquetTable
from cobre.io.decoding import parquet_tables
from cobre.io.decoding.parquet_tables import column_names, read_table
from cobre.io.findings.finding import Findings
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, SCENARIO_TABLES

DTYPES = {"double": np.float64, "int32": np.int32, "uint32": np.uint32, "date32[day]": np.int32}
# Of every type, with and without nulls.
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("block", pa.int32()),
        pa.field("index", pa.uint32()),
        pa.field("value", pa.float64()),
        pa.field("start", pa.date32()),
    ]
)
CODECS = ("none", "snappy", "zstd")


def table_of(rows, seed):
    draw = np.random.default_rng(seed)
    share = draw.choice([0.0, 0.1, 0.9, 1.0])

    def column(field):
        is_null = draw.random(rows) < share if field.nullable else None
        high = int(draw.choice([1, 50, 100_000]))
        numbers = draw.integers(0, high, rows).astype(DTYPES[str(field.type)])
        plain = pa.array(numbers, mask=is_null)
        return plain.cast(pa.date32()) if field.type == pa.date32() else plain

    return pa.table([column(field) for field in SCHEMA], SCHEMA)


def written(table, **options):
    stream = io.BytesIO()
    parquet.write_table(table, stream, **options)
    return stream.getvalue()


def columns_of(content):
    """By name: type, values and nulls; None where anything is left to Arrow."""
    plain = ParquetTable.open(content)
    if plain is None:
        return None
    found = {}
    for number, (name, kind) in enumerate(plain.columns):
        values, is_null = np.empty(plain.num_rows, DTYPES[kind]), np.empty(plain.num_rows, np.bool_)
        if not plain.read(number, values.view(np.uint8), is_null):
            return None
        found[name] = kind, values, is_null
    return found


@given(
    rows=st.integers(0, 400),
    seed=st.integers(0, 2**32),
    codec=st.sampled_from(CODECS),
    has_dictionary=st.booleans(),
    rows_of_group=st.sampled_from([50, 10_000]),
    page_bytes=st.sampled_from([64, 1000, 1 << 20]),
)
@settings(max_examples=60, deadline=None)
def test_values_and_nulls_are_those_of_arrow(rows, seed, codec, has_dictionary, rows_of_group, page_bytes):
    table = table_of(rows, seed)
    options = {"use_dictionary": has_dictionary, "row_group_size": rows_of_group, "data_page_size": page_bytes}
    found = columns_of(written(table, compression=codec, **options))
    assert list(found) == table.column_names
    for name, (kind, values, is_null) in found.items():
        arrow = table.column(name).combine_chunks()
        assert str(arrow.type) == kind
        numbers = arrow.cast(pa.int32()) if kind == "date32[day]" else arrow
        assert is_null.tolist() == arrow.is_null().to_pylist()
        assert values.tolist() == numbers.fill_null(0).to_pylist()


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "gzip"},
        {"compression": "brotli"},
        {"data_page_version": "2.0"},
        {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"},
        {"use_dictionary": False, "column_encoding": {"id": "DELTA_BINARY_PACKED"}},
    ],
    ids=str,
)
def test_other_forms_of_pages_are_left_to_arrow(options):
    table = table_of(20, 1)
    assert columns_of(written(table)) is not None
    assert columns_of(written(table, **options)) is None


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1], pa.int64()),
        pa.array([1], pa.int16()),
        pa.array([1.0], pa.float32()),
        pa.array(["text"]),
        pa.array([[1]], pa.list_(pa.int32())),
        pa.array([{"a": 1}], pa.struct([("a", pa.int32())])),
        pa.array([1], pa.time32("ms")),
        pa.array([True]),
    ],
    ids=lambda column: str(column.type),
)
def test_other_types_are_left_to_arrow(column):
    assert ParquetTable.open(written(pa.table({"column": column}))) is None


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_files_end_in_numbers_or_are_left_to_arrow(codec):
    """Whatever was changed: no crash, no endless loop, and as many values as the footer says."""
    choose = random.Random(7)
    whole = written(table_of(300, 3), compression=codec, data_page_size=500)
    num_refused = 0
    for _ in range(1000):
        content = bytearray(whole)
        for _ in range(choose.randint(1, 4)):
            start = choose.choice([0, max(0, len(content) - 900)])  # the footer is longer than most pages
            content[choose.randrange(start, len(content))] = choose.randrange(256)
        cut = choose.randrange(len(content)) if choose.random() < 0.2 else len(content)
        found = columns_of(bytes(content[:cut]))
        num_refused += found is None
    assert num_refused > 300


def test_wrong_arguments_are_errors():
    plain = ParquetTable.open(written(table_of(3, 1)))
    with pytest.raises(IndexError):
        plain.read(5, np.empty(12, np.uint8), np.empty(3, np.bool_))
    with pytest.raises(ValueError, match="one place for each row"):
        plain.read(0, np.empty(8, np.uint8), np.empty(3, np.bool_))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + b"\xff" * 4 + b"PAR1", b"x" * 100])
def test_what_is_no_table_is_left_to_arrow(content):
    assert ParquetTable.open(content) is None


def test_rows_out_of_order_are_sorted_by_keys(tmp_path):
    table = OVERRIDE_TABLES["thermal_bounds"]
    path = tmp_path / table.file
    path.parent.mkdir(parents=True)
    ids, stages = pa.array([2, 1, 1], pa.int32()), pa.array([0, 1, 0], pa.int32())
    rest = [column for column in table.columns if column.name not in ("thermal_id", "stage_id")]
    kinds = {"id": pa.int32(), "index": pa.uint32(), "number": pa.float64(), "date": pa.date32()}
    content = {"thermal_id": ids, "stage_id": stages}
    content |= {column.name: pa.array([10, 11, 12], kinds[column.kind]) for column in rest}
    parquet.write_table(pa.table(content), path)
    found = read_table(tmp_path, table, Findings())
    assert list(zip(found["thermal_id"].tolist(), found["stage_id"].tolist(), strict=True)) == [(1, 0), (1, 1), (2, 0)]
    assert found["max_generation_mw"].tolist() == [12.0, 11.0, 10.0]


def test_both_ways_give_the_same_table(tmp_path, monkeypatch):
    table = SCENARIO_TABLES["inflow_history"]
    path = tmp_path / table.file
    path.parent.mkdir(parents=True)
    kinds = {"id": pa.int32(), "index": pa.uint32(), "number": pa.float64(), "date": pa.date32()}
    draw = np.random.default_rng(5)
    content = {column.name: pa.array(draw.integers(0, 9, 50)).cast(pa.int32()) for column in table.columns}
    content = {column.name: content[column.name].cast(kinds[column.kind]) for column in table.columns}
    parquet.write_table(pa.table(content), path, compression="snappy")
    plain = read_table(tmp_path, table, Findings())
    monkeypatch.setattr(parquet_tables, "_read_plain", lambda *_: None)
    by_arrow = read_table(tmp_path, table, Findings())
    for name, values in plain.items():
        assert values.dtype == by_arrow[name].dtype
        assert values.tobytes() == by_arrow[name].tobytes()


def test_names_of_columns_of_any_table(tmp_path):
    plain, other, damaged = (tmp_path / name for name in ("plain.parquet", "other.parquet", "damaged.parquet"))
    parquet.write_table(pa.table({"a": [1.0]}), plain)
    parquet.write_table(pa.table({"a": ["text"], "b": [1]}), other)
    damaged.write_bytes(b"PAR1")
    assert column_names(plain) == ("a",)
    assert column_names(other) == ("a", "b")
    assert column_names(damaged) == ()
    assert column_names(tmp_path / "missing.parquet") == ()


def test_ordinary_tables_do_without_arrow(tmp_path):
    table = OVERRIDE_TABLES["thermal_bounds"]
    path = tmp_path / table.file
    path.parent.mkdir(parents=True)
    kinds = {"id": pa.int32(), "index": pa.uint32(), "number": pa.float64(), "date": pa.date32()}
    columns = {column.name: pa.array([1], kinds[column.kind]) for column in table.columns}
    parquet.write_table(pa.table(columns), path, compression="snappy")
    code = (
        "import sys, pathlib; from cobre.io.decoding.parquet_tables import read_table; "
        "from cobre.io.findings.finding import Findings; "
        "from cobre.io.input_files.table_formats import OVERRIDE_TABLES; "
        "found = read_table(pathlib.Path(sys.argv[1]), OVERRIDE_TABLES['thermal_bounds'], Findings()); "
        "print(len(found['thermal_id']), 'pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]

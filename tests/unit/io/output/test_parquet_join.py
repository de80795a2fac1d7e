"""Parquet files joined without decoding: the result has the rows of its parts."""

import io

import pyarrow as pa
import pytest
from pyarrow import parquet

from cobre.io.output.parquet_join import ParquetJoinError, join_parquet

SCHEMA = pa.schema([("id", pa.int32()), ("cost", pa.float64()), ("name", pa.string()), ("is_on", pa.bool_())])


def rows(first, count):
    numbers = range(first, first + count)
    columns = [
        [number if number % 3 else None for number in numbers],
        [number / 7 for number in numbers],
        [f"plant {number % 5}" for number in numbers],
        [number % 2 == 0 for number in numbers],
    ]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def write(folder, sizes, row_group_size=10, **options):
    paths, first = [], 0
    for number, count in enumerate(sizes):
        paths.append(folder / f"{number}.parquet")
        parquet.write_table(rows(first, count), paths[-1], row_group_size=row_group_size, **options)
        first += count
    return paths


def joined(paths):
    stream = io.BytesIO()
    join_parquet(stream, paths)
    return stream.getvalue()


@pytest.mark.parametrize("sizes", [[5], [5, 7], [200, 3, 0, 450], [10] * 20])
@pytest.mark.parametrize(
    "options",
    [{}, {"compression": "zstd"}, {"use_dictionary": False}, {"write_page_index": True}, {"write_statistics": False}],
    ids=str,
)
def test_joined_rows_keep_their_order(tmp_path, sizes, options):
    content = joined(write(tmp_path, sizes, **options))
    assert parquet.read_table(io.BytesIO(content)).equals(rows(0, sum(sizes)))


def test_join_keeps_row_groups(tmp_path):
    paths = write(tmp_path, [25, 31])
    file = parquet.ParquetFile(io.BytesIO(joined(paths)))
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [10, 10, 5, 10, 10, 10, 1]
    assert groups[3].column(1).statistics.min == 25 / 7
    assert file.read_row_group(6).equals(rows(55, 1))


def test_joined_file_can_be_joined_with_others(tmp_path):
    first, second, third = write(tmp_path, [4, 5, 6])
    (tmp_path / "joined").write_bytes(joined([first, second]))
    assert parquet.read_table(io.BytesIO(joined([tmp_path / "joined", third]))).equals(rows(0, 15))


def test_join_of_different_columns_raises(tmp_path):
    paths = write(tmp_path, [3])
    parquet.write_table(pa.table({"id": [1]}), tmp_path / "other.parquet")
    with pytest.raises(ParquetJoinError, match=r"other.parquet has other columns than .*0.parquet"):
        joined([*paths, tmp_path / "other.parquet"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:7], "truncated"),
        (lambda content: content[:-1], "not a complete Parquet file"),
        (lambda content: content[:-8] + b"\xff\xff\xff\x7fPAR1", "not a complete Parquet file"),
        (lambda content: content[:-8] + b"\x05\0\0\0PAR1", "footer that this program does not know"),
    ],
)
def test_error_names_damaged_file(tmp_path, damage, message):
    (path,) = write(tmp_path, [3])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ParquetJoinError, match=f"{path.name}.*{message}"):
        joined([path])

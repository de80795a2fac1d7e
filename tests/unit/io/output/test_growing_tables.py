"""Tables written by row groups: segments survive a crash, and results are complete or absent."""

import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import parquet

from cobre.io.output import read_results
from cobre.io.output.growing_tables import RECORD, ROWS_PER_GROUP, UNFINISHED, GrowingTables


def rows(first, count=3):
    return pa.table({"scenario_id": pa.array(range(first, first + count), pa.int32()), "cost": [0.5] * count})


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def grown(folder, segments, identity="this", resume=False):
    tables = GrowingTables(folder, identity, resume=resume)
    for number in range(len(tables.segments), segments):
        tables.append("costs", rows(3 * number))
        tables.append("violations/generic", rows(3 * number))
        tables.close_segment({"scenarios": 3 * number + 3})
    return tables


@pytest.mark.parametrize("segments", [1, 3])
def test_segments_are_merged_into_tables(tmp_path, segments):
    grown(tmp_path, segments).publish({"facts": rows(7, 1)}, {"digest": "abc"})
    found = read_results(tmp_path)
    assert sorted(found) == ["costs", "facts", "violations/generic"]
    assert found["costs"].equals(rows(0, 3 * segments))
    assert found["violations/generic"]["scenario_id"].to_pylist() == list(range(3 * segments))
    assert files(tmp_path) == ["costs.parquet", "facts.parquet", "manifest.json", "violations/generic.parquet"]


def test_rows_wait_for_a_row_group(tmp_path):
    tables = GrowingTables(tmp_path, "", resume=False)
    for _ in range(5):
        tables.append("costs", rows(0, ROWS_PER_GROUP // 2))
    tables.close_segment({})
    tables.publish({}, {})
    metadata = parquet.ParquetFile(tmp_path / "costs.parquet").metadata
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert groups == [ROWS_PER_GROUP, ROWS_PER_GROUP, ROWS_PER_GROUP // 2]


def test_resume_keeps_closed_segments_and_removes_open_ones(tmp_path):
    grown(tmp_path, 2)
    (tmp_path / UNFINISHED / "0002").mkdir()
    (tmp_path / UNFINISHED / "0002" / "costs.parquet").write_bytes(b"PAR1")
    again = GrowingTables(tmp_path, "this", resume=True)
    assert [segment.record for segment in again.segments] == [{"scenarios": 3}, {"scenarios": 6}]
    assert not (tmp_path / UNFINISHED / "0002").exists()
    grown(tmp_path, 4, resume=True).publish({}, {})
    assert read_results(tmp_path)["costs"].equals(rows(0, 12))


@pytest.mark.parametrize(("identity", "resume"), [("other", True), ("this", False)])
def test_segments_of_another_identity_are_dropped(tmp_path, identity, resume):
    grown(tmp_path, 2)
    assert GrowingTables(tmp_path, identity, resume=resume).segments == []
    assert files(tmp_path) == []


@pytest.mark.parametrize("damage", [b"", b"{", b"[]"])
def test_segment_with_damaged_record_is_ignored(tmp_path, damage):
    grown(tmp_path, 3)
    (tmp_path / UNFINISHED / "0001" / RECORD).write_bytes(damage)
    assert len(GrowingTables(tmp_path, "this", resume=True).segments) == 1


def test_closed_segments_survive_a_failure(tmp_path):
    tables = grown(tmp_path, 1)
    tables.append("costs", rows(3))
    (tmp_path / UNFINISHED / "rows-of-another-rank").touch()
    tables.abandon()
    assert files(tmp_path / UNFINISHED) == ["0000/costs.parquet", "0000/record.json", "0000/violations/generic.parquet"]


def test_no_files_after_a_failure_without_closed_segments(tmp_path):
    tables = GrowingTables(tmp_path, "this", resume=False)
    tables.append("costs", rows(0))
    tables.abandon()
    assert list(tmp_path.iterdir()) == []


def test_columns_are_read_across_row_groups(tmp_path):
    tables = GrowingTables(tmp_path, "", resume=False)
    for first in range(0, 4 * ROWS_PER_GROUP, ROWS_PER_GROUP):
        tables.append("costs", rows(first, ROWS_PER_GROUP))
    tables.close_segment({})
    stored = tables.segments[0].rows("costs")
    start, stop = ROWS_PER_GROUP - 2, 2 * ROWS_PER_GROUP + 2
    assert stored.schema.names == ["scenario_id", "cost"]
    assert stored.column("scenario_id", start, stop).to_pylist() == list(range(start, stop))
    assert stored.column("scenario_id", 0, ROWS_PER_GROUP).to_pylist() == list(range(ROWS_PER_GROUP))


def test_nearly_full_row_groups_are_written(tmp_path):
    tables = GrowingTables(tmp_path, "", resume=False)
    for _ in range(2):
        tables.append("costs", rows(0, ROWS_PER_GROUP - 1))
    tables.close_segment({})
    tables.publish({}, {})
    assert parquet.ParquetFile(tmp_path / "costs.parquet").metadata.num_row_groups == 2


MERGE = """
import sys
from pathlib import Path
import numpy as np
import pyarrow as pa
from cobre.io.output.growing_tables import ROWS_PER_GROUP, GrowingTables

tables = GrowingTables(Path(sys.argv[1]), "", resume=False)
for segment in range(6):
    for _ in range(4):
        numbers = np.random.default_rng(segment).random(ROWS_PER_GROUP)
        tables.append("hydros", pa.table({f"column_{n}": numbers + n for n in range(8)}))
    tables.close_segment({})
written = pa.default_memory_pool().max_memory()
tables.publish({}, {})
print((pa.default_memory_pool().max_memory() - written) / (8 * 8 * ROWS_PER_GROUP))
"""


def test_segments_are_merged_with_one_row_group_in_memory(tmp_path):
    found = subprocess.run([sys.executable, "-c", MERGE, tmp_path], capture_output=True, text=True, check=True)
    assert float(found.stdout) < 4.5  # beyond what writing took: the rows that are read, and buffers to decode them

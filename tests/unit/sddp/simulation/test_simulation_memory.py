"""Memory of a simulation does not grow with its scenarios: bytes of Python, NumPy and Arrow are counted."""

import pyarrow as pa
import pytest
from memory_use import peak_bytes
from solving import train_folder
from systems_water import random_inflows
from test_streamed_rows import simulate_into_sink, streaming_sink

from cobre.io.output import growing_tables
from cobre.io.output.results import StoredRows
from cobre.study.cost_note import cost_note

CHUNK = 16


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train_folder(random_inflows().write(tmp_path_factory.mktemp("random")))


def simulate(trained, folder, scenarios):
    folder.mkdir()
    sink = streaming_sink(folder, seconds=1e9)
    costs = simulate_into_sink(sink, trained, scenarios, chunk_scenarios=CHUNK, spool_folder=folder)
    sink.publish(costs, {})
    return folder


def test_simulation(tmp_path, trained, monkeypatch):
    monkeypatch.setattr(growing_tables, "MIN_ROWS_PER_GROUP", 1)  # buffered rows do not count as growth
    simulate(trained, tmp_path / "first", 12 * CHUNK)  # what is loaded on first use
    few = peak_bytes(lambda: simulate(trained, tmp_path / "few", 2 * CHUNK))
    many = peak_bytes(lambda: simulate(trained, tmp_path / "many", 12 * CHUNK))
    # By scenario: its cost and the offset of its row group; its rows take 12 kB.
    assert many - few < 10 * CHUNK * 1000


def test_note_on_costs(tmp_path, trained):
    folder = simulate(trained, tmp_path / "many", 6 * CHUNK)
    before, largest = pa.total_allocated_bytes(), 0

    def read(name, columns):
        nonlocal largest
        for piece in StoredRows(folder / f"{name}.parquet").pieces(columns):
            largest = max(largest, pa.total_allocated_bytes() - before)
            yield piece

    cost_note(read)
    assert 0 < largest < 4_000_000

"""Rows streamed to files: the same rows and digest as in memory, after any interruption."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from solving import simulate_into, simulate_trained, train_folder
from systems_water import random_inflows

from cobre.io.output import read_results
from cobre.io.output.growing_tables import RECORD, UNFINISHED, GrowingTables
from cobre.study.simulation.sinks import ArrowSink, StreamingSink

CHUNK, SCENARIOS = 2, 11


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train_folder(random_inflows().write(tmp_path_factory.mktemp("random")))


def simulate_into_sink(sink, trained, scenarios=SCENARIOS, **others):
    others.setdefault("chunk_scenarios", CHUNK)
    return simulate_into(sink, trained, scenarios, trained.context.comm, **others).costs


@pytest.fixture(scope="module")
def in_memory(trained):
    sink = ArrowSink()
    costs = simulate_into_sink(sink, trained)
    return costs, sink.digest, sink.tables()


def streaming_sink(folder, *, resume=False, seconds=0.0):
    (folder / UNFINISHED).mkdir(parents=True, exist_ok=True)
    return StreamingSink(GrowingTables(folder, "x", resume=resume), seconds)


def check_rows(folder, sink, costs, in_memory):
    sink.publish(costs, {})
    tables = read_results(folder)
    assert (costs.tobytes(), sink.digest) == (in_memory[0].tobytes(), in_memory[1])
    assert tables.keys() == in_memory[2].keys()
    assert all(table.equals(in_memory[2][name]) for name, table in tables.items())
    assert not (folder / UNFINISHED).exists()


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_spooled_rows_equal_those_in_memory(tmp_path, trained, in_memory, seconds):
    sink = streaming_sink(tmp_path, seconds=seconds)
    check_rows(tmp_path, sink, simulate_into_sink(sink, trained, spool_folder=tmp_path), in_memory)


@pytest.mark.parametrize("done", [2, 8])
def test_closed_segments_are_not_simulated_again(tmp_path, trained, in_memory, done):
    simulate_into_sink(streaming_sink(tmp_path), trained, done)
    sink = streaming_sink(tmp_path, resume=True)
    assert sink.done.tobytes() == in_memory[0][:done].tobytes()
    check_rows(tmp_path, sink, simulate_into_sink(sink, trained, restored_costs=sink.done), in_memory)


def test_resume_after_all_rows_writes_the_end(tmp_path, trained, in_memory):
    simulate_into_sink(streaming_sink(tmp_path), trained)
    sink = streaming_sink(tmp_path, resume=True)
    check_rows(tmp_path, sink, simulate_into_sink(sink, trained, restored_costs=sink.done), in_memory)


def test_spool_in_a_file_gives_the_same_rows(tmp_path, trained):
    costs, tables = simulate_trained(trained, SCENARIOS)
    others, read = simulate_trained(trained, SCENARIOS, spool_folder=tmp_path)
    assert costs.costs.tobytes() == others.costs.tobytes()
    for name, columns in tables.items():
        for column, values in columns.items():
            np.testing.assert_array_equal(values, read[name][column])
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys
sys.path[:0] = sys.argv[3:]
from pathlib import Path
from test_streamed_rows import simulate_into_sink, streaming_sink
from solving import train_folder
simulate_into_sink(streaming_sink(Path(sys.argv[2])), train_folder(Path(sys.argv[1])), 10**6)
"""


def test_killed_process_is_resumed(tmp_path, trained, in_memory):
    case = random_inflows().write(tmp_path / "case")
    paths = [path for path in sys.path if "tests" in path]
    process = subprocess.Popen([sys.executable, "-c", KILLED, case, tmp_path / "out", *paths])
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / UNFINISHED / "0001" / RECORD).exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for later in (tmp_path / "out" / UNFINISHED).glob("*/record.json"):
        if int(later.parent.name) > 1:
            later.unlink()  # it went on for longer than the others simulate
    sink = streaming_sink(tmp_path / "out", resume=True)
    assert len(sink.done) == 2 * CHUNK
    check_rows(tmp_path / "out", sink, simulate_into_sink(sink, trained, restored_costs=sink.done), in_memory)

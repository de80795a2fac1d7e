"""A real run of four ranks, traced and merged."""

import json
import os
import signal

import numpy as np
import pytest
from processes import run_python, wait_until

from cobre.comm import launch
from cobre.comm.trace.reading import read_run

RANKS = 4
STEPS = 5
SLOW_RANK = 2


def program(comm, folder):
    everyone, mine = np.empty(RANKS * 10), np.full(10, float(comm.rank))
    for step in range(STEPS):
        comm.allgatherv(mine, everyone, [10] * RANKS, label="states")
        if comm.rank == SLOW_RANK:
            others = [folder / f"{step}-{rank}" for rank in range(RANKS) if rank != SLOW_RANK]
            wait_until(lambda files=others: all(file.exists() for file in files), "the others are about to reduce")
        else:
            (folder / f"{step}-{comm.rank}").touch()
        comm.allreduce(mine, np.empty(10), label="bounds")
        comm.broadcast(mine, 1)
    with comm.split_local() as node:
        node.barrier()
    region = comm.create_shared_region(4, "float64")
    region.fence()
    region.close()


def merge(folder):
    code, out, err = run_python("-m", "cobre.comm.trace", folder)
    assert (code, err) == (0, "")
    return json.loads((folder / "trace.json").read_text()), out


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trace")
    steps = tmp_path_factory.mktemp("steps")
    launch.run(program, RANKS, args=(steps,), environment={"COBRE_COMM_TRACE": str(folder)})
    return merge(folder)


def slices(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def test_merged_file_has_the_format_of_viewers(merged):
    trace, _ = merged
    assert trace["displayTimeUnit"] == "ms"
    for event in trace["traceEvents"]:
        assert type(event["pid"]) is int
        assert type(event["tid"]) is int
        assert type(event["name"]) is str
        assert event["ph"] in "MX"
    for event in slices(trace):
        assert event["ts"] >= 0
        assert event["dur"] >= 0


def test_every_rank_is_a_process_and_every_call_a_slice(merged):
    trace, _ = merged
    calls = [event for event in slices(trace) if event["cat"] != "waiting"]
    assert {event["pid"] for event in trace["traceEvents"]} == set(range(RANKS))
    for rank in range(RANKS):
        names = [event["name"] for event in calls if event["pid"] == rank and event["tid"] == 1]
        rest = ["split_local", "create_shared_region", "fence"]
        assert names == ["states", "bounds", "broadcast"] * STEPS + rest
        assert [event["name"] for event in calls if event["pid"] == rank and event["tid"] == 2] == ["barrier"]
    arguments = [event["args"] for event in calls if event["name"] == "states"]
    assert {args["bytes"] for args in arguments} == {RANKS * 80}
    assert {args["operation"] for args in arguments} == {"allgatherv"}


def test_slices_of_a_thread_nest(merged):
    trace, _ = merged
    for rank in range(RANKS):
        events = [event for event in slices(trace) if (event["pid"], event["tid"]) == (rank, 1)]
        calls = [event for event in events if event["cat"] != "waiting"]
        ends = [event["ts"] + event["dur"] for event in calls]
        assert all(end <= event["ts"] + 0.001 for end, event in zip(ends, calls[1:], strict=False))
        inside = [(event["ts"], event["ts"] + event["dur"]) for event in calls]
        for event in events:
            if event["cat"] == "waiting":
                begin, end = event["ts"], event["ts"] + event["dur"]
                assert any(first <= begin and end <= last + 0.001 for first, last in inside)


def test_slow_rank_is_named(merged):
    """On a busy machine others may be slower in some steps, but not in all."""
    trace, printed = merged
    waits = [event for event in slices(trace) if event["name"] == f"waiting for rank {SLOW_RANK}"]
    assert {event["pid"] for event in waits} >= {0, 1, 3}
    assert "one clock for all ranks" in printed
    ranks = {line.split()[1]: line for line in printed.splitlines() if line.startswith("rank ")}
    assert sorted(ranks) == ["0", "1", "2", "3"]
    assert "note:" not in printed


def test_killed_rank_and_its_survivors_can_be_merged(tmp_path):
    def kill_rank_1(comm):
        comm.barrier(label="together")
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.barrier(label="alone")

    folder = tmp_path / "trace"
    with pytest.raises(launch.WorkerError):
        launch.run(kill_rank_1, 3, environment={"COBRE_COMM_TRACE": str(folder)}, output=lambda *_: None)
    trace, printed = merge(folder)
    assert "rank 1 (rank-1-" in printed
    assert "the rank was killed or is still running" in printed
    assert "is behind" in printed
    states = [event["args"].get("state", "") for event in slices(trace) if event["name"] == "alone"]
    assert any("PeerLostError" in state for state in states)


def test_dropped_trace_events_are_counted(tmp_path):
    def make_many_calls(comm):
        for _ in range(20_000):
            comm.barrier()

    launch.run(make_many_calls, 2, environment={"COBRE_COMM_TRACE": str(tmp_path)})
    for recording in read_run(tmp_path).recordings:
        assert recording.lost + len(recording.calls) == 20_000


def test_tcp_run_can_be_traced(tmp_path):
    launch.run(lambda comm: comm.barrier(label="gate"), 2, "tcp", environment={"COBRE_COMM_TRACE": str(tmp_path)})
    trace, printed = merge(tmp_path)
    assert "communicator 1 (tcp, 2 ranks)" in printed
    assert [event["pid"] for event in slices(trace) if event["name"] == "gate"] == [0, 1]

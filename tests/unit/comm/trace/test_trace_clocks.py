"""Aligning the clocks of several machines by calls that no rank ends before all have begun."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import barriers, call, header, shifted, write

from cobre.comm.trace.reading import align_clocks, read_run, solve

MS = 1_000_000
HOUR = 3_600_000 * MS


def run_with_clocks(folder, arrivals_ns, offsets_ns, wall_errors_ns, latency_ns=10_000):
    size = len(offsets_ns)
    for rank, calls in enumerate(barriers(arrivals_ns, latency_ns)):
        head = header(rank, size=size, clock_offset_ns=offsets_ns[rank], wall_error_ns=wall_errors_ns[rank])
        write(folder, head, [shifted(entry, offsets_ns[rank]) for entry in calls])
    return read_run(folder)


def test_clocks_hours_apart_with_wrong_wall_clocks_are_aligned(tmp_path):
    random.seed(1)
    arrivals = [[number * 10 * MS + random.randrange(MS) for _ in range(3)] for number in range(100)]
    offsets = [5 * HOUR, 0, 77 * HOUR]
    run = run_with_clocks(tmp_path, arrivals, offsets, wall_errors_ns=[0, 40 * MS, -3_000 * MS])
    alignment = align_clocks(run)
    for rank, recording in enumerate(run.recordings):
        error_ns = alignment.common_ns(recording.header, offsets[rank]) - offsets[0]
        # Whoever came last to a call waited only for its latency, so that the interval is about as wide.
        assert abs(error_ns) < 60_000, rank
    assert alignment.calls == 100
    assert "3 clocks, aligned by 100 calls to within" in str(alignment)


def test_after_alignment_no_rank_ends_before_all_have_begun(tmp_path):
    random.seed(2)
    arrivals = [[number * MS + random.randrange(50 * MS) for _ in range(4)] for number in range(0, 2000, 100)]
    run = run_with_clocks(tmp_path, arrivals, [0, HOUR, 2 * HOUR, 3 * HOUR], [0] * 4)
    alignment = align_clocks(run)
    assert "pieces" not in str(alignment)
    members = run.worlds[0].members
    for sequence in members[0].calls:
        calls = [(member.header, member.calls[sequence]) for member in members.values()]
        ends = [alignment.common_ns(head, entry.end_ns) for head, entry in calls]
        begins = [alignment.common_ns(head, entry.begin_ns) for head, entry in calls]
        assert min(ends) >= max(begins) - len(members)  # a nanosecond of rounding for each


def test_processes_of_one_machine_share_a_clock(tmp_path):
    for rank in range(2):
        write(tmp_path, header(rank, host="a", pid=100 + rank, wall_error_ns=rank * MS), [call(1, 5, 9)])
    alignment = align_clocks(read_run(tmp_path))
    assert list(alignment.samples.values()) == [[(0, 0)]]
    assert str(alignment) == "one clock for all ranks"


def test_clocks_without_a_common_call_are_aligned_by_the_time_of_day(tmp_path):
    write(tmp_path, header(0, clock_offset_ns=HOUR), [call(1, HOUR, HOUR + 5, "broadcast", 8)])
    write(tmp_path, header(1, wall_error_ns=3 * MS), [call(1, 0, 5, "broadcast", 8)])
    run = read_run(tmp_path)
    alignment = align_clocks(run)
    assert alignment.common_ns(run.recordings[1].header, 0) == HOUR + 3 * MS
    assert "by the time of day only" in str(alignment)


def test_failed_calls_are_not_used_for_alignment(tmp_path):
    write(tmp_path, header(0), [call(1, 0, 100), call(2, 200, 210), {"failed": 2, "failure": "x"}])
    write(tmp_path, header(1), [call(1, 0, 100), call(2, 9_000, 9_010)])
    assert align_clocks(read_run(tmp_path)).calls == 1


def test_clocks_that_drift_are_followed(tmp_path):
    """The second clock gains 1 ms per second; calls constrain the offset to a few microseconds."""
    random.seed(3)
    arrivals = [[number * 100 * MS + random.randrange(5_000) for _ in range(2)] for number in range(200)]
    first, second = barriers(arrivals)
    drifting = [{**entry, **{name: round(entry[name] * 1.001) for name in ("begin_ns", "end_ns")}} for entry in second]
    write(tmp_path, header(0), first)
    write(tmp_path, header(1), drifting)
    run = read_run(tmp_path)
    alignment = align_clocks(run)
    assert "because of drift" in str(alignment)
    errors = [
        alignment.common_ns(run.recordings[1].header, stretched["begin_ns"]) - true["begin_ns"]
        for stretched, true in zip(drifting, second, strict=True)
    ]
    assert max(map(abs, errors)) < 100_000  # one offset for all would be wrong by 10 ms at the ends


def test_clock_without_later_calls_keeps_its_offset(tmp_path):
    """Two machines go on, drifting, after a third has left their common world."""
    arrivals = [[number * 100 * MS] * 3 for number in range(100)]
    calls = barriers(arrivals)
    for rank in range(3):
        rate = 1.001 if rank == 1 else 1.0
        stretched = [
            {**entry, "begin_ns": round(entry["begin_ns"] * rate), "end_ns": round(entry["end_ns"] * rate)}
            for entry in calls[rank]
        ]
        write(tmp_path, header(rank, size=3), stretched[:10], name=f"all-{rank}.jsonl")
        if rank < 2:
            write(tmp_path, header(rank, size=2), stretched[10:], name=f"two-{rank}.jsonl")
    run = read_run(tmp_path)
    alignment = align_clocks(run)
    third = run.worlds[0].members[2]
    assert abs(alignment.common_ns(third.header, 500 * MS) - 500 * MS) < 100_000
    assert "time of day" not in str(alignment)


def test_single_clock_has_offset_zero():
    assert solve([0], [[0.0]]) == ([0], [0.0], True)


def test_clocks_related_only_to_each_other_share_an_offset():
    inf = math.inf
    bounds = [[0.0, inf, inf], [inf, 0.0, 110.0], [inf, -90.0, 0.0]]
    offsets, uncertainty, is_possible = solve([0, 5_000, 0], bounds)
    assert is_possible
    assert offsets == [0, 5_000, 5_100]
    assert uncertainty == [0.0, inf, 10.0]


@given(
    truth=st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=5),
    slack=st.lists(st.integers(1, 10**6), min_size=25, max_size=25),
)
def test_solutions_satisfy_all_bounds(truth, slack):
    size = len(truth)
    bounds = [
        [0.0 if i == j else float(truth[j] - truth[i] + slack[i * size + j]) for j in range(size)] for i in range(size)
    ]
    offsets, uncertainty, is_possible = solve([0] * size, bounds)
    assert is_possible
    assert all(offsets[j] - offsets[i] <= bounds[i][j] + 1 for i in range(size) for j in range(size))
    for clock in range(size):
        assert abs(offsets[clock] - (truth[clock] - truth[0])) <= uncertainty[clock] + 1
        assert uncertainty[clock] == pytest.approx(max(uncertainty[clock], 0))

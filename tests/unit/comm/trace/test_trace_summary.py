"""The merged file and the summary, from calls with known results."""

import json

import pytest
from synthetic import call, header, shifted, write

from cobre.comm.trace.__main__ import main
from cobre.comm.trace.reading import align_clocks, read_run
from cobre.comm.trace.summary import chrome_trace, operation_statistics, rank_statistics, summary

US = 1_000


@pytest.fixture
def run(tmp_path):
    """Return a run: rank 1 enters the barrier 30 us late, rank 0 the reduction 5 us late; a broadcast does not wait."""
    plans = [
        [
            call(1, 0, 40 * US),
            call(2, 55 * US, 60 * US, "allreduce", 32, "bounds"),
            call(3, 70 * US, 75 * US, "broadcast", 8),
        ],
        [
            call(1, 30 * US, 40 * US),
            call(2, 50 * US, 60 * US, "allreduce", 32, "bounds"),
            call(3, 90 * US, 95 * US, "broadcast", 8),
        ],
    ]
    for rank, plan in enumerate(plans):
        write(tmp_path, header(rank, host="a", pid=100 + rank), [shifted(entry, 500 * US) for entry in plan])
    return read_run(tmp_path)


def slices(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def test_one_process_per_rank_and_one_slice_per_call(run):
    trace = chrome_trace(run, align_clocks(run))
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert names == ["rank 0 (a, pid 100)", "rank 1 (a, pid 101)"]
    shown = [
        (event["pid"], event["name"], event["ts"], event["dur"]) for event in slices(trace) if event["cat"] != "waiting"
    ]
    assert shown == [
        (0, "barrier", 0.0, 40.0),
        (0, "bounds", 55.0, 5.0),
        (0, "broadcast", 70.0, 5.0),
        (1, "barrier", 30.0, 10.0),
        (1, "bounds", 50.0, 10.0),
        (1, "broadcast", 90.0, 5.0),
    ]
    assert slices(trace)[-1]["args"] == {"operation": "broadcast", "sequence": 3, "bytes": 8, "label": ""}


def test_waits_are_shown_with_the_rank_waited_for(run):
    waits = [event for event in slices(chrome_trace(run, align_clocks(run))) if event["cat"] == "waiting"]
    assert [(event["pid"], event["name"], event["ts"], event["dur"]) for event in waits] == [
        (0, "waiting for rank 1", 0.0, 30.0),
        (1, "waiting for rank 0", 50.0, 5.0),
    ]


def test_operations_have_counts_bytes_and_times(run):
    statistics = operation_statistics(run)
    assert list(statistics) == [("barrier", ""), ("allreduce", "bounds"), ("broadcast", "")]
    assert statistics["allreduce", "bounds"].nbytes == 64
    assert sorted(statistics["barrier", ""].durations_ns) == [10 * US, 40 * US]


def test_ranks_have_times_and_waits(run):
    first, second = rank_statistics(run, align_clocks(run)).values()
    assert (first.calls, first.inside_ns, first.waited_ns, first.came_last, first.caused_ns) == (
        3,
        50 * US,
        30 * US,
        1,
        5 * US,
    )
    assert (second.waited_ns, second.came_last, second.caused_ns, second.synchronised) == (5 * US, 1, 30 * US, 2)
    assert (first.span_ns, second.span_ns) == (75 * US, 65 * US)


def test_summary_has_a_table_by_operation_and_one_by_rank(run):
    text = summary(run, align_clocks(run))
    assert "communicator 1 (tcp, 2 ranks); one clock for all ranks" in text
    assert ["allreduce", "bounds", "2", "64", "B", "15.0", "us", "7.5", "us", "10.0", "us"] in [
        line.split() for line in text.splitlines()
    ]
    assert "rank 0      3   50.0 us  30.0 us         40.0 %     50.0 %         5.0 us" in text.splitlines()


def test_call_that_did_not_end_lasts_as_long_as_the_file(tmp_path):
    write(tmp_path, header(0, size=1), [call(1, 0, 4 * US), call(2, 5 * US, 0)], closed=False)
    run = read_run(tmp_path)
    event = slices(chrome_trace(run, align_clocks(run)))[-1]
    assert event["args"]["state"] == "still running when the trace ended"
    assert event["dur"] == 0.0


def test_failed_call_is_marked_as_failed(tmp_path):
    write(tmp_path, header(0, size=1), [call(1, 0, 4), {"failed": 1, "failure": "PeerLostError: rank 1"}])
    run = read_run(tmp_path)
    assert slices(chrome_trace(run, align_clocks(run)))[0]["args"]["state"] == "failed: PeerLostError: rank 1"


def test_rank_without_calls_is_in_the_summary(tmp_path):
    write(tmp_path, header(0), [])
    write(tmp_path, header(1), [])
    run = read_run(tmp_path)
    assert slices(chrome_trace(run, align_clocks(run))) == []
    assert "rank 1      0    0.0 us  0.0 us              -          -         0.0 us" in summary(run, align_clocks(run))


def test_command_writes_the_file_and_prints_the_summary(run, tmp_path, capsys):
    output = tmp_path / "merged.json"
    assert main([str(tmp_path), "-o", str(output)]) == 0
    assert len(slices(json.loads(output.read_text()))) == 8
    printed = capsys.readouterr().out
    assert f"wrote {output}; open it at https://ui.perfetto.dev" in printed


def test_command_can_be_repeated_in_its_folder(run, tmp_path, capsys):
    assert main([str(tmp_path)]) == main([str(tmp_path)]) == 0
    assert (tmp_path / "trace.json").exists()
    assert "left out" not in capsys.readouterr().out


def test_command_reports_errors_with_exit_code_2(tmp_path, capsys):
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "is not a directory" in capsys.readouterr().err
    write(tmp_path, header(0, size=1), [])
    assert main([str(tmp_path), "-o", str(tmp_path / "no" / "such" / "folder.json")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_long_lists_of_operations_are_truncated(tmp_path):
    calls = [call(number, number * US, (number + 1) * US, label=f"label {number}") for number in range(1, 26)]
    write(tmp_path, header(0, size=1), calls)
    run = read_run(tmp_path)
    assert "and 5 more operations that took less time" in summary(run, align_clocks(run))


def test_calls_are_not_matched_if_a_rank_is_missing(tmp_path):
    write(tmp_path, header(0), [call(1, 0, 4 * US)])
    run = read_run(tmp_path)
    assert slices(chrome_trace(run, align_clocks(run))) != []
    assert "allreduce" not in summary(run, align_clocks(run))

"""Reading trace files, incomplete and foreign ones included."""

import json

import pytest
from synthetic import call, header, write

from cobre.comm.trace.reading import TraceError, read_run
from cobre.comm.trace.recording import NotATraceError, read_recording


def test_complete_file_has_all_calls(tmp_path):
    path = write(tmp_path, header(1), [call(1, 5, 9, label="gate"), call(2, 10, 12, "allreduce", 32)])
    recording = read_recording(path)
    assert (recording.header.rank, recording.header.host) == (1, "host1")
    assert [str(entry) for entry in recording.calls.values()] == ["#1 barrier 'gate'", "#2 allreduce, 32 B"]
    assert recording.is_closed
    assert recording.notes == []


def test_incomplete_last_line_of_killed_rank_is_ignored(tmp_path):
    path = write(tmp_path, header(0), [call(1, 5, 9)], closed=False)
    path.write_bytes(path.read_bytes() + b'{"sequence":2,"opera')
    recording = read_recording(path)
    assert list(recording.calls) == [1]
    assert "1 line could not be read" in recording.notes[0]
    assert "the rank was killed or is still running; its last call is #1 barrier" in recording.notes[1]


def test_long_call_that_was_written_twice_counts_once(tmp_path):
    path = write(tmp_path, header(0), [call(1, 5, 0), call(1, 5, 9)])
    assert [entry.end_ns for entry in read_recording(path).calls.values()] == [9]


def test_lost_calls_and_failures_are_noted(tmp_path):
    entries = [{"lost": 7, "before": 8}, call(8, 1, 2), {"failed": 8, "failure": "PeerLostError: rank 1"}]
    recording = read_recording(write(tmp_path, header(0), entries))
    assert recording.lost == 7
    assert recording.failed_sequence == 8
    assert any("7 calls are missing" in note for note in recording.notes)
    assert any("failed: PeerLostError: rank 1" in note for note in recording.notes)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"hello\n", "is not a trace"),
        (b"[1]\n", "is not a trace"),
        (b'{"a":1}\n', "is not a trace"),
        (b"\xff\xfe\n", "is not a trace"),
        (b'{"cobre_trace":99}\n', "has trace format 99"),
        (b'{"cobre_trace":1}\n', "damaged"),
        (json.dumps(header(0) | {"rank": "0"}).encode(), "damaged"),
        (json.dumps(header(5)).encode(), "damaged"),
    ],
)
def test_unsupported_files_raise_with_a_reason(tmp_path, content, reason):
    path = tmp_path / "strange.jsonl"
    path.write_bytes(content)
    with pytest.raises(NotATraceError, match=reason):
        read_recording(path)


def test_malformed_lines_are_counted(tmp_path):
    path = write(tmp_path, header(0), [{"what": 1}, {"sequence": "x"}, call(1, 1, 2), {"sequence": True}])
    recording = read_recording(path)
    assert list(recording.calls) == [1]
    assert "3 lines could not be read" in recording.notes[0]


def test_foreign_files_are_ignored_with_a_note(tmp_path):
    write(tmp_path, header(0), [call(1, 1, 2)])
    write(tmp_path, header(1), [call(1, 1, 2)])
    (tmp_path / "notes.jsonl").write_text("my notes\n")
    (tmp_path / "trace.json").write_text("{}")
    run = read_run(tmp_path)
    assert run.notes == ["ignored: notes.jsonl is not a trace"]
    assert [world.missing_ranks for world in run.worlds] == [[]]


def test_missing_ranks_are_named(tmp_path):
    write(tmp_path, header(1, size=4), [call(1, 1, 2)])
    run = read_run(tmp_path)
    assert run.worlds[0].missing_ranks == [0, 2, 3]
    assert run.notes[0] == "communicator 1 (tcp, 4 ranks): no file of rank 0"


def test_notes_name_the_rank_that_is_behind(tmp_path):
    write(tmp_path, header(0), [call(1, 1, 2), call(2, 3, 0)], closed=False)
    write(tmp_path, header(1), [call(1, 1, 2, label="gate")], closed=False)
    run = read_run(tmp_path)
    assert "rank 1 is behind: its last call is #1 barrier 'gate'; others reached #2" in run.notes[-1]
    assert any("its last call is #2 barrier, not completed" in note for note in run.notes)


@pytest.mark.parametrize("make", [lambda folder: folder / "nowhere", lambda folder: folder])
def test_directory_without_traces_raises_naming_variable(tmp_path, make):
    with pytest.raises(TraceError, match="COBRE_COMM_TRACE"):
        read_run(make(tmp_path))


def test_newer_of_two_runs_in_one_directory_is_read(tmp_path):
    second_ns = 3_600_000_000_000
    for pid, begin_ns in ((100, 0), (200, second_ns)):
        for rank in range(2):
            head = header(rank, clock_offset_ns=begin_ns, wall_error_ns=begin_ns, pid=pid)
            write(tmp_path, head, [call(1, begin_ns + 5, begin_ns + pid)])
    run = read_run(tmp_path)
    assert {recording.header.pid for recording in run.recordings} == {200}
    assert run.notes == ["ignored, from an earlier run: rank-0-100.jsonl, rank-1-100.jsonl"]


def test_simultaneous_runs_in_one_directory_raise(tmp_path):
    write(tmp_path, header(0), [call(1, 5, 900)])
    write(tmp_path, header(0, pid=101, wall_error_ns=10), [call(1, 5, 900)])
    with pytest.raises(TraceError, match=r"rank-0-100\.jsonl and rank-0-101\.jsonl are both rank 0"):
        read_run(tmp_path)


def test_node_communicators_are_separate_worlds(tmp_path):
    for host, first in (("a", 0), ("b", 2)):
        for local in range(2):
            pid = 100 + first + local
            write(tmp_path, header(first + local, size=4, host=host, pid=pid), [call(1, 1, 90)])
            write(tmp_path, header(local, host=host, pid=pid), [call(1, 5, 90)], name=f"node-{pid}.jsonl")
    run = read_run(tmp_path)
    assert [(world.size, sorted(world.members)) for world in run.worlds] == [
        (4, [0, 1, 2, 3]),
        (2, [0, 1]),
        (2, [0, 1]),
    ]
    assert [world.members[0].header.host for world in run.worlds] == ["a", "a", "b"]

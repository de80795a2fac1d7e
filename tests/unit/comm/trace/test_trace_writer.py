"""Writing traces in this process: contents of the files, and no effect on the run."""

import json
import logging
import os
import threading
import time

import numpy as np
import pytest

from cobre.comm import LocalConfig, create_communicator
from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.trace import writer as trace_writer
from cobre.comm.trace.recording import read_recording
from cobre.comm.trace.writer import TRACE_VARIABLE, next_interval

DEADLINE_S = 30


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(TRACE_VARIABLE, str(tmp_path / "new" / "folder"))
    return tmp_path / "new" / "folder"


def entries(folder, number=0):
    lines = sorted(folder.iterdir())[number].read_text().splitlines()
    return [json.loads(line) for line in lines]


def wait_until(condition):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_without_the_variable_nothing_is_written_and_no_thread_runs(monkeypatch):
    monkeypatch.delenv(TRACE_VARIABLE, raising=False)
    before = threading.active_count()
    with create_communicator(LocalConfig()) as comm:
        comm.barrier()
        assert comm._trace is None
        assert threading.active_count() == before


def test_every_call_is_written_when_the_communicator_is_closed(folder):
    with create_communicator(LocalConfig()) as comm:
        comm.barrier(label="gate \u26a1")
        comm.allreduce(np.ones(4), np.empty(4), label="bounds")
        calls = [(call.sequence, call.operation, call.nbytes, call.label) for call in comm.recent_calls()]
    (path,) = folder.iterdir()
    assert path.name == f"rank-0-{os.getpid()}.jsonl"
    recording = read_recording(path)
    assert [(c.sequence, c.operation, c.nbytes, c.label) for c in recording.calls.values()] == calls
    assert recording.is_closed
    assert (recording.header.backend, recording.header.size, recording.header.pid) == ("local", 1, os.getpid())
    assert recording.header.monotonic_ns <= min(call.begin_ns for call in recording.calls.values())
    assert recording.notes == []


def test_calls_are_written_during_the_run(folder):
    with create_communicator(LocalConfig()) as comm:
        comm.barrier()
        wait_until(lambda: len(entries(folder)) == 2)


def test_each_communicator_writes_a_separate_file(folder):
    with create_communicator(LocalConfig()) as comm, comm.split_local() as part:
        comm.barrier()
        part.barrier()
    numbers = [entries(folder, number)[0]["communicator"] for number in range(2)]
    assert abs(numbers[0] - numbers[1]) == 1


def test_file_of_a_collected_communicator_is_complete(folder):
    comm = create_communicator(LocalConfig())
    comm.barrier()
    del comm
    assert [set(entry) & {"sequence", "closed"} for entry in entries(folder)] == [set(), {"sequence"}, {"closed"}]


def test_failure_is_written_at_once(folder):
    comm = create_communicator(LocalConfig())
    comm.barrier()
    comm.abort("enough")
    assert entries(folder)[-1]["failed"] == 0  # no call was under way
    assert "enough" in entries(folder)[-1]["failure"]
    comm.close()


def test_call_that_fails_is_named(folder):
    class Breaking(LocalCommunicator):
        def _barrier(self):
            raise OSError("cable cut")

    comm = Breaking()
    with pytest.raises(Exception, match="cable cut"):
        comm.barrier(label="gate")
    comm.close()
    recording = read_recording(next(folder.iterdir()))
    assert recording.failed_sequence == 1
    assert not recording.calls[1].is_in_progress


def test_call_that_never_ends_is_written(folder, monkeypatch):
    monkeypatch.setattr(trace_writer, "STUCK_NS", 0)

    class Stuck(LocalCommunicator):
        def _barrier(self):
            wait_until(lambda: any(entry.get("sequence") for entry in entries(folder)))

    comm = Stuck()
    comm.barrier(label="stuck")
    comm.close()
    shown = [entry for entry in entries(folder) if entry.get("label") == "stuck"]
    assert [entry["end_ns"] == 0 for entry in shown] == [True, False]


def test_lost_calls_are_counted(folder):
    with create_communicator(LocalConfig()) as comm:
        comm._trace._lock.acquire()  # simulate a writer thread that is never scheduled
        for _ in range(3000):
            comm.barrier()
        comm._trace._lock.release()
    recording = read_recording(next(folder.iterdir()))
    assert recording.lost + len(recording.calls) == 3000
    assert list(recording.calls)[-1] == 3000


def test_forked_child_writes_nothing(folder):
    comm = create_communicator(LocalConfig())
    comm.barrier()
    child = os.fork()
    if child == 0:
        comm._trace.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    comm.barrier()
    comm.close()
    recording = read_recording(next(folder.iterdir()))
    assert (list(recording.calls), recording.notes) == ([1, 2], [])


def test_uncreatable_directory_gives_a_warning(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(TRACE_VARIABLE, str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "cobre.comm"), create_communicator(LocalConfig()) as comm:
        comm.barrier()
    assert "cannot write a trace of rank 0: COBRE_COMM_TRACE=" in caplog.text


def test_full_disk_stops_tracing_but_not_run(folder, caplog):
    with caplog.at_level(logging.WARNING, "cobre.comm"), create_communicator(LocalConfig()) as comm:
        os.close(comm._trace._file.fileno())  # every write fails from here on
        comm.barrier()
        wait_until(lambda: comm._trace.is_closed)
        comm.barrier()
    assert caplog.text.count("the trace of rank 0 is incomplete") == 1


@pytest.mark.parametrize(
    ("interval_s", "calls", "expected_s"),
    [(0.05, 0, 0.05), (0.05, 256, 0.05), (0.05, 512, 0.025), (0.002, 9999, 0.001)],
)
def test_interval_is_shorter_for_programs_that_call_often(interval_s, calls, expected_s):
    assert next_interval(interval_s, calls) == pytest.approx(expected_s)

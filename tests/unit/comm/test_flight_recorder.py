"""Recorded calls and the report, on a world of one."""

import logging
import os
import signal
import socket
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from cobre.comm import CommunicatorBrokenError, LocalConfig, create_communicator
from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.flight_recorder import (
    RecordedCall,
    describe_calls,
    format_bytes,
    format_ns,
    report,
    show_reports_unless_handled,
)


@pytest.fixture
def comm():
    with create_communicator(LocalConfig()) as communicator:
        yield communicator


def call(sequence, begin_ns=1, end_ns=2):
    return RecordedCall(sequence, "barrier", 0, "", begin_ns, end_ns)


def test_calls_are_recorded_in_order_with_operation_bytes_and_label(comm):
    comm.barrier(label="gate")
    comm.allreduce(np.ones(4), np.empty(4), label="bounds")
    comm.create_shared_region(3, "float64").close()
    calls = comm.recent_calls()
    assert [(call.sequence, call.operation, call.nbytes, call.label) for call in calls] == [
        (1, "barrier", 0, "gate"),
        (2, "allreduce", 32, "bounds"),
        (3, "create_shared_region", 24, ""),
    ]
    assert all(0 < call.begin_ns <= call.end_ns for call in calls)
    assert not any(call.is_in_progress for call in calls)


def test_recorded_call_cannot_be_changed(comm):
    comm.barrier()
    with pytest.raises(FrozenInstanceError):
        comm.recent_calls()[0].sequence = 7


def test_last_1024_calls_are_kept(comm):
    for _ in range(2000):
        comm.barrier()
    assert [call.sequence for call in comm.recent_calls()] == list(range(977, 2001))


def test_invalid_call_is_not_recorded(comm):
    with pytest.raises(Exception, match="counts"):
        comm.allgatherv(np.ones(1), np.ones(1), [1, 2])
    assert comm.recent_calls() == []


def test_label_of_another_type_is_converted_to_text(comm):
    comm.barrier(label=7)
    assert comm.recent_calls()[0].label == "7"
    assert "barrier '7'" in comm.report()


def test_report_names_rank_host_pid_and_last_calls(comm):
    assert comm.report() == f"rank 0 of 1 (local), host {socket.gethostname()}, pid {os.getpid()}: open, 0 calls made\n"
    for number in range(20):
        comm.broadcast(np.ones(125), label=f"step {number}")
    text = comm.report()
    assert "open, 20 calls made" in text
    assert "#11 broadcast 'step 10', 1 KB  took " in text
    assert "#10 " not in text
    assert "failure" not in text


def test_report_names_the_call_under_way_and_the_first_failure():
    text = report("rank 1 of 2 (shm)", "busy", [call(41), call(42, end_ns=0)], ValueError("bad"))
    assert "now in #42 barrier, under way for" in text
    assert text.count("#42") == 1
    assert "#41 barrier  took 0.0 us, ended" in text
    assert text.endswith("first failure: ValueError: bad\n")


def test_failure_is_logged_once_with_the_last_five_calls(caplog):
    comm = create_communicator(LocalConfig())
    for number in range(7):
        comm.barrier(label=f"step {number}")
    with caplog.at_level(logging.INFO, "cobre.comm"):
        comm.abort("enough")
        comm.abort("really")
    (record,) = caplog.records
    text = record.getMessage()
    assert text.startswith("broke: CollectiveFailedError")
    assert "rank 0 of 1 (local), last calls:" in text
    assert comm._first_failure.__notes__[0] in text
    assert "enough" in text
    assert [f"'step {number}'" in text for number in range(7)] == [False, False, True, True, True, True, True]
    assert "first failure: CollectiveFailedError: abort call #7 failed: this rank called abort: enough" in comm.report()
    with pytest.raises(CommunicatorBrokenError):
        comm.barrier()
    comm.close()
    assert comm.report().splitlines()[0].endswith("closed, 7 calls made")


def test_log_handler_that_raises_does_not_prevent_the_abort(caplog):
    class BrokenHandler(logging.Handler):
        def emit(self, record):
            raise OSError("no space for logs")

    handler = BrokenHandler()
    logger = logging.getLogger("cobre.comm")
    logger.addHandler(handler)
    caplog.set_level(logging.INFO, "cobre.comm")
    aborted = []

    class Recording(LocalCommunicator):
        def _abort(self, reason):
            aborted.append(reason)

    comm = Recording()
    try:
        with pytest.raises(OSError, match="no space for logs"):
            comm.abort("enough")
    finally:
        logger.removeHandler(handler)
    assert "enough" in aborted[0]
    assert comm.state == "broken"


def test_waiting_is_logged_with_the_calls_before_it_once_per_call(caplog, comm):
    comm.barrier(label="before")
    with caplog.at_level(logging.WARNING, "cobre.comm"):
        comm._log_wait(30.0, ["rank 1 (pid 7, last call #41 barrier)"])
        comm._log_wait(60.0, ["rank 1 (pid 7, last call #41 barrier)"])
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("rank 0 of 1 (local) has waited 30 s in barrier call #1 for rank 1 (pid 7, last call #41")
    assert "last calls here: #1 barrier 'before' took" in first
    assert "60 s" in second
    assert "last calls" not in second


def test_empty_history_is_described_as_none():
    assert describe_calls([]) == "none"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1 KB"), (3_200_000, "3.2 MB"), (206e6, "206 MB"), (5e9, "5.0 GB")],
)
def test_bytes_are_formatted_with_unit(value, text):
    assert format_bytes(value) == text


@pytest.mark.parametrize(("value", "text"), [(100, "0.1 us"), (2_500_000, "2.5 ms"), (31.2e9, "31.2 s")])
def test_durations_are_formatted_with_unit(value, text):
    assert format_ns(value) == text


def test_no_report_is_printed_if_program_handles_the_signal(capfd):
    former = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        show_reports_unless_handled(0.0)
    finally:
        signal.signal(signal.SIGUSR1, former)
    assert capfd.readouterr().err == ""

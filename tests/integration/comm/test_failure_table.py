"""Failure messages that users see: one row per cause, with the tests that check its message.

Failures unrelated to communication (a full disk, an unwritable output) are not in the table.
`kit NAME` is a plan of the fault table of `cobre.comm.testing`, `case NAME` one of its cases.

cause                        | tested by
-----------------------------|-------------------------------------------------------------------------------
a rank raises                | test_raising_rank_is_reported, kit raise, kit case, mpi/test_mpi_job_end.py
mpiexec and mpi4py differ    | mpi/test_mpi_worlds.py::test_launcher_of_another_mpi_raises
a rank is killed             | test_killed_rank_is_reported, kit kill, mpi/test_mpi_job_end.py,
                             | test_last_call_of_dead_rank_is_recent,
                             | test_tcp_network_faults.py::test_worker_that_dies_on_another_host_is_detected_at_once
a rank is frozen             | test_frozen_rank_is_reported, test_long_wait_names_the_missing_rank, kit stop,
                             | kit compute_long, test_wait_of_half_a_minute_names_the_missing_rank
a link is cut                | test_tcp_network_faults.py::test_cut_link_is_reported_on_both_sides,
                             | test_tcp_network_faults.py::test_black_hole_is_reported_on_both_sides,
                             | test_tcp_network_faults.py::test_unreachable_host_is_named
a rank never starts          | test_rank_that_never_starts_is_reported, kit never_arrives,
                             | test_tcp_rendezvous.py::test_missing_ranks_are_named_on_all_ranks
two claim one rank           | test_tcp_network_start.py::test_duplicate_rank_on_two_hosts_is_refused,
                             | kit duplicate_rank
two disagree on the size     | test_tcp_network_start.py::test_rank_with_other_world_size_is_refused, kit wrong_size
a port is in use             | test_tcp_network_start.py::test_port_of_earlier_run_is_reported,
                             | test_tcp_rendezvous.py::test_port_in_use_is_reported_with_address_and_advice
a name is not known yet      | test_tcp_network_start.py::test_name_that_resolves_late_is_logged_once_and_retried,
                             | test_tcp_rendezvous.py::test_name_that_does_not_resolve_is_logged_once_and_retried
/dev/shm is too small        | kit shm_no_space_for_region, kit shm_no_space_for_world
a stale segment              | kit shm_stale_segment, kit shm_invalid_segment, kit shm_live_segment
a wrong or absent secret     | test_tcp_network_start.py::test_wrong_secret_is_reported_on_both_sides_in_time,
                             | test_tcp_network_start.py::test_other_hosts_are_refused_without_a_secret,
                             | test_tcp_rendezvous.py::test_missing_secret_is_reported
garbage or an oversize frame | test_tcp_strangers.py::test_idle_connections_and_garbage_do_not_stall_the_rendezvous,
                             | test_protocol.py::test_invalid_frame_raises_after_its_first_bytes,
                             | test_handshake.py::test_arbitrary_bytes_never_authenticate_a_worker
ranks make different calls   | test_mismatched_calls_are_reported, case mismatch/calls
versions differ              | test_handshake.py::test_versions_are_compared_on_both_sides,
                             | test_protocol.py::test_another_protocol_version_is_named_first
the parent dies              | test_launch_stop.py::test_nothing_survives_the_death_of_the_parent
more ranks than cores        | test_launch_run.py::test_more_ranks_than_cores_warns_once, kit crowd
exit without close           | test_exit_without_close_is_reported, kit exit_without_close,
                             | mpi/test_mpi_job_end.py::test_normal_exit_is_not_a_failure
"""

import logging
import os
import re
import signal
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from fault_plans.table import all_plans
from processes import finish, start_python
from tcp_worlds import DEADLINE_S, results, tcp_world

from cobre.comm import BackendError, MismatchedCallError, PeerLostError, ShmConfig, create_communicator, launch
from cobre.comm.backends.tcp.transport import waiting
from cobre.comm.launch import WorkerError
from cobre.comm.testing.case import all_cases

TESTS = Path(__file__).resolve().parents[2]
WHO = rf"\(host {re.escape(socket.gethostname())}, pid \d+\)"
both_backends = pytest.mark.parametrize("backend", ["shm", "tcp"])


def references_by_cause():
    """Return the references of each cause of the table above."""
    references_by_cause = {}
    for line in __doc__.splitlines():
        cause, bar, references = line.partition("|")
        if bar and not cause.startswith(("cause", "---")):
            key = cause.strip() or list(references_by_cause)[-1]
            references_by_cause.setdefault(key, []).extend(filter(None, map(str.strip, references.split(","))))
    return references_by_cause


def exists(reference):
    kind, _, name = reference.partition(" ")
    if kind == "kit":
        return f"faults/{name}" in all_plans()
    if kind == "case":
        return name in all_cases()
    file, _, test = reference.partition("::") if ".py" in reference else (Path(__file__).name, "", reference)
    paths = list(TESTS.rglob(file))
    return len(paths) == 1 and (not test or f"def {test}(" in paths[0].read_text())


def test_table_names_tests_that_exist():
    assert len(references_by_cause()) == 19
    assert not [(cause, name) for cause, names in references_by_cause().items() for name in names if not exists(name)]


def run_error(function, size, backend, **options):
    """Return the text of the error that ends the run."""
    with pytest.raises(launch.WorkerError) as caught:
        launch.run(function, size, backend, environment=options, output=lambda *_: None)
    return str(caught.value)


@both_backends
def test_raising_rank_is_reported(backend):
    def train(comm):
        comm.barrier(label="stage 86")
        if comm.rank == 2:
            raise ArithmeticError("backward pass, iteration 12, stage 87")
        comm.barrier(label="stage 87")

    text = run_error(train, 4, backend)
    cause = "ArithmeticError: backward pass, iteration 12, stage 87"
    assert re.match(rf"Run stopped: rank 2 {WHO} raised {cause}\nTraceback", text)
    assert 'raise ArithmeticError("backward pass' in text and "last calls: #1 barrier 'stage 86'" in text
    assert text.endswith("3 other ranks were healthy and have exited.")


@both_backends
def test_killed_rank_is_reported(backend):
    def train(comm):
        comm.barrier()
        if comm.rank == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.barrier()

    text = run_error(train, 4, backend)
    end = r"was killed by SIGKILL \(signal 9\): likely out of memory. Try fewer ranks."
    assert re.match(f"Run stopped: rank 3 {WHO} {end}", text)


@pytest.mark.parametrize(
    ("backend", "options", "silence"),
    [
        ("shm", {}, "has sent no heartbeat for"),
        ("tcp", {}, "has sent no heartbeat for"),
        ("tcp", {"COBRE_TCP_RANKS_PER_HOST": "1"}, "has sent no heartbeat for"),
    ],
)
def test_frozen_rank_is_reported(backend, options, silence):
    """The message names the rank, the time, the call, and its last action."""

    def train(comm):
        comm.barrier(label="forward")
        if comm.rank == 1:
            end = time.monotonic() + 2.0  # heartbeats of a computing rank continue
            while time.monotonic() < end:
                sum(range(1000))
            os.kill(os.getpid(), signal.SIGSTOP)
        comm.barrier(label="backward")

    name = f"COBRE_{backend.upper()}_TIMEOUT_SECS"
    text = run_error(train, 3, backend, **{name: "2"}, **options)
    last = r"its last (?:known )?call was #1 barrier 'forward'"
    match = re.search(rf"barrier call #2 failed: rank 1 {WHO} {silence} (\d+\.\d) s \(stopped.*; {last}", text)
    assert match and float(match[1]) >= 2.0  # the timeout, plus the detection delay of this machine
    assert "#2 barrier 'backward' under way for" in text


@pytest.mark.parametrize("ranks_per_host", ["1", "2"])
def test_last_call_of_dead_rank_is_recent(ranks_per_host):
    """Check that it is recent: a heartbeat may be a second old, and a rank makes thousands of calls in a second."""

    def train(comm):
        for _ in range(1100):
            comm.barrier()
        if comm.rank == 1:
            os._exit(7)
        try:
            comm.barrier()
        except PeerLostError as error:
            launch.send_to_parent(str(error))

    lines = []
    with pytest.raises(WorkerError):
        launch.run(
            train,
            2,
            "tcp",
            environment={"COBRE_TCP_RANKS_PER_HOST": ranks_per_host},
            output=launch.discard,
            on_message=lambda _, line: lines.append(line),
        )
    (text,) = lines
    numbers = [int(number) for number in re.findall(r"its last (?:known )?call was #(\d+)", text)]
    assert numbers and min(numbers) >= 1100, text


def test_long_wait_names_the_missing_rank(monkeypatch, caplog):
    """Check the progress line logged while waiting: missing rank, call, last action."""
    monkeypatch.setattr(waiting, "PROGRESS_S", 0.5)
    with tcp_world(2, timeout_s=DEADLINE_S, ranks_per_host=1) as world:
        comms = results(world.start_all())
        world.everywhere(comms, lambda comm: comm.barrier(label="forward"))
        waits = threading.Thread(target=comms[0].barrier, kwargs={"label": "backward"})
        waits.start()
        words = rf"rank 0 of 2 \(tcp\) has waited \d+ s in barrier call #2 for rank 1 {WHO[:-2]}"
        wait_for_log(caplog, rf"{words}, last known call #1 barrier 'forward'\)")
        comms[1].barrier(label="backward")
        waits.join(DEADLINE_S)
        assert not waits.is_alive()


@pytest.mark.timeout(180)
def test_wait_of_half_a_minute_names_the_missing_rank(tmp_path):
    """Check the same on shared memory, after the time that the contract specifies."""

    def train(comm, shown):
        class Show(logging.Handler):
            def emit(self, record):
                shown.with_suffix(".part").write_text(record.getMessage())
                shown.with_suffix(".part").rename(shown)

        comm.barrier(label="forward")
        if comm.rank == 0:
            logging.getLogger("cobre.comm").addHandler(Show())
        else:
            deadline = time.monotonic() + 100
            while not shown.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
        comm.barrier(label="backward")
        return os.getpid()

    shown = tmp_path / "shown"
    pids = launch.run(train, 2, "shm", args=(shown,))
    wait = r"rank 0 of 2 \(shm\) has waited 3\d s in barrier call #2"
    last_calls = "last calls here: #1 barrier 'forward'"
    answers = shown.read_text()
    last = rf"for rank 1 \(pid {pids[1]}, last call #1 barrier 'forward'\)"
    assert re.match(f"{wait} {last}; {last_calls}", answers), answers


def wait_for_log(caplog, pattern):
    deadline = time.monotonic() + DEADLINE_S
    while not any(re.search(pattern, record.getMessage()) for record in list(caplog.records)):
        assert time.monotonic() < deadline, f"no rank logged '{pattern}', only {caplog.text}"
        time.sleep(0.01)


def test_rank_that_never_starts_is_reported():
    """Check shared memory; the table names the test for tcp."""
    name = f"cobre-never-{os.getpid()}"
    errors = {}

    def join(rank):
        try:
            create_communicator(ShmConfig(name, rank, 4, connect_timeout_s=2.0)).close()
        except BackendError as error:
            errors[rank] = str(error)

    threads = [threading.Thread(target=join, args=(rank,)) for rank in (0, 1, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert set(errors) == {0, 1, 3}
    for text in errors.values():
        assert re.search(r"3 of 4 ranks joined .* after [\d.]+ s; missing rank 2", text)


@both_backends
def test_mismatched_calls_are_reported(backend):
    def train(comm):
        comm.barrier()
        try:
            if comm.rank == 3:
                comm.barrier()
            else:
                comm.allgatherv(np.zeros(104), np.zeros(416), [104] * 4)
        except MismatchedCallError as error:
            return str(error), error.ranks

    answers = launch.run(train, 4, backend)
    words = r"rank 0: allgatherv \(float64, 104 of 416, counts [0-9a-f]+\) vs rank 3: barrier at call #2"
    assert all(re.search(words, text) and ranks == (0, 3) for text, ranks in answers)


EXIT = """
import threading, time
from cobre.comm import create_communicator

comm = create_communicator()
comm.barrier()
if comm.rank == 0:  # the harder end: with a call in flight that is never answered
    threading.Thread(target=comm.barrier, daemon=True).start()
    while comm.state == "open":  # then busy, or broken already if rank 1 was quick
        time.sleep(0.001)
print("leaves at", time.monotonic(), flush=True)
"""


@both_backends
def test_exit_without_close_is_reported(backend, tmp_path):
    """Check that a process that ends without closing, in or outside a call, is reported within five seconds."""
    script = tmp_path / "exits.py"
    script.write_text(EXIT)
    code, out, err = finish(start_python("-m", "cobre.comm.launch", "-n", "2", "--backend", backend, script))
    ended = time.monotonic()
    left = [float(line.split()[-1]) for line in out.splitlines() if "leaves at" in line]
    assert len(left) == 2, (code, out, err)
    assert ended - max(left) < 5.0

"""Rendezvous of ranks on one machine: missing and dead ranks, strangers at the socket, separate networks."""

import array
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from processes import finish, start_python, wait_until
from shm_worlds import NOBODY, address_of, fresh_name, is_joining, joined_ranks, names, start_rank

WAITS = """if comm.rank == 2:
            print("computes", flush=True)
            import sys; sys.stdin.read()
        comm.barrier()"""


needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="acting as another user needs root and setpriv"
)


@pytest.fixture
def name():
    with fresh_name() as chosen:
        yield chosen


def two_of_three(name, **options):
    """Yield ranks 0 and 1, which have joined and wait for rank 2."""
    ranks = [start_rank(name, rank, size=3, **options) for rank in range(2)]
    wait_until(lambda: joined_ranks(name) == 2, "two ranks have joined")
    return ranks


def is_asleep(process):
    return Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"


@pytest.mark.parametrize("victim", [0, 1])
def test_dead_joined_rank_is_named_despite_missing_rank(name, victim):
    ranks = two_of_three(name)
    ranks[victim].send_signal(signal.SIGKILL)
    _, out, err = finish(ranks[1 - victim])
    assert f"rank {victim} (host" in out and "died before all 3 ranks had joined" in out, err
    assert f"pid {ranks[victim].pid}" in out
    finish(ranks[victim])
    assert not is_joining(name)


def test_rank_that_joins_after_a_death_reports_it(name):
    ranks = two_of_three(name)
    ranks[1].send_signal(signal.SIGKILL)
    late = start_rank(name, 2, size=3)
    for rank in (ranks[0], late):
        _, out, err = finish(rank)
        assert "rank 1 (host" in out and "died" in out, err
    finish(ranks[1])


def test_rank_that_dies_in_a_barrier_is_named_while_others_still_compute(name):
    """The dead rank had arrived: its death is reported before the last rank arrives."""
    ranks = [start_rank(name, rank, size=3, turn=WAITS, stdin=subprocess.PIPE) for rank in range(3)]
    for rank in ranks:
        assert rank.stdout.readline() == "joined\n"
    assert ranks[2].stdout.readline() == "computes\n"
    wait_until(lambda: is_asleep(ranks[0]), "rank 0 waits in the barrier")
    ranks[0].send_signal(signal.SIGKILL)
    _, out, err = finish(ranks[1])
    assert "PeerLostError" in out and "rank 0" in out, err
    _, out, err = finish(ranks[2], typed="")
    assert "PeerLostError" in out and "rank 0" in out, err
    finish(ranks[0])


def test_stopped_and_missing_ranks_are_both_reported(name):
    ranks = two_of_three(name, CONNECT_TIMEOUT_SECS="4")
    ranks[0].send_signal(signal.SIGSTOP)
    _, out, err = finish(ranks[1])
    ranks[0].send_signal(signal.SIGKILL)
    finish(ranks[0])
    assert "2 of 3 ranks joined" in out and "missing rank 2; rank 0 (host" in out, err
    assert "no heartbeat" in out


def test_ranks_killed_while_joining_leave_no_files(name):
    ranks = two_of_three(name)
    assert is_joining(name) and names(name) == [], "a socket, no name"
    for rank in ranks:
        rank.send_signal(signal.SIGKILL)
    for rank in ranks:
        finish(rank)
    assert not is_joining(name)


AS_ANOTHER_USER = """
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
    if sys.argv[1] == "ask":
        sock.connect(ADDRESS)
        print(sock.recvmsg(1, socket.CMSG_SPACE(4))[:2])
    else:
        sock.bind(ADDRESS)
        sock.listen()
        print("listens", flush=True)
        sys.stdin.read()
"""


def as_another_user(what, name):
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "/usr/bin/python3"]
    script = AS_ANOTHER_USER.replace("ADDRESS", repr(address_of(name)))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*user, "-c", script, what], text=True, **pipes)


@needs_root
@pytest.mark.parametrize("rank", [0, 1])
def test_socket_of_another_user_is_refused_by_name(name, rank):
    stranger = as_another_user("listen", name)
    assert stranger.stdout.readline() == "listens\n", stranger.stderr.read()
    _, out, err = finish(start_rank(name, rank))
    stranger.communicate()
    assert f"{name} belongs to user {NOBODY} (pid {stranger.pid})" in out and "COBRE_SHM_NAME" in out, err


@needs_root
def test_another_user_is_refused_the_segment(name):
    first = start_rank(name, 0)
    wait_until(lambda: is_joining(name), "rank 0 waits")
    _, out, err = finish(as_another_user("ask", name))
    assert out == "(b'', [])\n", err
    assert finish(start_rank(name, 1))[1] == finish(first)[1] == "joined\n"


def test_silent_or_closing_process_of_same_user_is_ignored(name):
    """Ranks join in spite of a process that hangs up or keeps silent."""
    first = start_rank(name, 0)
    wait_until(lambda: is_joining(name), "rank 0 waits")
    silent = []
    for turn in range(200):
        visitor = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        visitor.connect(address_of(name))
        visitor.close() if turn % 2 else silent.append(visitor)
    assert finish(start_rank(name, 1))[1] == finish(first)[1] == "joined\n"
    for visitor in silent:
        visitor.close()


@pytest.mark.parametrize("content", ["nothing", "another file"])
def test_listener_that_sends_no_segment_is_ignored(name, content, tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "file").chmod(0o600)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock, (tmp_path / "file").open("r+b") as stream:
        sock.bind(address_of(name))
        sock.listen()
        rank = start_rank(name, 1, CONNECT_TIMEOUT_SECS="1")
        visitor, _ = sock.accept()
        with visitor:
            descriptors = array.array("i", [stream.fileno()])
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)] if content == "another file" else []
            visitor.sendmsg([b"\0"], ancillary)
        _, out, err = finish(rank)
    assert "rank 0 has not created segment" in out, err
    assert (tmp_path / "file").read_bytes() == b"mine"


@pytest.mark.parametrize("rendezvous", ["socket", "name"])
def test_rank_without_rank_0_creates_nothing(name, rendezvous):
    """Rank 0 creates the segment; others only open and map it."""
    _, out, err = finish(start_rank(name, 1, RENDEZVOUS=rendezvous, CONNECT_TIMEOUT_SECS="1"))
    assert "rank 0 has not created segment" in out, err
    assert not is_joining(name) and names(name) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
@pytest.mark.parametrize("rendezvous", ["socket", "name"])
def test_ranks_with_separate_network_namespaces_need_the_rendezvous_by_name(name, rendezvous):
    alone = ("unshare", "--net")
    limit = "20" if rendezvous == "name" else "2"
    first = start_rank(name, 0, RENDEZVOUS=rendezvous, CONNECT_TIMEOUT_SECS=limit)
    second = start_rank(name, 1, wrapper=alone, CONNECT_TIMEOUT_SECS=limit)
    outputs = [finish(rank)[1] for rank in (first, second)]
    if rendezvous == "name":
        assert outputs == ["joined\n", "joined\n"]
    else:
        assert "missing rank 1" in outputs[0] and "COBRE_SHM_RENDEZVOUS=name" in outputs[1]


def test_name_is_reusable_by_successive_worlds(name):
    """Worlds may also overlap in time: ranks of the second never join the first."""
    program = """
import os, sys
from cobre.comm import ShmConfig, create_communicator
for turn in range(50):
    rank = (int(sys.argv[1]) + turn) % 2
    with create_communicator(ShmConfig(sys.argv[2], rank, 2, connect_timeout_s=20.0)) as comm:
        comm.barrier()
print("done")
"""
    for rank in [start_python("-c", program, rank, name) for rank in range(2)]:
        code, out, err = finish(rank)
        assert (code, out) == (0, "done\n"), err
    assert not is_joining(name)

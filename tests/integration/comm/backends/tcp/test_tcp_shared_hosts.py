"""Ranks of a tcp world that share memory: who shares, traffic between hosts, and reports of deaths."""

import os
import signal
import stat
import time

import pytest
from processes import finish, start_python
from tcp_processes import Rank
from tcp_worlds import (
    DEADLINE_S,
    HEAD_BYTES,
    PART_BYTES,
    SECRET,
    data_channel,
    gather,
    new_address,
    results,
    sent_and_received,
    tcp_world,
)

from cobre._native import ShmSegment
from cobre.comm import TcpConfig
from cobre.comm.backends.tcp import node_group
from cobre.comm.testing.steps import expected_digest, run_program

QUICK_S = 10.0  # generous on a busy machine, and far below the timeouts of these worlds


def split_local(comm):
    with comm.split_local() as local:
        return local.rank, local.size


def test_ranks_of_one_host_share_by_default():
    with tcp_world(3) as world:
        communicators = results(world.start_all())
        assert world.everywhere(communicators, split_local) == [(0, 3), (1, 3), (2, 3)]
        assert [comm.is_leader for comm in communicators] == [True, False, False]


def test_ranks_per_host_splits_a_host():
    with tcp_world(5, ranks_per_host=2) as world:
        communicators = results(world.start_all())
        assert world.everywhere(communicators, split_local) == [(0, 2), (1, 2), (0, 2), (1, 2), (0, 1)]


@pytest.mark.parametrize("hosts_of", [(0, 1, 0, 1), (0, 1, 1, 0, 2), (0, 0, 1, 1, 1)])
def test_rank_order_across_hosts_does_not_change_bits(monkeypatch, hosts_of):
    """Slurm may distribute tasks cyclically; a host may have a single rank."""
    monkeypatch.setattr(
        node_group, "_memory_identity", lambda config: bytes([hosts_of[config.rank]]) * node_group.IDENTITY_BYTES
    )
    size, seed, length = len(hosts_of), 5, 60
    with tcp_world(size) as world:
        communicators = results(world.start_all())
        digests = world.everywhere(communicators, lambda comm: run_program(comm, seed, length))
        assert digests == [expected_digest(size, seed, length)] * size


@pytest.mark.parametrize(
    ("ranks_per_host", "expected"), [(0, [(0, 0)] * 3), (2, [(0, 0), (2, 2), (0, 0)]), (1, [(1, 3)] * 3)]
)
def test_every_byte_moves_once_between_hosts(ranks_per_host, expected):
    with tcp_world(4, ranks_per_host=ranks_per_host, ring_bytes=0) as world:
        communicators = results(world.start_all())
        assert all(world.everywhere(communicators, gather))
        for comm, parts in zip(communicators[1:], expected, strict=True):
            for actual, expected_parts in zip(sent_and_received(data_channel(comm)), parts, strict=True):
                assert expected_parts * PART_BYTES <= actual < expected_parts * PART_BYTES + HEAD_BYTES


def test_no_memory_is_shared_if_one_rank_cannot_open_it(monkeypatch, caplog):
    class Refusing(ShmSegment):
        @staticmethod
        def open(pid, descriptor, inode):
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(node_group, "ShmSegment", Refusing)
    with tcp_world(3) as world:
        communicators = results(world.start_all())
        assert all(comm.is_leader for comm in communicators)
        assert all(world.everywhere(communicators, gather))
    assert "ranks do not share memory: ranks [1, 2] cannot open the shared memory of their host" in caplog.text
    assert "Permission denied" in caplog.text


def test_shared_memory_is_private_to_user():
    memory = ShmSegment.create(2, 0)
    status = os.fstat(memory.descriptor)
    assert (status.st_uid, stat.S_IMODE(status.st_mode), status.st_nlink) == (os.geteuid(), 0o600, 0)


def test_another_object_behind_the_descriptor_is_refused():
    """Ranks compare the memory behind the descriptor with the one that was offered."""
    memory = ShmSegment.create(2, 0)
    with pytest.raises(OSError, match="Stale"):
        ShmSegment.open(os.getpid(), memory.descriptor, memory.inode + 1)


@pytest.fixture
def start():
    ranks = []

    def start_all(action, **options):
        options = {"secret": SECRET, "timeout_s": 30.0, "ranks_per_host": 2} | options
        address = new_address()
        ranks.extend(Rank(action, TcpConfig(address, rank, 4, **options)) for rank in range(4))
        for rank in ranks:
            rank.wait_for("joined")
        return ranks

    yield start_all
    for rank in ranks:
        rank.end()


@pytest.mark.parametrize(
    ("action", "lost", "waiting"),
    [
        ("lose_a_rank_whose_host_computes", 3, (0, 1)),
        ("lose_a_rank_while_a_neighbour_computes", 3, (0, 2)),
        ("lose_the_coordinator_while_a_neighbour_computes", 0, (1, 2)),
    ],
)
def test_death_is_reported_while_a_rank_of_some_host_computes(start, action, lost, waiting):
    ranks = start(action)
    begin = time.monotonic()
    for rank in waiting:
        event = ranks[rank].wait_for("error")
        assert (event["error"], event["ranks"]) == ("PeerLostError", [lost])
    assert time.monotonic() - begin < QUICK_S


def test_death_in_a_fence_is_reported_on_its_host(start):
    """The death is also reported when the coordinator and others have left."""
    ranks = start("die_before_a_fence")
    for rank in ranks[:2]:
        assert rank.wait_for("fenced")
        assert rank.process.wait(DEADLINE_S) == 0
    ranks[3].send_command()
    event = ranks[2].wait_for("error")
    assert (event["error"], event["ranks"]) == ("PeerLostError", [3])


def test_rank_may_leave_after_a_fence(start):
    ranks = start("fence_and_leave")
    for rank in ranks[2:]:
        assert rank.wait_for("fenced")
        assert rank.process.wait(DEADLINE_S) == 0
    ranks[0].send_command()
    for rank in ranks[:2]:
        assert rank.wait_for("fenced")
        assert rank.process.wait(DEADLINE_S) == 0


DIES_WHILE_JOINING = """
import os, signal, sys, time
from cobre.comm import BackendError, create_communicator
from cobre.comm.backends.tcp import communicator

step = getattr(communicator, sys.argv[1])

def dies_there(*arguments):
    if os.environ["COBRE_TCP_RANK"] == "2":
        os.kill(os.getpid(), signal.SIGKILL)
    # The coordinator comes late to the first exchange: its monitor has seen the end of rank 2 by then.
    if os.environ["COBRE_TCP_RANK"] == "0" and sys.argv[1] == "find_nodes":
        while not arguments[0].monitor.departed:
            time.sleep(0.01)
    return step(*arguments)

setattr(communicator, sys.argv[1], dies_there)
try:
    create_communicator("tcp")
except BackendError as error:
    print(error)
"""


@pytest.mark.parametrize("step", ["find_nodes", "NodeGroup", "join_memory"])
@pytest.mark.parametrize("ranks_per_host", [0, 2])
def test_death_while_ranks_join_shared_memory_is_reported_at_once(step, ranks_per_host):
    """Shared memory does not show the death of a rank without a slot; joining has a longer timeout than the test."""
    address = new_address()
    options = {"secret": SECRET, "connect_timeout_s": 900.0, "timeout_s": 900.0, "ranks_per_host": ranks_per_host}
    configs = [TcpConfig(address, rank, 4, **options) for rank in range(4)]
    ranks = [start_python("-c", DIES_WHILE_JOINING, step, env=os.environ | config.to_env()) for config in configs]
    for number, (code, out, err) in enumerate([finish(rank) for rank in ranks]):
        if number == 2:
            assert code == -signal.SIGKILL
        else:
            assert code == 0 and "rank 2 (" in out and "died" in out, (number, out, err)

"""Ranks that wait on tcp: names in progress lines, limits of a call, and peers that break the protocol."""

import numpy as np
import pytest
from processes import wait_until
from tcp_worlds import SECRET, failure, results, tcp_world, wait_until_listening

from cobre.comm import AllocationFailedError, CollectiveFailedError, InitializationFailedError, PeerTimeoutError
from cobre.comm.backends.tcp.rendezvous.handshake import WorkerHandshake
from cobre.comm.backends.tcp.transport import waiting
from cobre.comm.backends.tcp.wire.messages import FailureKind, FailureRecord, Link
from cobre.comm.backends.tcp.wire.protocol import Tag, frame


def test_worker_names_the_rank_that_it_waits_for(monkeypatch, caplog):
    monkeypatch.setattr(waiting, "PROGRESS_S", 0.2)
    with tcp_world(3, ranks_per_host=1, timeout_s=10.0) as world:
        comms = results(world.start_all())

        def late(comm):
            if comm.rank == 2:
                for rank in range(2):
                    wait_until(lambda rank=rank: has_logged_rank_2(caplog, rank), f"rank {rank} names rank 2")
            comm.barrier()

        assert world.everywhere(comms, late) == [None] * 3


def has_logged_rank_2(caplog, rank):
    """Return whether this rank has logged that it waits for rank 2; workers learn that from the coordinator."""
    lines = [record.getMessage() for record in list(caplog.records)]
    begin, middle = f"rank {rank} of 3 (tcp) has waited", "s in barrier call #1 for rank 2"
    return any(line.startswith(begin) and middle in line for line in lines)


def test_call_timeout_names_late_rank():
    with tcp_world(3, ranks_per_host=1, operation_timeout_s=0.5) as world:
        comms = results(world.start_all())
        errors = world.everywhere(comms[:2], lambda comm: comm.barrier())
        for error in errors:
            assert isinstance(error, PeerTimeoutError) and [peer.rank for peer in error.peers] == [2]


def test_oversized_region_raises_on_all_ranks():
    with tcp_world(2, ranks_per_host=1) as world:
        comms = results(world.start_all())
        errors = world.everywhere(comms, lambda comm: comm.create_shared_region(1 << 55, np.float64))
        assert all(isinstance(error, AllocationFailedError) for error in errors)
        assert world.everywhere(comms, lambda comm: comm.barrier()) == [None, None]


def join_without_communicator(world):
    """Join as rank 1 without a communicator, up to the start; return the connections by link."""
    socks = {}
    for link in (Link.CONTROL, Link.DATA):
        socks[link] = world.connect()
        handshake = WorkerHandshake(1, world.size, "", SECRET.encode(), link, b"instance of once")
        socks[link].sendall(handshake.begin())
        while not (handshake.has_started if link is Link.DATA else handshake.is_welcome):
            socks[link].sendall(handshake.receive(socks[link].recv(handshake.needed)))
    return socks


GIVES_UP = FailureRecord(FailureKind.ABORTED, 0, (), "no more water").pack()


@pytest.mark.parametrize(
    "message,words",
    [
        (frame(Tag.ABORT, GIVES_UP), "no more water"),  # an abort that names no rank is the sender's own
        (frame(Tag.FAILURE, GIVES_UP), "rank 1"),  # only the coordinator declares failures
        (b"\xff" * 64, "rank 1"),
    ],
    ids=["abort", "failure", "garbage"],
)
def test_worker_that_gives_up_or_breaks_the_protocol_is_named(message, words):
    with tcp_world(2, timeout_s=3.0) as world:
        coordinator = world.start(0)
        wait_until_listening(world)
        join_without_communicator(world)[Link.CONTROL].sendall(message)
        error = failure(coordinator)
        assert isinstance(error, (InitializationFailedError, CollectiveFailedError))
        assert words in str(error)

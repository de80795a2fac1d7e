"""Failures that only tcp has, with real processes; the kit has the faults that all backends share."""

import os
import signal
import subprocess
import time

import pytest
from tcp_processes import Rank
from tcp_worlds import DEADLINE_S, SECRET, new_address

from cobre.comm import TcpConfig

QUICK_S = 10.0  # generous on a busy machine, and far below the timeouts of these worlds


@pytest.fixture
def start():
    ranks = []

    def start_all(action, size, **options):
        options = {"secret": SECRET, "timeout_s": 30.0} | options
        address = new_address()
        ranks.extend(Rank(action, TcpConfig(address, rank, size, **options)) for rank in range(size))
        for rank in ranks:
            rank.wait_for("joined")
        return ranks

    yield start_all
    for rank in ranks:
        rank.end()


def test_payload_may_wait_longer_than_the_timeout(start):
    """The timeout is long enough for four heartbeats on a busy machine; the payload waits for two timeouts."""
    timeout_s = 4.0
    coordinator, *workers = ranks = start("late_coordinator", 3, timeout_s=timeout_s)
    for worker in workers:
        worker.wait_for("sending")
    end = time.monotonic() + 2 * timeout_s
    while (left_s := end - time.monotonic()) > 0:
        for worker in workers:
            with pytest.raises(subprocess.TimeoutExpired):
                worker.process.wait(min(left_s, 0.5))
    coordinator.send_command()
    for rank in ranks:
        assert rank.wait_for("good")["good"]


def test_forked_child_does_not_keep_a_dead_rank_alive(start):
    ranks = start("die_with_a_child", 3)
    for rank in ranks[:2]:
        event = rank.wait_for("error")
        assert (event["error"], event["ranks"]) == ("PeerLostError", [2])


def test_death_is_reported_while_the_coordinator_computes(start):
    ranks = start("idle_coordinator", 3)
    begin = time.monotonic()
    event = ranks[1].wait_for("error")
    assert time.monotonic() - begin < QUICK_S
    assert (event["error"], event["ranks"]) == ("PeerLostError", [2])
    ranks[0].send_command()
    assert ranks[0].wait_for("error")["ranks"] == [2]


@pytest.mark.parametrize("ranks_per_host", [0, 1])
def test_stopped_rank_is_reported_while_the_coordinator_computes(start, ranks_per_host):
    ranks = start("idle_coordinator_and_a_stopped_worker", 3, timeout_s=3.0, ranks_per_host=ranks_per_host)
    event = ranks[1].wait_for("error")
    assert (event["error"], event["ranks"]) == ("PeerTimeoutError", [2])
    ranks[0].send_command()
    assert ranks[0].wait_for("error")["ranks"] == [2]


@pytest.mark.parametrize("size", [2, 4])
def test_abort_reaches_ranks_that_are_in_no_call(start, size):
    ranks = start("abort_between_calls", size)
    assert ranks[-1].wait_for("state")["state"] == "broken"
    for rank in ranks[:-1]:
        event = rank.wait_for("error")
        assert event["error"] == "AbortedError" and "no more data" in event["message"]
        assert f"rank {size - 1} (host" in event["message"]


@pytest.mark.parametrize("size", [2, 4])
def test_rank_may_end_after_the_last_call(start, size):
    for rank in start("leave_early", size):
        assert rank.wait_for("good")["good"]
        assert rank.process.wait(DEADLINE_S) == 0


def test_interrupt_ends_the_wait_and_the_world(start):
    ranks = start("wait_interrupted", 2)
    ranks[0].wait_for("waiting")
    os.kill(ranks[0].process.pid, signal.SIGINT)
    ranks[0].wait_for("interrupted")
    ranks[1].send_command()
    event = ranks[1].wait_for("error")
    assert event["error"] == "AbortedError" and "KeyboardInterrupt" in event["message"]

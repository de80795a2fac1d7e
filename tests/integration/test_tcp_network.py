"""Faults of a real network between two hosts."""

import pytest
from network_hosts import NOT_PERMITTED, Network, is_permitted
from tcp_processes import Rank
from tcp_worlds import SECRET

from cobre.comm import TcpConfig

pytestmark = pytest.mark.skipif(not is_permitted(), reason=NOT_PERMITTED)


@pytest.fixture
def network():
    with Network() as hosts:
        yield hosts


@pytest.fixture
def start(network):
    """Start rank 0 on the left host and all others on the right one, in the order asked for."""
    ranks = {}

    def start_some(action, order, size=3, **options):
        options = {"coordinator": "10.77.0.1", "secret": SECRET, "timeout_s": 3.0} | options
        for rank in order:
            host = network.left if rank == 0 else network.right
            ranks[rank] = Rank(action, TcpConfig(rank=rank, size=size, **options), network.on(host))
        return [ranks[rank] for rank in sorted(ranks)]

    yield start_some
    for rank in ranks.values():
        rank.end()


@pytest.mark.parametrize("action", ["barriers", "gathers"])
@pytest.mark.parametrize("coordinator", ["10.77.0.1", "[fd77::1]:4000"])
def test_a_cut_link_is_noticed_on_both_sides(network, start, action, coordinator):
    ranks = start(action, [0, 1, 2], coordinator=coordinator)
    for rank in ranks:
        rank.hear("running")
    network.set_link("down")
    left, *right = [rank.hear("error") for rank in ranks]
    assert left["error"] == "PeerTimeoutError" and left["ranks"] and set(left["ranks"]) <= {1, 2}
    assert "lost contact" in left["message"] and "no heartbeat for" in left["message"]
    assert [(seen["error"], seen["ranks"]) for seen in right] == [("PeerTimeoutError", [0])] * 2


def test_a_link_that_comes_back_in_time_costs_nothing_but_time(network, start):
    ranks = start("gather_when_told", [0, 1, 2], timeout_s=30.0)
    for rank in ranks:
        rank.hear("running")
    network.set_link("down")
    ranks[0].tell()
    network.set_link("up")
    assert all(rank.hear("good")["good"] for rank in ranks)


def test_a_late_coordinator_is_waited_for(start):
    workers = start("gather_when_told", [2, 1])
    ranks = start("gather_when_told", [0])
    assert len(workers) == 2 and len(ranks) == 3
    ranks[0].tell()
    assert all(rank.hear("good")["good"] for rank in ranks)


def test_a_host_that_is_not_there_is_named(start):
    (worker,) = start("barriers", [1], coordinator="10.77.0.9", connect_timeout_s=2.0)
    seen = worker.hear("refused")
    assert seen["refused"] == "InitializationFailedError" and "10.77.0.9:29500" in seen["message"]
    assert "rank 0, the coordinator" in seen["message"]


def test_other_hosts_are_refused_without_a_secret(start):
    for rank in start("barriers", [0, 1], secret="", size=2):
        assert rank.hear("refused")["refused"] == "MissingConfigurationError"

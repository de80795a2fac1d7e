"""Faults of a real network during a run: every rank raises in time and names the lost rank."""

import time

import pytest
from network_hosts import COORDINATOR_V6
from network_worlds import SIZE, TIMEOUT_S, in_time, needs_hosts

pytestmark = needs_hosts
LIMIT_S = 60.0  # far above every bound here: only a closed connection can tell so soon


def names_silent_rank(event, rank):
    """Return whether the error names the silent rank, its host and the duration of the silence."""
    return (
        (event["error"], event["ranks"]) == ("PeerTimeoutError", [rank])
        and f"rank {rank} (host cobre{rank}-" in event["message"]
        and "has sent no heartbeat for" in event["message"]
    )


def check_silent_rank_is_named(ranks, cut_off, since, survivors=None):
    """Check that ranks on the coordinator's side name the rank that is cut off, and that it names the coordinator."""
    for rank in range(SIZE) if survivors is None else survivors:
        event = ranks[rank].wait_for("error")
        assert names_silent_rank(event, 0 if rank == cut_off else cut_off), event
        assert in_time(event, since), f"rank {rank} learned of it after {event['at'] - since:.1f} s"


@pytest.mark.parametrize("action", ["barriers", "gathers"])
@pytest.mark.parametrize("coordinator", ["10.77.0.1", f"[{COORDINATOR_V6}]:4000"])
def test_cut_link_is_reported_on_both_sides(world, action, coordinator):
    ranks = world.run_all(action, coordinator=coordinator)
    cut = time.monotonic()
    world.network.pull(2)
    check_silent_rank_is_named(ranks, 2, cut)


def test_short_link_outage_is_survived(world):
    ranks = world.run_all("gather_on_command", timeout_s=30.0)
    world.network.pull(1)
    ranks[0].send_command()
    world.network.plug(1)
    assert all(rank.wait_for("good")["good"] for rank in ranks)


@pytest.mark.parametrize("action", ["barriers", "gathers"])
def test_unreachable_host_is_named(world, action):
    ranks = world.run_all(action)
    gone = time.monotonic()
    world.network.remove(1)
    ranks[1].kill()
    check_silent_rank_is_named(ranks, 1, gone, survivors=(0, 2))


def test_unreachable_coordinator_is_named(world):
    ranks = world.run_all("barriers")
    gone = time.monotonic()
    for host in (1, 2):
        world.network.remove(host)
    ranks[0].kill()
    for rank in (1, 2):
        event = ranks[rank].wait_for("error")
        assert names_silent_rank(event, 0), event
        assert in_time(event, gone)


@pytest.mark.parametrize("action", ["barriers", "gathers"])
def test_black_hole_is_reported_on_both_sides(world, action):
    ranks = world.run_all(action)
    begin = time.monotonic()
    world.network.swallow(2)
    check_silent_rank_is_named(ranks, 2, begin)


def test_black_hole_towards_coordinator_is_reported(world):
    """The coordinator receives nothing from the worker, but can still send the error."""
    ranks = world.run_all("barriers")
    begin = time.monotonic()
    world.network.swallow(2, inward=False)
    for rank, event in enumerate(rank.wait_for("error") for rank in ranks):
        assert event["error"] == "PeerTimeoutError" and "no heartbeat for" in event["message"], event
        assert in_time(event, begin), f"rank {rank} learned of it after {event['at'] - begin:.1f} s"


def test_black_hole_towards_worker_is_reported(world):
    """The worker gives up first and reports the reason; the others raise it although they receive every heartbeat."""
    ranks = world.run_all("barriers")
    begin = time.monotonic()
    world.network.swallow(2, outward=False)
    event = ranks[2].wait_for("error")
    assert names_silent_rank(event, 0), event
    for rank in ranks[:2]:
        event = rank.wait_for("error")
        assert in_time(event, begin), f"after {event['at'] - begin:.1f} s: {event}"
        assert "rank 2 (host cobre2-" in event["message"], event


@pytest.mark.parametrize("action", ["barriers", "gathers"])
def test_worker_that_dies_on_another_host_is_detected_at_once(world, action):
    ranks = world.run_all(action, timeout_s=LIMIT_S)
    died = time.monotonic()
    ranks[2].kill()
    for rank in ranks[:2]:
        event = rank.wait_for("error")
        assert (event["error"], event["ranks"]) == ("PeerLostError", [2]), event
        assert f"pid {ranks[2].pid}) died" in event["message"], event
        assert in_time(event, died, 0.0)


def test_slow_link_does_not_time_out(world):
    """The payload takes longer than the timeout on one rank's link: no rank times out, and all data arrives."""
    world.network.slow_down(1, "16mbit")
    ranks = world.start_all("gather_on_command", timeout_s=TIMEOUT_S / 2)
    begin = [rank.wait_for("running")["at"] for rank in ranks]
    ranks[0].send_command()
    ends = [rank.wait_for("good") for rank in ranks]
    assert all(end["good"] for end in ends)
    assert ends[1]["at"] - begin[1] > TIMEOUT_S / 2, "the link is not slow enough to prove anything"


@pytest.mark.parametrize("coordinator", [COORDINATOR_V6, f"[{COORDINATOR_V6}]:4000", "coordinator"])
def test_ipv6_only_hosts_form_a_world(world_of_v6, coordinator):
    for host in range(SIZE):
        world_of_v6.network.write_names(host, coordinator=[COORDINATOR_V6])
    world_of_v6.check_gather(world_of_v6.run_all("gather_on_command", coordinator=coordinator))

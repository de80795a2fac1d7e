"""Worlds between hosts that start late, incompletely or not at all: missing ranks, duplicates, wrong addresses."""

import time

from network_hosts import COORDINATOR, COORDINATOR_V6
from network_worlds import SIZE, in_time, needs_hosts
from tcp_worlds import SECRET

pytestmark = needs_hosts
CONNECT_S = 3.0


def wait_for_refusal(rank, *words):
    """Assert that the rank was refused with these words; return the event."""
    event = rank.wait_for("refused")
    for word in words:
        assert word in event["message"], event
    return event


def process_label(rank, process, host):
    """Return the texts by which messages name a process."""
    return f"rank {rank} (host cobre{host}-", f"pid {process.pid})"


def test_workers_wait_for_late_coordinator(world):
    workers = [world.start(rank, "gather_on_command") for rank in (2, 1)]
    for worker in workers:
        worker.wait_for("log", "refused")  # no process listens there yet
    world.check_gather([world.start(0, "gather_on_command"), *workers])


def test_workers_wait_for_late_coordinator_host(world):
    for host in (1, 2):
        world.network.pull(host)
    workers = [world.start(rank, "gather_on_command") for rank in (1, 2)]
    for worker in workers:
        worker.wait_for("log", "connecting to")
    for host in (1, 2):
        world.network.plug(host)
    world.check_gather([world.start(0, "gather_on_command"), *workers])


def test_name_that_resolves_late_is_logged_once_and_retried(world):
    for host in range(SIZE):
        world.network.write_names(host)
    ranks = world.start_all("gather_on_command", coordinator="coordinator")
    for rank in ranks:
        rank.wait_for("log", "cannot resolve coordinator")
    for host in range(SIZE):
        world.network.write_names(host, coordinator=[COORDINATOR])
    for rank in ranks:
        rank.wait_for("running")
    world.check_gather(ranks)


def test_black_hole_in_front_of_one_address_does_not_hide_the_next(world):
    for host in range(SIZE):
        world.network.write_names(host, coordinator=[COORDINATOR_V6, COORDINATOR])
    for host in (1, 2):
        world.network.swallow(host, families=(6,))
    ranks = world.start_all("gather_on_command", coordinator="coordinator")
    for rank in ranks[1:]:
        rank.wait_for("log", f"[{COORDINATOR_V6}]:29500: timed out")
    world.check_gather(ranks)


def test_black_hole_at_the_start_is_reported_on_both_sides(world):
    world.network.swallow(2)
    begin = time.monotonic()
    ranks = world.start_all("barriers", connect_timeout_s=CONNECT_S)
    for rank in ranks[:2]:
        event = wait_for_refusal(rank, "2 of 3 ranks joined after", "missing rank 2.")
        assert in_time(event, begin, CONNECT_S)
    event = wait_for_refusal(
        ranks[2], f"rank 2 could not connect to rank 0, the coordinator, at {COORDINATOR}:29500", "timed out"
    )
    assert in_time(event, begin, CONNECT_S)


def test_missing_host_is_named(world):
    worker = world.start(1, "barriers", coordinator="10.77.0.9", connect_timeout_s=CONNECT_S)
    event = wait_for_refusal(worker, "10.77.0.9:29500", "rank 0, the coordinator")
    assert event["refused"] == "InitializationFailedError"


def test_other_hosts_are_refused_without_a_secret(world):
    for rank in world.start_all("barriers", secret=""):
        event = wait_for_refusal(rank, "COBRE_TCP_SECRET_FILE", "COBRE_TCP_INSECURE=1")
        assert event["refused"] == "MissingConfigurationError"


def test_wrong_secret_is_reported_on_both_sides_in_time(world):
    coordinator = world.start(0, "gather_on_command")
    coordinator.wait_for("log", "backend tcp")
    # Without the secret a refusal cannot be proved: it is reported as unproven when the limit for joining is up.
    worker = world.start(1, "gather_on_command", secret="another secret altogether", connect_timeout_s=3.0)
    begin = time.monotonic()
    event = wait_for_refusal(
        worker, "the secret of rank 1 (host cobre1-", "differs from the coordinator's", "COBRE_TCP_SECRET_FILE"
    )
    assert in_time(event, begin, 30.0)
    logged = coordinator.wait_for("log", "the secret of rank 1")
    for text in (event["message"], logged["log"]):
        assert SECRET not in text and "another secret" not in text
    world.check_gather([coordinator, *(world.start(rank, "gather_on_command") for rank in (1, 2))])


def test_worker_that_is_restarted_before_the_start_takes_its_place_again(world):
    coordinator, first = world.start(0, "gather_on_command"), world.start(1, "gather_on_command")
    first.wait_for("log", "waiting for the other ranks")
    first.kill()
    coordinator.wait_for("log", "disconnected before all ranks had joined; it may connect again")
    second = world.start(1, "gather_on_command")
    second.wait_for("log", "waiting for the other ranks")
    world.check_gather([coordinator, second, world.start(2, "gather_on_command")])


def test_worker_that_is_restarted_during_a_run_is_refused(world):
    ranks = world.run_all("barriers")
    ranks[1].kill()
    for rank in (ranks[0], ranks[2]):
        event = rank.wait_for("error")
        assert (event["error"], event["ranks"]) == ("PeerLostError", [1]), event
    again = world.start(1, "barriers", connect_timeout_s=CONNECT_S)
    wait_for_refusal(again, f"rank 1 could not connect to rank 0, the coordinator, at {COORDINATOR}:29500", "refused")


def test_rank_with_other_world_size_is_refused(world):
    begin = time.monotonic()
    coordinator, other = (world.start(rank, "barriers", connect_timeout_s=CONNECT_S) for rank in (0, 2))
    odd = world.start(1, "barriers", size=SIZE + 1, connect_timeout_s=CONNECT_S)
    sides = (*process_label(1, odd, 1), "SIZE=4", *process_label(0, coordinator, 0), "SIZE=3")
    wait_for_refusal(odd, *sides)
    coordinator.wait_for("log", "SIZE=4")
    for rank in (coordinator, other):
        assert in_time(wait_for_refusal(rank, "2 of 3 ranks joined", "missing rank 1.", *sides), begin, CONNECT_S)


def test_duplicate_rank_on_two_hosts_is_refused(world):
    coordinator, first = world.start(0, "gather_on_command"), world.start(1, "gather_on_command")
    first.wait_for("log", "waiting for the other ranks")
    twin = world.start(1, "gather_on_command", host=2)
    wait_for_refusal(twin, "two processes claim rank 1", *process_label(1, first, 1), *process_label(1, twin, 2))
    coordinator.wait_for("log", "two processes claim rank 1")
    world.check_gather([coordinator, first, world.start(2, "gather_on_command")])


def test_port_of_earlier_run_is_reported(world):
    earlier = world.start(0, "gather_on_command")
    worker = world.start(1, "gather_on_command")
    worker.wait_for("log", "waiting for the other ranks")
    later = world.start(0, "barriers", run_id="later")
    wait_for_refusal(later, f"{COORDINATOR}:29500 is in use by another process", "COBRE_TCP_PORT")
    world.check_gather([earlier, worker, world.start(2, "gather_on_command")])

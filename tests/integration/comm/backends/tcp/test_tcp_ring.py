"""Large payloads from host to host: connections, routes, reports of deaths, and the fallback without a ring."""

import os
import signal
import socket
import time
from pathlib import Path

import numpy as np
import pytest
from network_worlds import in_time, needs_hosts
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
    ring_channels,
    sent_and_received,
    tcp_world,
)

from cobre.comm import CollectiveFailedError, MismatchedCallError, PeerLostError, TcpConfig
from cobre.comm.backends.tcp import node_group
from cobre.comm.backends.tcp.rendezvous import ring as ring_rendezvous
from cobre.comm.backends.tcp.rendezvous.handshake import WorkerHandshake
from cobre.comm.backends.tcp.wire.messages import Link
from cobre.comm.testing.steps import expected_digest, run_program

TLS = Path(__file__).resolve().parents[4] / "support" / "tls"
QUICK_S = 15.0  # generous on a busy machine, and far below the timeouts of these worlds


def ring_of(comm):
    return comm._collectives._ring


def broadcast(comm, root):
    buffer = np.full(PART_BYTES, comm.rank, np.uint8)
    comm.broadcast(buffer, root)
    comm.barrier()
    return bool((buffer == root).all())


@pytest.mark.parametrize("hosts_of", [(0, 1), (0, 1, 2), (0, 1, 0, 1), (0, 1, 1, 0, 2), (0, 0, 1, 1, 1, 2)])
def test_rank_order_across_hosts_does_not_change_bits(monkeypatch, hosts_of):
    """Rings of two and more hosts with one or several ranks; counts differ, and some are 0."""
    monkeypatch.setattr(
        node_group, "_memory_identity", lambda config: bytes([hosts_of[config.rank]]) * node_group.IDENTITY_BYTES
    )
    size, seed, length = len(hosts_of), 7, 80
    with tcp_world(size, ring_bytes=1) as world:
        communicators = results(world.start_all())
        assert [ring_of(comm) is not None for comm in communicators] == [comm.is_leader for comm in communicators]
        digests = world.everywhere(communicators, lambda comm: run_program(comm, seed, length))
        assert digests == [expected_digest(size, seed, length)] * size


@pytest.mark.parametrize(
    ("ranks_per_host", "size", "is_ring"), [(0, 4, False), (1, 2, False), (2, 4, False), (1, 3, True), (2, 5, True)]
)
def test_three_hosts_make_a_ring(ranks_per_host, size, is_ring):
    with tcp_world(size, ranks_per_host=ranks_per_host) as world:
        communicators = results(world.start_all())
        assert [ring_of(comm) is not None for comm in communicators if comm.is_leader] == [is_ring] * len(
            [comm for comm in communicators if comm.is_leader]
        )


def test_every_host_sends_and_receives_each_block_once():
    """Gathers send all blocks except the neighbour's own; broadcasts do not return to the root."""
    with tcp_world(4, ranks_per_host=1) as world:
        communicators = results(world.start_all())
        assert all(world.everywhere(communicators, gather))
        for comm in communicators:
            left, right = ring_channels(comm)
            assert 3 * PART_BYTES <= sent_and_received(right)[0] < 3 * PART_BYTES + HEAD_BYTES
            assert 3 * PART_BYTES <= sent_and_received(left)[1] < 3 * PART_BYTES + HEAD_BYTES
        for comm in communicators[1:]:
            assert max(sent_and_received(data_channel(comm))) < HEAD_BYTES
        before = [sent_and_received(ring_channels(comm)[1])[0] for comm in communicators]
        assert all(world.everywhere(communicators, lambda comm: broadcast(comm, 2)))
        after = [sent_and_received(ring_channels(comm)[1])[0] for comm in communicators]
        assert [(new - old) // PART_BYTES for old, new in zip(before, after, strict=True)] == [1, 0, 1, 1]


def test_small_payloads_go_through_the_coordinator():
    with tcp_world(3, ranks_per_host=1) as world:
        communicators = results(world.start_all())
        before = [sent_and_received(ring_channels(comm)[1])[0] for comm in communicators]
        recv = [np.zeros(4000) for _ in communicators]  # 32 KB
        world.everywhere(
            communicators, lambda comm: comm.allgatherv(np.ones(4000 * (comm.rank == 1)), recv[comm.rank], [0, 4000, 0])
        )
        assert all((one == 1).all() for one in recv)
        assert [sent_and_received(ring_channels(comm)[1])[0] for comm in communicators] == before


def test_rank_0_setting_applies_to_all_ranks():
    with tcp_world(3, ranks_per_host=1) as world:
        communicators = results([world.start(rank, ring_bytes=1 if rank == 0 else 0) for rank in range(3)])
        assert all(ring_of(comm) is not None for comm in communicators)
        assert all(world.everywhere(communicators, gather))


def test_mismatched_calls_transfer_no_data():
    def differ(comm):
        buffer = np.zeros(PART_BYTES + (comm.rank == 2), np.uint8)
        try:
            comm.broadcast(buffer, 0)
        finally:
            comm.untouched = not buffer.any()

    with tcp_world(3, ranks_per_host=1) as world:
        communicators = results(world.start_all())
        before = [sent_and_received(ring_channels(comm)[1])[0] for comm in communicators]
        errors = world.everywhere(communicators, differ)
        assert [type(error) for error in errors] == [MismatchedCallError] * 3
        assert [sent_and_received(ring_channels(comm)[1])[0] for comm in communicators] == before


# Neighbours that cannot be reached.


def warnings_of(caplog):
    return [
        record.getMessage() for record in caplog.records if "large payloads go through rank 0" in record.getMessage()
    ]


@needs_hosts
def test_hosts_that_cannot_reach_each_other_use_the_star(world_apart):
    """The router drops packets between two hosts: rank 0 names them in a warning, and the payload arrives."""
    ranks = world_apart.start_all("gather_on_command", timeout_s=30.0)
    warning = ranks[0].wait_for("log", "large payloads go through rank 0")["log"]
    assert "rank 1 (host cobre1-" in warning and "cannot reach rank 2 (host cobre2-" in warning
    assert "at 10.77.2.2:" in warning and "COBRE_TCP_RING_PORTS" in warning
    world_apart.check_gather(ranks)


@needs_hosts
@pytest.mark.parametrize("coordinator", ["10.77.0.1", "coordinator"])
def test_ring_works_on_a_single_port(world, coordinator):
    """All hosts use one port, that of the coordinator, as a network policy of Kubernetes requires."""
    for host in range(3):
        world.network.write_names(host, coordinator=["10.77.0.1"])
    ranks = world.start_all("gather_on_command", timeout_s=30.0, coordinator=coordinator, ring_ports="29500")
    for rank in ranks:
        rank.wait_for("running")
    world.check_gather(ranks)


@needs_hosts
def test_black_hole_between_neighbours_is_detected(world):
    """Both hosts still send heartbeats to the coordinator; only the limit on unacknowledged bytes finds the fault."""
    ranks = world.run_all("gathers")
    begin = time.monotonic()
    world.network.swallow_between(1, 2)
    for rank in ranks:
        event = rank.wait_for("error")
        assert in_time(event, begin), f"after {event['at'] - begin:.1f} s: {event}"
        assert event["ranks"] and "lost its connection" in event["message"], event


def test_no_free_port_falls_back_to_star(caplog):
    address = new_address()
    with socket.create_server((address, 0)) as listener, tcp_world(3, ranks_per_host=1, coordinator=address) as world:
        # Workers listen where they reach the coordinator from, and all of them share its loopback address here.
        ports = str(listener.getsockname()[1])
        with socket.create_server(("127.0.0.1", int(ports))):
            communicators = results(world.start_all(ring_ports=ports))
        assert all(ring_of(comm) is None for comm in communicators)
        assert all(world.everywhere(communicators, gather))
    assert "every port of COBRE_TCP_RING_PORTS is in use" in warnings_of(caplog)[0]


CERTIFICATE = {"tls_cert": str(TLS / "certificate.pem"), "tls_key": str(TLS / "key.pem")}
CA = {"tls_ca": str(TLS / "certificate.pem")}


def tls_address():
    """Return a free port at 127.0.0.1, the address of the certificate."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_neighbours_encrypt_if_the_coordinator_does():
    with tcp_world(3, ranks_per_host=1, coordinator=tls_address(), **CA, **CERTIFICATE) as world:
        communicators = results(world.start_all())
        assert [channel.sock.version() for comm in communicators for channel in ring_channels(comm)] == ["TLSv1.3"] * 6
        assert all(world.everywhere(communicators, gather))
        assert all(world.everywhere(communicators, lambda comm: broadcast(comm, 1)))


def test_missing_certificate_falls_back_to_star(caplog):
    with tcp_world(3, ranks_per_host=1, coordinator=tls_address()) as world:
        # Without a CA the coordinator requests no certificates from workers.
        files = (CERTIFICATE, CA | CERTIFICATE, CA)
        communicators = results([world.start(rank, **files[rank]) for rank in range(3)])
        assert all(ring_of(comm) is None for comm in communicators)
        assert all(world.everywhere(communicators, gather))
    assert "rank 2 (" in warnings_of(caplog)[0] and "no TLS certificate (COBRE_TCP_TLS_CERT)" in warnings_of(caplog)[0]


def test_certificate_that_was_not_announced_is_refused(monkeypatch, caplog):
    monkeypatch.setattr(ring_rendezvous, "_certificate_digest", lambda path: bytes(32))
    with tcp_world(3, ranks_per_host=1, coordinator=tls_address(), **CA, **CERTIFICATE) as world:
        communicators = results(world.start_all())
        assert all(ring_of(comm) is None for comm in communicators)
    assert "its TLS certificate is not the one that it announced" in warnings_of(caplog)[0]


# Strangers at the port of the ring.


def stranger_handshake(sock, secret, rank, link, token):
    """Begin a handshake as a worker does; return it."""
    handshake = WorkerHandshake(rank, 3, "", secret, link, token)
    sock.settimeout(DEADLINE_S)
    sock.sendall(handshake.begin())
    return handshake


def test_strangers_neither_join_nor_stall_the_ring(monkeypatch, caplog):
    """Too many idle connections, garbage, a wrong secret, and the right one with a wrong rank, purpose or token."""
    dial, strangers = ring_rendezvous._dial, []

    def dial_among_strangers(config, offer, local):
        for number in range(ring_rendezvous.MAX_PENDING + 6):
            sock = socket.create_connection((offer.address, offer.port), timeout=DEADLINE_S)
            strangers.append(sock)
            if number % 3 == 1:
                sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        wrong = [
            (b"another secret, of others", config.rank, Link.RING, offer.token),
            (SECRET.encode(), config.rank, Link.RING, bytes(16)),
            (SECRET.encode(), offer.rank, Link.RING, offer.token),
            (SECRET.encode(), config.rank, Link.DATA, offer.token),
        ]
        for words in wrong:
            sock = socket.create_connection((offer.address, offer.port), timeout=DEADLINE_S)
            strangers.append(sock)
            stranger_handshake(sock, *words)
        return dial(config, offer, local)

    monkeypatch.setattr(ring_rendezvous, "_dial", dial_among_strangers)
    monkeypatch.setattr(ring_rendezvous, "BACKLOG", 256)
    try:
        with tcp_world(3, ranks_per_host=1) as world:
            communicators = results(world.start_all())
            assert all(ring_of(comm) is not None for comm in communicators), warnings_of(caplog)
            assert all(world.everywhere(communicators, gather))
            for comm in communicators:
                assert [channel.peer.rank for channel in ring_channels(comm)] == [
                    (comm.rank - 1) % 3,
                    (comm.rank + 1) % 3,
                ]
    finally:
        for sock in strangers:
            sock.close()


def test_no_port_is_open_once_the_ring_is_closed(monkeypatch):
    offers = []
    listen = ring_rendezvous._listen

    def remember(*arguments):
        listener, offer = listen(*arguments)
        offers.append(offer)
        return listener, offer

    monkeypatch.setattr(ring_rendezvous, "_listen", remember)
    with tcp_world(3, ranks_per_host=1) as world:
        results(world.start_all())
        assert len(offers) == 3
        for offer in offers:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((offer.address, offer.port), timeout=DEADLINE_S)


# Failures in the middle of the ring.


@pytest.fixture
def start():
    ranks = []

    def start_all(action, size, **options):
        options = {"secret": SECRET, "timeout_s": 60.0, "ranks_per_host": 1} | options
        address = new_address()
        ranks.extend(Rank(action, TcpConfig(address, rank, size, **options)) for rank in range(size))
        for rank in ranks:
            rank.wait_for("running")
        return ranks

    yield start_all
    for rank in ranks:
        rank.end()


@pytest.mark.parametrize(
    ("size", "hosts_of", "victim", "action"),
    [
        (4, 1, 0, "gathers"),
        (4, 1, 2, "gathers"),
        (2, 1, 1, "gathers"),
        (6, 2, 3, "gathers"),
        (6, 2, 4, "gathers"),
        (4, 1, 0, "gathers_of_64_kb"),
        (4, 1, 2, "gathers_of_64_kb"),
    ],
)
def test_rank_that_is_killed_in_the_ring_is_named_at_once(start, size, hosts_of, victim, action):
    """Kill the coordinator, a host between two others, a host of two, or a rank that does not lead its host."""
    ranks = start(action, size, ranks_per_host=hosts_of, ring_bytes=1)
    begin = time.monotonic()
    os.kill(ranks[victim].pid, signal.SIGKILL)
    for number, rank in enumerate(ranks):
        if number != victim:
            event = rank.wait_for("error")
            assert (event["error"], event["ranks"]) == ("PeerLostError", [victim]), event
            assert event["at"] - begin < QUICK_S, event


@pytest.mark.parametrize(("victim", "action"), [(0, "gathers"), (2, "gathers"), (2, "gathers_of_64_kb")])
def test_rank_that_is_stopped_in_the_ring_is_named_after_the_timeout(start, victim, action):
    ranks = start(action, 4, timeout_s=3.0)
    begin = time.monotonic()
    os.kill(ranks[victim].pid, signal.SIGSTOP)
    for number, rank in enumerate(ranks):
        if number != victim:
            event = rank.wait_for("error")
            assert (event["error"], event["ranks"]) == ("PeerTimeoutError", [victim]), event
            assert event["at"] - begin < 3.0 + QUICK_S, event


def test_ranks_may_end_after_the_last_call_of_the_ring(start):
    for rank in start("leave_early_in_the_ring", 4):
        assert rank.wait_for("good")["good"]
        assert rank.process.wait(DEADLINE_S) == 0


@pytest.mark.parametrize("rank", [0, 1])
def test_connection_that_is_lost_between_live_ranks_fails_on_all(rank):
    with tcp_world(4, ranks_per_host=1, timeout_s=60.0) as world:
        communicators = results(world.start_all())
        ring_channels(communicators[rank])[1].sock.shutdown(socket.SHUT_RDWR)
        begin = time.monotonic()
        errors = world.everywhere(communicators, gather)
        assert time.monotonic() - begin < QUICK_S
        assert all(isinstance(error, CollectiveFailedError) for error in errors), errors
        assert sum(isinstance(error, PeerLostError) for error in errors) >= 1, errors

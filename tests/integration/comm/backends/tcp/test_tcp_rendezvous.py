"""Rendezvous of tcp ranks, with invalid ranks, secrets and addresses."""

import logging
import socket
import time
from pathlib import Path

import numpy as np
import pytest
from tcp_worlds import (
    DEADLINE_S,
    SECRET,
    failure,
    new_address,
    results,
    tcp_world,
    total,
    wait_for_log,
    wait_until_listening,
)

from cobre.comm import InitializationFailedError, MissingConfigurationError
from cobre.comm.backends.tcp.rendezvous import listener

TLS = Path(__file__).resolve().parents[4] / "support" / "tls"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_ranks_start_in_any_order(order, caplog):
    caplog.set_level(logging.INFO, "cobre.comm")
    with tcp_world(3) as world:
        futures = {}
        for rank in order:
            futures[rank] = world.start(rank)
            if rank == 0 and len(futures) < world.size:  # with the last rank the listener is soon closed again
                wait_until_listening(world)
            elif 0 not in futures:
                wait_for_log(caplog, f"rank {rank} connecting to")
        comms = results(futures[rank] for rank in range(3))
        assert world.everywhere(comms, total) == [[6.0] * 3] * 3


@pytest.mark.parametrize("text", ["[::1]:{port}", "localhost:{port}", "127.0.0.1:{port}"])
def test_every_address_family_connects(text):
    if "::1" in text and not has_ipv6():
        pytest.fail("this machine has no IPv6 loopback; the suite needs one")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tcp_world(2, coordinator=text.format(port=port)) as world:
        assert world.everywhere(results(world.start_all()), total) == [[3.0] * 3] * 2


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_wrong_secret_is_reported_on_both_sides_and_the_coordinator_continues(caplog):
    with tcp_world(2) as world:
        coordinator = world.start(0)
        # Much shorter than the coordinator's own limit, which must not pass before the right secret comes.
        error = failure(world.start(1, secret="not the secret at all", connect_timeout_s=10.0))
        assert isinstance(error, InitializationFailedError)
        assert "the secret of rank 1" in str(error) and "not the secret" not in str(error)
        wait_for_log(caplog, "the secret of rank 1")
        assert SECRET not in caplog.text
        comms = [*results([world.start(1)]), coordinator.result(DEADLINE_S)]
        assert world.everywhere(comms, total) == [[3.0] * 3] * 2


def test_missing_secret_is_reported():
    with tcp_world(2) as world:
        world.start(0, connect_timeout_s=2.0)
        text = str(failure(world.start(1, secret="", connect_timeout_s=1.0)))
        assert "without proving that it holds the secret; it said: the secret of rank 1" in text


def test_two_processes_that_claim_one_rank_are_both_named(caplog):
    with tcp_world(3) as world:
        coordinator, first = world.start(0), world.start(1)
        caplog.set_level(logging.INFO, "cobre.comm")
        wait_for_log(caplog, "waiting for the other ranks")
        error = failure(world.start(1))
        assert str(error).count("rank 1 (host") == 2 and "two processes claim rank 1" in str(error)
        wait_for_log(caplog, "two processes claim rank 1")
        comms = results([coordinator, first, world.start(2)])
        assert world.everywhere(comms, total) == [[6.0] * 3] * 3


def test_ranks_that_disagree_on_the_size_are_both_named(caplog):
    with tcp_world(2) as world:
        coordinator = world.start(0, connect_timeout_s=2.0)
        text = str(failure(world.start(1, size=4)))
        assert "rank 1 (host" in text and "SIZE=4" in text and "rank 0 (host" in text and "SIZE=2" in text
        assert "SIZE=4" in str(failure(coordinator)), "the coordinator says it again when the rank is missing"


def test_missing_ranks_are_named_on_all_ranks():
    with tcp_world(4, connect_timeout_s=1.5) as world:
        errors = [failure(future) for future in world.start_all([0, 1, 3])]
        for error in errors:
            assert isinstance(error, InitializationFailedError)
            assert "3 of 4 ranks joined after" in str(error) and "missing rank 2." in str(error)


def test_missing_coordinator_is_reported_with_the_last_problem():
    with tcp_world(2, connect_timeout_s=0.5) as world:
        text = str(failure(world.start(1)))
        assert "rank 0, the coordinator" in text and "refused" in text


def test_name_that_does_not_resolve_is_logged_once_and_retried(caplog):
    caplog.set_level(logging.INFO, "cobre.comm")
    with tcp_world(2, coordinator="no-such-host.invalid", connect_timeout_s=1.0) as world:
        error = failure(world.start(1))
        assert "cannot resolve no-such-host.invalid" in str(error)
        lines = [record for record in caplog.records if "no-such-host" in record.getMessage()]
        assert len(lines) == 1


def test_port_in_use_is_reported_with_address_and_advice():
    address = new_address()
    with socket.create_server((address, 29500)), tcp_world(2, coordinator=address) as world:
        text = str(failure(world.start(0)))
        assert f"{address}:29500 is in use" in text and "COBRE_TCP_PORT" in text


def test_port_is_reusable_immediately():
    address = new_address()
    for _ in range(3):
        with tcp_world(2, coordinator=address) as world:
            assert world.everywhere(results(world.start_all()), total) == [[3.0] * 3] * 2


def test_listener_is_closed_when_all_have_joined():
    with tcp_world(2) as world:
        results(world.start_all())
        with pytest.raises(ConnectionRefusedError):
            world.connect()


def test_worker_waits_while_another_run_has_the_address():
    with tcp_world(2) as world:
        world.start(0, run_id="old", connect_timeout_s=1.0)
        wait_until_listening(world)
        worker = world.start(1, run_id="new")
        deadline = time.monotonic() + DEADLINE_S
        while True:
            coordinator = world.start(0, run_id="new")
            error = coordinator.exception(DEADLINE_S)
            if error is None:
                break
            assert "is in use" in str(error) and time.monotonic() < deadline
        assert world.everywhere(results([coordinator, worker]), total) == [[3.0] * 3] * 2


@pytest.mark.parametrize("options", [{"bind": "0.0.0.0"}, {"bind": "::"}, {"coordinator": "192.0.2.1"}])
def test_listening_for_other_machines_needs_a_secret(options):
    with tcp_world(2, secret="", connect_timeout_s=1.0, **options) as world:
        error = failure(world.start(0))
        assert isinstance(error, MissingConfigurationError) and "COBRE_TCP_INSECURE=1" in str(error)


def test_connecting_to_another_machine_needs_a_secret():
    with tcp_world(2, secret="", coordinator="192.0.2.1") as world:
        assert isinstance(failure(world.start(1)), MissingConfigurationError)


@pytest.mark.parametrize("options", [{"secret": "", "insecure": True}, {}])
def test_configured_wildcard_is_bound(options):
    with tcp_world(2, bind="0.0.0.0:29517", **options) as world:
        comms = results([world.start(0), world.start(1, port=29517)])
        assert world.everywhere(comms, total) == [[3.0] * 3] * 2


def test_rank_0_without_address_listens_on_all_addresses(caplog):
    caplog.set_level(logging.INFO, "cobre.comm")
    with tcp_world(2) as world:
        comms = results([world.start(0, coordinator="", port=29519), world.start(1, port=29519)])
        assert world.everywhere(comms, total) == [[3.0] * 3] * 2
        assert "COBRE_TCP_COORDINATOR is not set: listening on all addresses" in caplog.text


def test_rank_0_without_an_address_needs_a_secret():
    with tcp_world(2, secret="") as world:
        text = str(failure(world.start(0, coordinator="")))
        assert "COBRE_TCP_COORDINATOR is not set, and rank 0 would listen on all addresses" in text


def test_on_loopback_no_secret_is_needed():
    with tcp_world(2, secret="") as world:
        assert world.everywhere(results(world.start_all()), total) == [[3.0] * 3] * 2


@pytest.mark.parametrize("seconds", [1e10, 1e300])
def test_very_long_connect_timeout_is_accepted(seconds):
    limits = dict.fromkeys(("timeout_s", "connect_timeout_s", "operation_timeout_s"), seconds)
    with tcp_world(2, **limits) as world:
        coordinator = world.start(0)
        wait_until_listening(world)
        assert world.everywhere(results([coordinator, world.start(1)]), total) == [[3.0] * 3] * 2


def tls_options(rank):
    files = {"tls_ca": str(TLS / "certificate.pem")}
    return files | {"tls_cert": str(TLS / "certificate.pem"), "tls_key": str(TLS / "key.pem")}


def make_large_calls(comm):
    """Stream payloads larger than any buffer in both directions."""
    counts = [300_000 + 1000 * rank for rank in range(comm.size)]
    recv = np.zeros(sum(counts))
    comm.allgatherv(np.full(counts[comm.rank], float(comm.rank)), recv, counts)
    reduced = np.zeros(200_000)
    comm.allreduce(np.full(200_000, comm.rank + 1.0), reduced)
    comm.broadcast(recv, comm.size - 1)
    return bool((recv == np.repeat(np.arange(comm.size), counts)).all() and (reduced == 6.0).all())


def test_collectives_give_same_results_over_tls():
    with tcp_world(3) as world:
        # The certificate is for 127.0.0.1; the port is this test's own.
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        futures = [world.start(rank, coordinator=f"127.0.0.1:{port}", **tls_options(rank)) for rank in range(3)]
        comms = results(futures)
        assert world.everywhere(comms, total) == [[6.0] * 3] * 3
        assert world.everywhere(comms, make_large_calls) == [True] * 3


def test_certificate_for_another_name_is_refused():
    with tcp_world(2, connect_timeout_s=1.5) as world:
        world.start(0, **tls_options(0))
        assert "certificate of" in str(failure(world.start(1, **tls_options(1))))


def test_worker_without_tls_is_refused_and_both_sides_report_it():
    """Rank 0 gives up first, so that no process listens when rank 1 gives up."""
    with tcp_world(2, connect_timeout_s=2.5) as world:
        coordinator = world.start(0, connect_timeout_s=1.0, **tls_options(0))
        text = str(failure(world.start(1)))
        assert "TLS" in text and "COBRE_TCP_TLS_CA" in text and "finally" in text
        text = str(failure(coordinator))
        assert "missing rank 1" in text and "TLS handshake with 127.0.0.1 failed" in text


def test_tls_only_on_worker_is_reported_on_both_sides():
    with tcp_world(2, connect_timeout_s=2.5) as world:
        coordinator = world.start(0, connect_timeout_s=1.0)
        text = str(failure(world.start(1, **tls_options(1))))
        assert "TLS handshake failed" in text and "COBRE_TCP_TLS_CERT" in text
        assert "uses TLS, but the coordinator does not" in str(failure(coordinator))


def test_other_run_is_reported_after_its_coordinator_has_ended():
    with tcp_world(2, connect_timeout_s=2.5) as world:
        world.start(0, connect_timeout_s=1.0, run_id="this")
        text = str(failure(world.start(1, run_id="that")))
        assert "belongs to run 'that', the coordinator belongs to run 'this'" in text and "finally" in text


def test_bind_address_of_another_machine_is_refused():
    with tcp_world(2, bind="192.0.2.1") as world:
        assert "COBRE_TCP_BIND=192.0.2.1 is not an address of this machine" in str(failure(world.start(0)))


def test_coordinator_address_may_belong_to_a_service():
    with tcp_world(2) as world:
        comms = results([world.start(0, coordinator="192.0.2.1:29521"), world.start(1, port=29521)])
        assert world.everywhere(comms, total) == [[3.0] * 3] * 2


def test_rank_0_warns_while_its_own_name_does_not_resolve_and_gives_up_at_the_timeout(monkeypatch, caplog):
    monkeypatch.setattr(listener, "WARN_AFTER_S", 0.1)
    with tcp_world(2, coordinator="no-such-host.invalid", connect_timeout_s=1.0) as world:
        assert "cannot resolve no-such-host.invalid" in str(failure(world.start(0)))
    warnings = [record for record in caplog.records if "rank 0 cannot listen yet" in record.getMessage()]
    assert len(warnings) == 1


def test_addresses_are_released_if_one_is_in_use():
    """localhost may be two addresses; the first must be free again when the second is in use."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with tcp_world(2, bind=f"localhost:{port}") as world:
            assert "is in use by another process" in str(failure(world.start(0)))
        if has_ipv6():
            socket.create_server(("::1", port), family=socket.AF_INET6).close()

"""Strangers at the port of a rendezvous, on either side, and ranks that are cut off."""

import contextlib
import logging
import socket
import subprocess
import sys
import threading
import time

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

from cobre.comm.backends.tcp.rendezvous import acceptor, connector
from cobre.comm.backends.tcp.rendezvous.handshake import RefusedError, WorkerHandshake
from cobre.comm.backends.tcp.wire.messages import Link


def test_idle_connections_and_garbage_do_not_stall_the_rendezvous(monkeypatch):
    monkeypatch.setattr(acceptor, "MAX_PENDING", 16)
    with tcp_world(3) as world:
        coordinator = world.start(0)
        wait_until_listening(world)
        strangers = [world.connect() for _ in range(200)]
        for number, stranger in enumerate(strangers[::3]):
            with contextlib.suppress(OSError):  # the coordinator has already rejected it
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" if number % 2 else b"\xff" * 3000)
        comms = results([coordinator, *world.start_all([1, 2])])
        assert world.everywhere(comms, total) == [[6.0] * 3] * 3


def test_worker_whose_handshake_has_begun_is_not_dropped_for_strangers(monkeypatch):
    """Any number of strangers may connect between the worker's first message and its proof, and send anything."""
    monkeypatch.setattr(acceptor, "MAX_PENDING", 16)
    with tcp_world(2) as world:
        coordinator = world.start(0)
        wait_until_listening(world)
        socks = []
        for link in (Link.CONTROL, Link.DATA):
            socks.append(sock := world.connect())
            handshake = WorkerHandshake(1, 2, "", SECRET.encode(), link, b"instance of once")
            hello = handshake.begin()
            sock.sendall(hello)
            proof = b""
            while not proof:
                proof = handshake.receive(sock.recv(handshake.needed))
            strangers = [world.connect() for _ in range(100)]
            # Some have another secret, some replay recorded messages, most are silent.
            guess = WorkerHandshake(1, 2, "", b"another secret", link, b"instance of once")
            for stranger in strangers[::3]:
                with contextlib.suppress(OSError):  # it was dropped already
                    stranger.sendall(guess.begin())
            for stranger in strangers[1::3]:
                with contextlib.suppress(OSError):
                    stranger.sendall(hello)
            sock.sendall(proof)
            while not handshake.is_welcome:
                handshake.receive(sock.recv(handshake.needed))
        while not handshake.has_started:
            handshake.receive(socks[-1].recv(handshake.needed))
        for sock in socks:
            sock.close()
        assert "rank 1" in str(failure(coordinator)), "that it started is all that this one can do by hand"


FLOOD = """
import socket, sys, time
held = []
print("ready", flush=True)
while True:
    try:
        sock = socket.create_connection((sys.argv[1], 29500), timeout=1)
        sock.setblocking(False)
        held = [*held[-50:], sock]
    except OSError:
        time.sleep(0.001)
"""


def test_three_flooding_strangers_do_not_keep_ranks_from_joining():
    """Each stranger is a process that connects as fast as it can."""
    with tcp_world(3, connect_timeout_s=DEADLINE_S) as world:
        command = [sys.executable, "-c", FLOOD, world.coordinator]
        strangers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
        try:
            for stranger in strangers:
                assert stranger.stdout.readline() == b"ready\n"
            coordinator = world.start(0)
            wait_until_listening(world)
            comms = results([coordinator, *world.start_all([1, 2])])
            assert world.everywhere(comms, total) == [[6.0] * 3] * 3
        finally:
            for stranger in strangers:
                stranger.kill()
                stranger.communicate()


def test_missing_rank_error_mentions_connection_flood(monkeypatch):
    monkeypatch.setattr(acceptor, "MAX_PENDING", 16)
    with tcp_world(2, connect_timeout_s=3.0) as world:
        coordinator = world.start(0)
        wait_until_listening(world)
        strangers = [world.connect() for _ in range(50)]
        error = failure(coordinator)
    assert len(strangers) == 50
    assert error.missing == (1,)
    assert "missing rank 1." in str(error) and "something floods this port" in str(error)


def test_handshake_has_a_time_limit(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "cobre.comm")
    monkeypatch.setattr(acceptor, "HANDSHAKE_S", 0.2)
    with tcp_world(2) as world:
        coordinator = world.start(0)
        wait_until_listening(world)
        stranger = world.connect()
        assert stranger.recv(1) == b"", "hung up on"
        wait_for_log(caplog, "handshake timed out")
        assert world.everywhere(results([coordinator, world.start(1)]), total) == [[3.0] * 3] * 2


def join_without_communicator(world, rank):
    """Open both connections of a worker, up to the welcome; nothing is started yet."""
    socks = []
    for link in (Link.CONTROL, Link.DATA):
        sock = world.connect()
        handshake = WorkerHandshake(rank, world.size, "", SECRET.encode(), link, b"instance of once")
        sock.sendall(handshake.begin())
        while not handshake.is_welcome:
            sock.sendall(handshake.receive(sock.recv(handshake.needed)))
        socks.append(sock)
    return socks


def test_worker_that_died_before_the_start_is_replaced():
    with tcp_world(3) as world:
        coordinator = world.start(0)
        wait_until_listening(world)
        for sock in join_without_communicator(world, 1):
            sock.close()
        comms = results([coordinator, *world.start_all([1, 2])])
        assert world.everywhere(comms, total) == [[6.0] * 3] * 3


class FakeCoordinator(threading.Thread):
    """A coordinator that answers every connection with the same bytes."""

    def __init__(self, address, answer):
        super().__init__(daemon=True)
        self._server = socket.create_server((address, 29500))
        self._answer = answer
        self.answered = 0
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.sendall(self._answer)
                    connection.recv(1 << 16)  # unread bytes would make the end a reset
                self.answered += 1

    def stop(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.join(DEADLINE_S)


def test_unproven_refusal_is_quoted_at_the_timeout_in_printable_form():
    address = new_address()
    stranger = FakeCoordinator(address, RefusedError("go home\x1b]0;owned\x07").frame())
    with tcp_world(2, coordinator=address, connect_timeout_s=1.0) as world:
        text = str(failure(world.start(1)))
    stranger.stop()
    assert stranger.answered > 1, "the worker has tried again"
    assert "rank 1 could not connect to rank 0" in text and "without proving" in text
    assert "it said: go home\\x1b]0;owned\\x07" in text and text.isprintable()


def test_unproven_refusal_is_retried():
    address = new_address()
    stranger = FakeCoordinator(address, RefusedError("go home").frame())
    with tcp_world(2, coordinator=address) as world:
        worker = world.start(1)
        deadline = time.monotonic() + DEADLINE_S
        while not stranger.answered and time.monotonic() < deadline:
            time.sleep(0.01)
        stranger.stop()
        comms = results([world.start(0), worker])
        assert world.everywhere(comms, total) == [[3.0] * 3] * 2


@pytest.mark.parametrize(
    "answer,words",
    [
        (b"", "the peer ended the handshake (connection closed)"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "the coordinator uses TLS, but this rank does not"),
    ],
)
def test_server_of_another_protocol_is_reported(answer, words):
    address = new_address()
    stranger = FakeCoordinator(address, answer)
    with tcp_world(2, coordinator=address, connect_timeout_s=1.0) as world:
        text = str(failure(world.start(1)))
    stranger.stop()
    assert words in text and "COBRE_TCP_TLS_CA" in text


def test_server_that_does_not_reply_is_reported(monkeypatch):
    monkeypatch.setattr(connector, "HANDSHAKE_S", 0.2)
    address = new_address()
    with socket.create_server((address, 29500)), tcp_world(2, coordinator=address, connect_timeout_s=1.0) as world:
        assert "no reply in time" in str(failure(world.start(1)))


def refusal_of(world, rank, link, instance=b"instance of once"):
    """Return the coordinator's refusal of a connection of this rank."""
    sock = world.connect()
    handshake = WorkerHandshake(rank, world.size, "", SECRET.encode(), link, instance)
    sock.sendall(handshake.begin())
    with pytest.raises(RefusedError) as caught:
        while True:
            sock.sendall(handshake.receive(sock.recv(handshake.needed)))
    return caught.value


def test_impossible_ranks_and_duplicate_connections_are_refused():
    with tcp_world(3) as world:
        coordinator = world.start(0)
        wait_until_listening(world)
        for rank in (0, 3):
            assert "expected a rank from 1 to 2" in refusal_of(world, rank, Link.DATA).text
        socks = join_without_communicator(world, 1)
        again = refusal_of(world, 1, Link.DATA)
        assert "connected twice" in again.text and again.may_retry
        for sock in socks:
            sock.close()
        comms = results([coordinator, *world.start_all([1, 2])])
        assert world.everywhere(comms, total) == [[6.0] * 3] * 3

"""Connections that are full, cut or reset, plain and encrypted: over real sockets."""

import contextlib
import os
import socket
import ssl
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cobre.comm.backends.tcp.transport.channel import Channel, LinkLostError, TlsChannel
from cobre.comm.errors import Peer

TLS = Path(__file__).parents[5] / "support" / "tls"
DEADLINE_S = 30.0


def tcp_pair():
    with socket.create_server(("127.0.0.1", 0)) as server:
        left = socket.create_connection(server.getsockname(), timeout=DEADLINE_S)
        right, _ = server.accept()
    right.settimeout(DEADLINE_S)
    return left, right


def encrypted_pair():
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    client = ssl.create_default_context(cafile=str(TLS / "certificate.pem"))
    left, right = tcp_pair()
    with ThreadPoolExecutor(1) as executor:
        accepted = executor.submit(server.wrap_socket, right, server_side=True)
        return client.wrap_socket(left, server_hostname="127.0.0.1"), accepted.result(DEADLINE_S)


@pytest.fixture(params=["plain", "tls"])
def pair(request):
    """Return a channel, and the socket of its peer."""
    left, right = tcp_pair() if request.param == "plain" else encrypted_pair()
    with left, right:
        yield (Channel if request.param == "plain" else TlsChannel)(left, Peer(1)), right


def reset(sock):
    """Reset the connection (RST), as after a crash of the peer's machine."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def test_send_on_full_connection_returns_zero_until_peer_reads(pair):
    channel, peer = pair
    piece, sent = bytes(1 << 16), 0
    while taken := channel.send_small(piece):
        sent += taken
    assert channel.send_small(piece) == 0 and channel.send([piece]) == 0
    received = 0
    while received < sent:
        received += len(peer.recv(1 << 20))
    assert channel.send_small(piece) > 0  # the same bytes again: TLS has encrypted them already


@pytest.mark.parametrize("send", [lambda channel: channel.send_small(b"x"), lambda channel: channel.send([b"x"])])
def test_sending_to_a_peer_that_was_cut_off_names_it(pair, send):
    channel, peer = pair
    reset(peer)
    with pytest.raises(LinkLostError) as caught:
        while True:  # the first bytes may still be accepted
            send(channel)
    assert caught.value.peer == Peer(1) and isinstance(caught.value.cause, OSError)


def test_receiving_from_a_peer_that_was_cut_off_names_it(pair):
    channel, peer = pair
    reset(peer)
    with pytest.raises(LinkLostError) as caught:
        receive(channel)
    assert caught.value.peer == Peer(1)


def test_plain_bytes_end_an_encrypted_connection():
    left, right = encrypted_pair()
    with left, right:
        os.write(right.fileno(), b"these are no records of TLS")
        with pytest.raises(LinkLostError) as caught:
            receive(TlsChannel(left, Peer(1)))
        assert isinstance(caught.value.cause, ssl.SSLError)


def test_end_of_file_is_a_lost_link_without_cause(pair):
    channel, peer = pair
    with contextlib.suppress(OSError):
        peer.shutdown(socket.SHUT_WR)
    with pytest.raises(LinkLostError) as caught:
        receive(channel)
    assert caught.value.cause is None


def receive(channel):
    while not channel.await_bytes(memoryview(bytearray(4))):
        pass

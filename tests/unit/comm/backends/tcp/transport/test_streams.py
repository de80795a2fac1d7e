"""Streams over a real pair of sockets, cut into the smallest frames."""

import socket

import pytest

from cobre.comm.backends.tcp.transport import streams
from cobre.comm.backends.tcp.transport.channel import Channel, LinkLostError
from cobre.comm.backends.tcp.transport.streams import DataReader, RelayWriter, ReplyReader, Writer
from cobre.comm.backends.tcp.wire.protocol import ProtocolError, data_header, go_header, part_header
from cobre.comm.errors import Peer


@pytest.fixture
def pair():
    left, right = socket.socketpair()
    for sock in (left, right):
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with left, right:
        yield Channel(left, Peer(1)), Channel(right, Peer(0))


@pytest.mark.parametrize("frame_bytes", [1, 1000, 1 << 28])
def test_data_arrives_complete_for_any_frame_size(pair, monkeypatch, frame_bytes):
    monkeypatch.setattr(streams, "MAX_FRAME_DATA_BYTES", frame_bytes)
    payload = bytes(range(256)) * (4 if frame_bytes == 1 else 400)
    writer, reader = Writer(pair[0]), DataReader(pair[1], len(payload))
    writer.push_data(memoryview(payload))
    received = memoryview(bytearray(len(payload)))
    at = 0
    while reader.remaining:
        writer.flush()
        at += reader.read(received[at:])
    assert writer.is_idle and received == payload


def test_parts_are_relayed_while_they_arrive(pair):
    parts = [memoryview(b"a" * 300), None, memoryview(b"c" * 5000), memoryview(b"")]
    places = [memoryview(bytearray(len(part))) if part is not None else None for part in parts]
    writer, reader = RelayWriter(pair[0], 7, parts, piece_bytes=100), ReplyReader(pair[1], 7, places)
    available = [300, 0, 0, 0]
    while not (writer.is_done and reader.is_done):
        writer.has_work(available)
        writer.flush()
        reader.advance()
        available[2] = min(available[2] + 60, 5000)
    assert places[0] == parts[0] and places[2] == parts[2]


def test_pieces_below_minimum_size_are_not_sent(pair):
    writer = RelayWriter(pair[0], 1, [memoryview(b"x" * 1000)], piece_bytes=100)
    writer.flush()
    assert not writer.has_work([99])
    assert writer.has_work([100])


def test_no_part_is_stored_before_go(pair):
    place = memoryview(bytearray(4))
    reader = ReplyReader(pair[1], 3, [place])
    pair[0].send([go_header(2, 0), part_header(0, 0, 4), b"data"])
    with pytest.raises(ProtocolError, match="another call"):
        reader.advance()
    assert place == bytes(4)


@pytest.mark.parametrize("header", [data_header(11), data_header(0), part_header(0, 0, 4)[:5]])
def test_frame_longer_than_remaining_payload_raises(pair, header):
    pair[0].send([header, b"some bytes of data"])
    with pytest.raises(ProtocolError):
        DataReader(pair[1], 10).read(memoryview(bytearray(10)))


def test_header_may_arrive_byte_by_byte(pair):
    reader, received = DataReader(pair[1], 4), memoryview(bytearray(4))
    header = data_header(4)
    for byte in header:
        assert reader.read(received) == 0
        pair[0].send([bytes([byte])])
    pair[0].send([b"data"])
    assert reader.read(received) == 4 and received == b"data"


def test_ended_connection_names_its_peer(pair):
    pair[0].close()
    with pytest.raises(LinkLostError) as caught:
        pair[1].receive(memoryview(bytearray(1)))
    assert caught.value.peer == Peer(0)
    with pytest.raises(LinkLostError):
        for _ in range(3):
            pair[1].send([b"x"])

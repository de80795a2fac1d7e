"""Reading and writing of the ring's streams on socket pairs: headers, displacements, forwarding, frames."""

import socket

import pytest

from cobre.comm.backends.tcp.transport import ring
from cobre.comm.backends.tcp.transport.channel import Channel
from cobre.comm.backends.tcp.transport.ring import RingReader, RingWriter, StagedReader
from cobre.comm.backends.tcp.wire.protocol import ProtocolError, ring_header
from cobre.comm.errors import Peer


@pytest.fixture
def pair():
    left, right = socket.socketpair()
    with left, right:
        yield left, right


@pytest.mark.parametrize("kind", [RingReader, StagedReader])
def test_block_of_another_call_raises_before_it_is_written(pair, kind):
    target = bytearray(8)
    reader = kind(Channel(pair[0], Peer(3)), [ring_header(5, 8), memoryview(target)])
    pair[1].sendall(ring_header(6, 8) + b"12345678")
    with pytest.raises(ProtocolError, match=r"rank 3 .*sent data of another call"):
        read_all(reader)
    assert target == bytes(8)


@pytest.mark.parametrize("kind", [RingReader, StagedReader])
def test_blocks_arrive_at_their_displacements(pair, kind):
    targets = [bytearray(8), bytearray(3)]
    expected = [ring_header(5, 11), *map(memoryview, targets)]
    reader = kind(Channel(pair[0], Peer(3)), expected)
    assert b"".join(reader.first_items(2)) == bytes(len(ring_header(5, 11)) + 8)
    pair[1].sendall(ring_header(5, 11) + b"12345678abc" + b"the next call")
    read_all(reader)
    assert targets == [b"12345678", b"abc"]
    assert pair[0].recv(100) == b"the next call"


def read_all(reader):
    while not reader.is_done:
        reader.advance()
    reader.finish()


def test_writer_sends_no_more_than_has_arrived(pair):
    """Across items and headers, for any fragmentation."""
    blocks = [memoryview(bytes([number]) * (number * 3)) for number in range(1, 8)]
    stream = b"".join(blocks)
    reader_side, writer_side = socket.socketpair()
    with reader_side, writer_side:
        reader = RingReader(Channel(reader_side, Peer(1)), [memoryview(bytearray(len(block))) for block in blocks])
        writer = RingWriter(Channel(pair[0], Peer(2)), [b"own"], reader.items[:-1])
        sent = b""
        for start in range(0, len(stream), 5):
            writer_side.sendall(stream[start : start + 5])
            while reader.received < min(start + 5, len(stream)):
                reader.advance()
            writer.flush(reader.received)
            while not writer.has_work(reader.received) and len(sent) < writer._sent:
                sent += pair[1].recv(100)
            assert sent == (b"own" + stream[: start + 5])[: 3 + len(stream) - len(blocks[-1])]
        assert reader.is_done and writer.is_done


def test_frames_do_not_depend_on_how_a_block_is_laid_out(monkeypatch):
    """Displacements are local to a rank; headers must be at the same bytes of every stream."""
    monkeypatch.setattr(ring, "MAX_FRAME_DATA_BYTES", 10)
    whole = memoryview(bytes(range(33)))
    layouts = [[whole], [whole[:7], whole[7:7], whole[7:25], whole[25:]], [whole[:10], whole[10:20], whole[20:]]]
    streams = {b"".join(ring.split_into_frames(4, layout)) for layout in layouts}
    assert len(streams) == 1
    assert len(streams.pop()) == 33 + 4 * len(ring_header(4, 0))

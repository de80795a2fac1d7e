"""The wire format: round trips, limits, and arbitrary bytes."""

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.comm.backends.tcp.wire import messages, protocol
from cobre.comm.backends.tcp.wire.messages import (
    Challenge,
    FailureKind,
    FailureRecord,
    Heartbeat,
    Hello,
    Link,
    RingOffer,
    VersionError,
)
from cobre.comm.backends.tcp.wire.protocol import (
    CONTROL_LIMITS,
    HANDSHAKE_LIMITS,
    HEADER_BYTES,
    PROOF_BYTES,
    CallHeader,
    FieldReader,
    FrameParser,
    ProtocolError,
    Tag,
    call_header,
    describe_dtype,
    frame,
    hash_counts,
    pack_text,
)
from cobre.comm.errors import Peer
from cobre.comm.types import Operation, ReduceOp

texts = st.text(max_size=20)
ranks = st.integers(0, 2**32 - 1)
numbers = st.integers(0, 2**64 - 1)
hellos = st.builds(
    Hello,
    rank=ranks,
    size=ranks,
    run_id=texts,
    host=texts,
    pid=numbers,
    package_version=texts,
    byte_order=texts,
    link=st.sampled_from(Link),
    instance=st.binary(min_size=16, max_size=16),
    nonce=st.binary(min_size=32, max_size=32),
)
challenges = st.builds(
    Challenge, nonce=st.binary(min_size=32, max_size=32), host=texts, pid=numbers, package_version=texts
)
heartbeats = st.builds(
    Heartbeat,
    sequence=numbers,
    operation=st.integers(0, 255),
    in_call=st.booleans(),
    missing=st.lists(ranks, max_size=16).map(tuple),
    label=st.text(max_size=messages.MAX_LABEL_BYTES // 4),
)
failure_records = st.builds(
    FailureRecord,
    kind=st.sampled_from(FailureKind),
    sequence=numbers,
    peers=st.lists(st.builds(Peer, rank=ranks, host=texts, pid=numbers, status=texts), max_size=16).map(tuple),
    text=texts,
)
offers = st.builds(
    RingOffer,
    rank=ranks,
    host=texts,
    pid=numbers,
    address=texts,
    port=st.integers(0, 65535),
    token=st.binary(max_size=16),
    certificate=st.binary(max_size=32),
    problem=texts,
)
any_message = hellos | challenges | heartbeats | failure_records | offers


@given(any_message)
def test_every_message_survives_encoding(message):
    assert type(message).parse(message.pack()) == message


@given(any_message, st.data())
def test_truncated_messages_and_trailing_bytes_raise(message, data):
    payload = message.pack()
    cut = data.draw(st.integers(0, len(payload) - 1))
    for wrong in (payload[:cut], payload + b"\0"):
        with pytest.raises(ProtocolError):
            type(message).parse(wrong)


@given(st.sampled_from([Hello, Challenge, Heartbeat, FailureRecord, RingOffer]), st.binary(max_size=300))
def test_arbitrary_bytes_raise_protocol_errors_only(kind, payload):
    try:
        message = kind.parse(payload)
    except ProtocolError:
        return
    # Otherwise the bytes were a valid message: its flags may have several encodings, its meaning only one.
    assert kind.parse(message.pack()) == message


@given(st.lists(st.tuples(st.sampled_from(sorted(CONTROL_LIMITS)), st.binary(max_size=50)), max_size=10), st.data())
def test_frames_are_complete_however_the_stream_is_cut(frames, data):
    frames = [(tag, payload[: CONTROL_LIMITS[tag]]) for tag, payload in frames]
    stream = b"".join(frame(tag, payload) for tag, payload in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    parser, parsed = FrameParser(CONTROL_LIMITS), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        parsed += parser.feed(stream[start:end])
    assert parsed == frames


@given(st.binary(max_size=2000), st.sampled_from([CONTROL_LIMITS, HANDSHAKE_LIMITS]))
def test_parser_never_needs_more_than_its_limit(stream, limits):
    parser = FrameParser(limits)
    try:
        for start in range(0, len(stream), 7):
            parser.feed(stream[start : start + 7])
            assert 0 < parser.needed <= max(limits.values())
    except ProtocolError:
        pass


@pytest.mark.parametrize(
    "header", [struct.pack(">IB", 2**32 - 1, Tag.HELLO), struct.pack(">IB", 0, 0xEE), b"GET / HTTP/1.1\r\n"]
)
def test_invalid_frame_raises_after_its_first_bytes(header):
    with pytest.raises(ProtocolError):
        FrameParser(HANDSHAKE_LIMITS).feed(header)


def test_another_protocol_version_is_named_first():
    payload = messages.MAGIC + struct.pack(">H", 99) + bytes(40)
    for message in (Hello, Challenge):
        with pytest.raises(VersionError, match="protocol version 99"):
            message.parse(payload)


def test_unknown_link_kind_raises():
    hello = Hello(1, 2, "", "", 1, "", "", 7, bytes(16), bytes(32))
    with pytest.raises(ProtocolError, match="unknown link 7"):
        Hello.parse(hello.pack())


def test_unknown_failure_kind_raises():
    payload = bytearray(FailureRecord(FailureKind.ABORTED, 1, ()).pack())
    payload[0] = 99
    with pytest.raises(ProtocolError, match="unknown kind of failure 99"):
        FailureRecord.parse(bytes(payload))


def test_text_that_is_not_utf8_raises():
    with pytest.raises(ProtocolError, match="not valid UTF-8"):
        FieldReader(struct.pack(">H", 2) + b"\xff\xfe").text()


def test_texts_are_truncated_between_characters():
    assert FieldReader(pack_text("é" * 100, 5)).text() == "éé"
    with pytest.raises(ProtocolError, match="exceeds the limit of 3"):
        FieldReader(pack_text("four")).text(3)


def test_largest_handshake_fits_into_the_limit_before_authentication():
    hello = Hello(
        2**32 - 1, 2**32 - 1, "r" * 500, "h" * 500, 2**64 - 1, "9" * 500, "x" * 500, Link.DATA, bytes(16), bytes(32)
    )
    size = len(frame(Tag.HELLO, hello.pack() + bytes(PROOF_BYTES))) + len(frame(Tag.PROOF, bytes(32)))
    assert size <= protocol.MAX_UNAUTHENTICATED_BYTES
    assert len(hello.pack()) + PROOF_BYTES <= HANDSHAKE_LIMITS[Tag.HELLO]


def test_largest_failure_record_fits_into_its_frame():
    peers = tuple(Peer(rank, "h" * 500, 2**63, "s" * 5000) for rank in range(100))
    failure = FailureRecord(FailureKind.SILENT, 2**63, peers, "t" * 10_000)
    parsed = FrameParser(CONTROL_LIMITS).feed(frame(Tag.FAILURE, failure.pack()))
    assert len(FailureRecord.parse(parsed[0][1]).peers) == messages.MAX_PEERS


def test_part_headers_are_checked_against_part_sizes():
    header = protocol.part_header(1, 8, 4)
    assert protocol.parse_part_header(header, [0, 12]) == (1, 8, 4)
    for sizes in ([0], [0, 11], [12, 0]):
        with pytest.raises(ProtocolError):
            protocol.parse_part_header(header, sizes)
    with pytest.raises(ProtocolError):
        protocol.parse_part_header(protocol.part_header(0, 0, 0), [5])
    assert protocol.parse_data_header(protocol.data_header(5), 5) == 5
    for nbytes in (6, 0):
        with pytest.raises(ProtocolError):
            protocol.parse_data_header(protocol.data_header(nbytes), 5)


@given(st.binary(min_size=17, max_size=17), st.lists(st.integers(0, 2**40), max_size=5))
def test_part_outside_receive_buffer_raises(header, sizes):
    try:
        source, offset, nbytes = protocol.parse_part_header(header, sizes)
    except ProtocolError:
        return
    assert 0 <= offset < offset + nbytes <= sizes[source]


@given(st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES))
def test_arbitrary_call_header_raises_or_has_description(header):
    with contextlib.suppress(ProtocolError):
        assert str(CallHeader.parse(header))


@pytest.mark.parametrize(
    "operation,options,words",
    [
        (Operation.BARRIER, {}, "barrier"),
        (
            Operation.ALLGATHERV,
            {"count": 416, "total": 832, "counts_hash": 0xABCD1234},
            "(float64, 416 of 832, counts 1234)",
        ),
        (Operation.ALLREDUCE, {"total": 4, "reduction": ReduceOp.MAX}, "allreduce (float64, 4, MAX)"),
        (Operation.BROADCAST, {"total": 4, "root": 3}, "broadcast (float64, 4, root 3)"),
        (Operation.CREATE_SHARED_REGION, {"total": 4}, "create_shared_region (float64, 4)"),
        (99, {}, "operation 99"),
    ],
)
def test_calls_are_described_as_on_shared_memory(operation, options, words):
    header = call_header(7, operation, dtype=describe_dtype(np.dtype("f8")), **options)
    assert words in str(CallHeader.parse(header))
    assert CallHeader.parse(header).sequence == 7


def test_dtypes_that_differ_only_in_layout_differ():
    packed = np.dtype([("a", "i4"), ("b", "f8")])
    aligned = np.dtype([("a", "i4"), ("b", "f8")], align=True)
    assert describe_dtype(packed)[0] != describe_dtype(aligned)[0]
    assert describe_dtype(np.dtype("i8"))[0] != describe_dtype(np.dtype("u8"))[0]
    assert describe_dtype(np.dtype("f8")) == describe_dtype(np.dtype(np.float64))


def test_counts_hash_to_the_same_number_everywhere():
    assert hash_counts((1, 2, 3)) == 0xF4D62952D2A3EE72
    assert hash_counts((1, 2, 3)) != hash_counts((3, 2, 1))


def test_goodbye_carries_the_last_completed_call():
    assert messages.parse_goodbye(messages.pack_goodbye(2**40)) == 2**40
    with pytest.raises(ProtocolError):
        messages.parse_goodbye(b"")

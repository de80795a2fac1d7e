"""Coverage-guided fuzzing of all code that reads from the network: `python tests/fuzz/fuzz_tcp.py`.

Needs atheris, which `make test` does not; the same properties run there with hypothesis. Options are libFuzzer's:
`-max_total_time=600`, a folder to keep the corpus in.
"""

import contextlib
import sys

import atheris

from cobre.comm.backends.tcp.rendezvous.handshake import CoordinatorHandshake, RefusedError, WorkerHandshake
from cobre.comm.backends.tcp.wire.messages import Challenge, FailureRecord, Heartbeat, Hello, Link, RingOffer
from cobre.comm.backends.tcp.wire.protocol import (
    CONTROL_LIMITS,
    HEADER_BYTES,
    PART_HEADER,
    CallHeader,
    FrameParser,
    ProtocolError,
    parse_part_header,
)

SECRET = b"the secret of the fuzzed run"
REFUSALS = (ProtocolError, RefusedError)


def fuzz_messages(data):
    for kind in (Hello, Challenge, Heartbeat, FailureRecord, RingOffer):
        try:
            message = kind.parse(data)
        except ProtocolError:
            continue
        assert kind.parse(message.pack()) == message


def fuzz_frames(data):
    parser = FrameParser(CONTROL_LIMITS)
    try:
        for start in range(0, len(data), 13):
            parser.feed(data[start : start + 13])
            assert parser.needed <= max(CONTROL_LIMITS.values())
    except ProtocolError:
        pass


def fuzz_coordinator(data):
    handshake = CoordinatorHandshake(SECRET)
    with contextlib.suppress(REFUSALS):
        handshake.receive(data)
    assert not handshake.is_authenticated


def fuzz_worker(data):
    handshake = WorkerHandshake(1, 2, "run", SECRET, Link.DATA, bytes(16))
    with contextlib.suppress(REFUSALS):
        handshake.receive(data)
    assert not handshake.is_welcome


def fuzz_headers(data):
    sizes = [1000, 0, 5]
    try:
        source, offset, nbytes = parse_part_header(data[: PART_HEADER.size].ljust(PART_HEADER.size, b"\0"), sizes)
        assert offset + nbytes <= sizes[source]
    except ProtocolError:
        pass
    with contextlib.suppress(ProtocolError):
        str(CallHeader.parse(data[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0")))


TARGETS = (fuzz_messages, fuzz_frames, fuzz_coordinator, fuzz_worker, fuzz_headers)


def test_one_input(data):
    """Choose the target by the first byte, and feed it the rest."""
    if data:
        TARGETS[data[0] % len(TARGETS)](data[1:])


if __name__ == "__main__":
    # Not instrument_imports(): it does not reach the modules of an editable install, and mutation would be blind.
    atheris.instrument_all()
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()

"""Both sides of the handshake without sockets: accepted and refused peers, with reasons."""

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.comm.backends.tcp.rendezvous import handshake
from cobre.comm.backends.tcp.rendezvous.handshake import (
    CoordinatorHandshake,
    RefusedError,
    UnprovenRefusalError,
    WorkerHandshake,
    parse_refusal,
)
from cobre.comm.backends.tcp.wire.messages import Hello, Link
from cobre.comm.backends.tcp.wire.protocol import PREFIX_BYTES, PROOF_BYTES, ProtocolError, Tag, frame

SECRET = b"the secret of this run"
INSTANCE = bytes(range(16))


def worker(secret=SECRET, rank=1):
    return WorkerHandshake(rank, 4, "run", secret, Link.DATA, INSTANCE)


def exchange_proof(coordinator, peer):
    """Exchange messages up to the proof."""
    challenge = coordinator.receive(peer.begin())
    coordinator.receive(peer.receive(challenge))


def test_both_sides_authenticate_each_other():
    coordinator, peer = CoordinatorHandshake(SECRET), worker()
    exchange_proof(coordinator, peer)
    assert coordinator.is_authenticated and not peer.is_welcome
    peer.receive(coordinator.welcome())
    assert peer.is_welcome and not peer.has_started
    peer.receive(frame(Tag.START))
    assert peer.has_started
    assert (coordinator.hello.rank, coordinator.hello.size, coordinator.hello.run_id) == (1, 4, "run")
    assert peer.coordinator.pid == coordinator.hello.pid


@pytest.mark.parametrize("secret,peer_secret", [(SECRET, b"another secret altogether"), (SECRET, b""), (b"", SECRET)])
def test_wrong_or_absent_secret_is_refused_and_not_shown(secret, peer_secret):
    coordinator, peer = CoordinatorHandshake(secret), worker(peer_secret)
    with pytest.raises(RefusedError, match="secret of rank 1") as caught:
        exchange_proof(coordinator, peer)
    assert not coordinator.is_authenticated
    for hidden in filter(None, (secret, peer_secret)):
        assert hidden.decode() not in str(caught.value)
    with pytest.raises(RefusedError, match="COBRE_TCP_SECRET_FILE"):
        peer.receive(caught.value.frame())


def test_coordinator_without_the_secret_is_refused():
    peer, other = worker(), CoordinatorHandshake(b"no idea, but long enough")
    peer.receive(other.receive(peer.begin()))
    with pytest.raises(RefusedError, match="does not hold this rank's secret"):
        peer.receive(other.welcome())
    assert not peer.is_welcome


def test_replayed_handshake_is_refused():
    recorded = []
    peer = worker()
    recorded.append(peer.begin())
    first = CoordinatorHandshake(SECRET)
    recorded.append(peer.receive(first.receive(recorded[0])))
    first.receive(recorded[1])
    assert first.is_authenticated
    second = CoordinatorHandshake(SECRET)
    second.receive(recorded[0])
    with pytest.raises(RefusedError, match="secret"):
        second.receive(recorded[1])
    assert not second.is_authenticated


def test_proof_covers_all_fields_of_the_hello():
    """A handshake is refused when an attacker in between changes rank 1 to rank 2."""
    peer, coordinator = worker(), CoordinatorHandshake(SECRET)
    payload = peer.begin()[PREFIX_BYTES:]
    hello, mark = Hello.parse(payload[:-PROOF_BYTES]), payload[-PROOF_BYTES:]
    forged = Hello(2, *(getattr(hello, name) for name in list(Hello.__dataclass_fields__)[1:]))
    challenge = coordinator.receive(frame(Tag.HELLO, forged.pack() + mark))
    assert coordinator.mark is None, "nor is it preferred"
    with pytest.raises(RefusedError, match="secret"):
        coordinator.receive(peer.receive(challenge))


def test_only_a_holder_of_the_secret_can_mark_its_first_message():
    for secret, is_marked in ((SECRET, True), (b"another", False), (b"", False)):
        coordinator = CoordinatorHandshake(secret)
        coordinator.receive(worker().begin())
        assert (coordinator.mark is not None) is is_marked


def test_coordinators_proof_cannot_be_reflected():
    """A worker's proof is refused when it is sent back as the coordinator's."""
    peer, coordinator = worker(), CoordinatorHandshake(SECRET)
    proof = peer.receive(coordinator.receive(peer.begin()))
    with pytest.raises(RefusedError, match="does not hold"):
        peer.receive(frame(Tag.WELCOME, proof[PREFIX_BYTES:]))


def test_versions_are_compared_on_both_sides(monkeypatch):
    peer, coordinator = worker(), CoordinatorHandshake(SECRET)
    challenge = coordinator.receive(peer.begin())
    monkeypatch.setattr(handshake, "__version__", "9.9.9")
    with pytest.raises(RefusedError, match=r"runs cobre .*, the coordinator runs 9\.9\.9"):
        CoordinatorHandshake(SECRET).receive(peer.begin())
    with pytest.raises(RefusedError, match=r"this rank runs 9\.9\.9"):
        peer.receive(challenge)


def test_byte_orders_are_compared():
    hello = replace(Hello.parse(worker().begin()[PREFIX_BYTES:-PROOF_BYTES]), byte_order="middle")
    with pytest.raises(RefusedError, match="is middle-endian, the coordinator is"):
        CoordinatorHandshake(SECRET).receive(frame(Tag.HELLO, hello.pack() + bytes(PROOF_BYTES)))


def test_refusals_survive_encoding():
    refusal, _ = parse_refusal(RefusedError("no", may_retry=True).frame()[PREFIX_BYTES:])
    assert (refusal.text, refusal.may_retry) == ("no", True)
    assert not parse_refusal(RefusedError("no").frame()[PREFIX_BYTES:])[0].may_retry


@pytest.mark.parametrize("text", ["two ranks", "x" * 5000, "Ω" * 2000])
def test_coordinator_proves_a_refusal_to_a_worker_that_has_proven_itself(text):
    coordinator, peer = CoordinatorHandshake(SECRET), worker()
    exchange_proof(coordinator, peer)
    with pytest.raises(RefusedError) as caught:
        peer.receive(coordinator.refusal(RefusedError(text)))
    assert not isinstance(caught.value, UnprovenRefusalError) and not caught.value.may_retry


def test_refusal_without_a_valid_proof_may_be_retried():
    coordinator, peer = CoordinatorHandshake(SECRET), worker()
    challenge = coordinator.receive(peer.begin())
    assert coordinator.refusal(RefusedError("no")) == RefusedError("no").frame(), "strangers get no proof"
    coordinator.receive(peer.receive(challenge))
    proven = coordinator.refusal(RefusedError("no"))
    for forged in (RefusedError("no").frame(), RefusedError("go").frame(proven[-32:])):
        with pytest.raises(UnprovenRefusalError) as caught:
            peer.receive(forged)
        assert caught.value.may_retry


@pytest.mark.parametrize("tag", [Tag.START, Tag.WELCOME])
def test_worker_refuses_frames_out_of_order(tag):
    payload = bytes(32) if tag is Tag.WELCOME else b""
    with pytest.raises(ProtocolError, match="out of order"):
        worker().receive(frame(tag, payload))


def test_coordinator_refuses_frames_out_of_order():
    with pytest.raises(ProtocolError, match="PROOF out of order"):
        CoordinatorHandshake(SECRET).receive(frame(Tag.PROOF, bytes(32)))
    coordinator, peer = CoordinatorHandshake(SECRET), worker()
    coordinator.receive(peer.begin())
    with pytest.raises(ProtocolError, match="HELLO out of order"):
        coordinator.receive(peer.begin())


def test_bytes_before_authentication_are_limited():
    coordinator, hello = CoordinatorHandshake(SECRET), worker().begin()
    coordinator.receive(hello)
    with pytest.raises(ProtocolError, match=r"more than \d+ bytes before PROOF"):
        coordinator.receive(bytes(handshake.MAX_UNAUTHENTICATED_BYTES))
    assert not coordinator.is_authenticated


@given(st.lists(st.binary(max_size=400), max_size=8))
def test_arbitrary_bytes_never_authenticate_a_worker(pieces):
    coordinator = CoordinatorHandshake(SECRET)
    try:
        for piece in pieces:
            coordinator.receive(piece)
    except (ProtocolError, RefusedError):
        pass
    assert not coordinator.is_authenticated


@given(st.data())
def test_changed_byte_never_authenticates_a_worker(data):
    coordinator, peer = CoordinatorHandshake(SECRET), worker()
    messages = [peer.begin()]
    messages.append(peer.receive(coordinator.receive(messages[0])))
    turn = data.draw(st.integers(0, 1))
    at = data.draw(st.integers(0, len(messages[turn]) - 1))
    flip = data.draw(st.integers(1, 255))
    changed = bytearray(messages[turn])
    changed[at] ^= flip
    victim = CoordinatorHandshake(SECRET) if turn == 0 else coordinator
    try:
        reply = victim.receive(bytes(changed))
        if turn == 0 and reply:
            victim.receive(peer_proof(peer, reply))
    except (ProtocolError, RefusedError):
        pass
    assert not victim.is_authenticated


def peer_proof(peer, challenge):
    """Return the proof of a worker that did not notice that its hello was changed in transit."""
    peer.coordinator = None
    return peer.receive(challenge)


@given(st.binary(max_size=600))
def test_arbitrary_bytes_never_authenticate_a_coordinator(stream):
    peer = worker()
    with contextlib.suppress(ProtocolError, RefusedError):
        peer.receive(stream)
    assert not peer.is_welcome and not peer.has_started

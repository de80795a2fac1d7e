"""Failure records and progress lines of ranks that share a host."""

from types import SimpleNamespace

import pytest

from cobre.comm.backends.tcp import node_group
from cobre.comm.backends.tcp.node_group import Nodes
from cobre.comm.backends.tcp.wire.messages import FailureKind, FailureRecord, Heartbeat
from cobre.comm.errors import Peer

ROOM = 1535  # bytes of a failure's text in the host's memory


def test_ranks_are_grouped_by_their_identities():
    hosts = Nodes.from_identities([b"a", b"b", b"a", b"c", b"b"])
    assert hosts.groups == ((0, 2), (1, 4), (3,))
    assert hosts.any_shared and hosts.node_of(4) == (1, 4)
    assert not Nodes.from_identities([b"a", b"b"]).any_shared


@pytest.mark.parametrize("text", ["", "rank 2 (host a, pid 7): ValueError: no", "\u2603" * 5000])
def test_failure_record_fits_into_the_memory_of_a_host(text):
    peers = tuple(Peer(rank, "h" * 120, 2**22, "died; its last call was " + "x" * 400) for rank in range(16))
    failure = FailureRecord(FailureKind.ABORTED, 7, peers, text)
    packed = node_group.failure_to_text(failure)
    assert len(packed) <= ROOM and b"\0" not in packed
    read = node_group.failure_from_text(packed.decode())
    assert (read.kind, read.sequence, read.peers[0].rank) == (FailureKind.ABORTED, 7, 0)
    assert read.text == text[: len(read.text)] and len(read.text) >= min(len(text), 130)


def test_other_text_is_not_parsed_as_failure_record():
    assert node_group.failure_from_text("the world failed, but the rank that found out died while saying why") is None


def transport(*, waits_inside_node, beat):
    monitor = SimpleNamespace(heartbeats={} if beat is None else {0: beat})
    return SimpleNamespace(monitor=monitor, progress=SimpleNamespace(started=5, waits_inside_node=waits_inside_node))


@pytest.mark.parametrize(
    ("waits_inside_node", "beat", "expected"),
    [
        (True, Heartbeat(5, 1, in_call=True, missing=(6,)), "pid 3"),  # its own ranks are not all here
        (False, Heartbeat(5, 1, in_call=True, missing=(6,)), "rank 6"),
        (False, Heartbeat(4, 1, in_call=True, missing=(6,)), "pid 3"),  # of an earlier call
        (False, None, "pid 3"),
    ],
)
def test_complete_host_names_the_ranks_that_the_coordinator_waits_for(waits_inside_node, beat, expected):
    (name,) = node_group.awaited_ranks(
        transport(waits_inside_node=waits_inside_node, beat=beat), ["rank 1 (pid 3, last call #4 barrier)"]
    )
    assert expected in name

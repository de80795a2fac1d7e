"""How a rank waits: which ranks spin before they sleep, and what ends a sleep."""

import os
import socket
import ssl
import threading

import pytest

from cobre.comm.backends.tcp.liveness import CoordinatorMonitor, Progress, WorldFailedError
from cobre.comm.backends.tcp.transport import waiting
from cobre.comm.backends.tcp.transport.channel import Channel, LinkLostError, TlsChannel
from cobre.comm.backends.tcp.transport.waiting import (
    MAX_SKIPPED,
    READ,
    CoordinatorWaiter,
    SpinWait,
    WaitPolicy,
    spin_wait_for,
)
from cobre.comm.backends.tcp.wire.messages import FailureKind, FailureRecord
from cobre.comm.cores import usable_cores
from cobre.comm.errors import Peer

DEADLINE_S = 30.0
SPINS = pytest.mark.parametrize("spin_s", [0.0, 1e-4])


@pytest.fixture
def pair():
    left, right = socket.socketpair()
    with left, right:
        yield left, right


@pytest.fixture
def monitor():
    monitor = CoordinatorMonitor({}, Progress(), DEADLINE_S)
    yield monitor
    monitor.close()


def waiter(monitor, spin_s, limit_s=DEADLINE_S):
    return CoordinatorWaiter(monitor, 1, WaitPolicy(SpinWait(spin_s), limit_s, lambda seconds, names: None))


def spins(spin_wait):
    """Count the attempts of an unsuccessful spin before the caller may sleep."""
    attempts = []
    assert spin_wait.spin(lambda: attempts.append(1)) is None
    return len(attempts)


def test_ranks_spin_only_if_each_has_a_core():
    assert spins(spin_wait_for(1)) > 0
    assert spins(spin_wait_for(usable_cores())) > 0
    assert spins(spin_wait_for(usable_cores() + 1)) == 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the platform has no affinity masks")
def test_ranks_bound_to_one_core_sleep_at_once():
    everything = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(everything)})
    try:
        assert spins(spin_wait_for(2)) == 0
    finally:
        os.sched_setaffinity(0, everything)


def test_failed_spins_increase_backoff():
    spin_wait = SpinWait(1e-6)
    spun = [spins(spin_wait) > 0 for _ in range(1000)]
    assert spun[:8] == [True, False, True, False, False, False, True, False]
    assert 0 < sum(spun[-2 * MAX_SKIPPED :]) <= 2


def test_successful_spin_halves_backoff():
    spin_wait = SpinWait(1e-6)
    for _ in range(1000):
        spins(spin_wait)
    found = [spin_wait.spin(lambda: "it") == "it" for _ in range(1000)]
    assert all(found[-100:])


@SPINS
def test_await_bytes_returns_arrived_bytes_or_zero_after_timeout(pair, spin_s):
    channel, view = Channel(pair[0], Peer(1), SpinWait(spin_s)), memoryview(bytearray(4))
    assert channel.await_bytes(view) == 0
    pair[1].send(b"abcd")
    assert channel.await_bytes(view) == 4 and view == b"abcd"


@SPINS
def test_ended_connection_is_noticed_while_waiting(pair, spin_s):
    channel = Channel(pair[0], Peer(1), SpinWait(spin_s))
    pair[1].close()
    with pytest.raises(LinkLostError):
        channel.await_bytes(memoryview(bytearray(4)))


@SPINS
def test_tls_connection_before_its_handshake_has_no_bytes(pair, spin_s):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    sock = context.wrap_socket(pair[0], do_handshake_on_connect=False)
    with sock:
        assert TlsChannel(sock, Peer(1), SpinWait(spin_s)).await_bytes(memoryview(bytearray(4))) == 0


@SPINS
def test_descriptor_that_is_ready_ends_the_sleep(pair, monitor, spin_s):
    pair[1].send(b"x")
    assert waiter(monitor, spin_s).sleep({end.fileno(): READ for end in pair}, ()) == [pair[0].fileno()]


@SPINS
def test_failure_ends_the_sleep(pair, monitor, spin_s):
    failure = FailureRecord(FailureKind.ABORTED, 1, (), "enough")
    later = threading.Timer(0.01, monitor.set_failure, (failure,))
    later.start()
    with pytest.raises(WorldFailedError):
        waiter(monitor, spin_s).sleep({pair[0].fileno(): READ}, ())
    later.join()


@SPINS
@pytest.mark.parametrize("is_known", [True, False])
def test_failure_of_a_later_call_does_not_end_the_sleep(pair, monitor, spin_s, is_known, monkeypatch):
    monkeypatch.setattr(waiting, "POLL_S", 0.005)  # the loop runs several times before data arrives
    recorded = threading.Timer(
        0.0 if is_known else 0.02, monitor.set_failure, (FailureRecord(FailureKind.ABORTED, 2, (), "enough"),)
    )
    recorded.start()
    if is_known:
        recorded.join()
    later = threading.Timer(0.06, pair[1].send, (b"x",))
    later.start()
    assert waiter(monitor, spin_s).sleep({pair[0].fileno(): READ}, ()) == [pair[0].fileno()]
    recorded.join()
    later.join()
    assert pair[0].recv(1) == b"x"


@SPINS
def test_call_beyond_its_hard_limit_fails_as_overdue(pair, monitor, spin_s):
    with pytest.raises(WorldFailedError) as caught:
        waiter(monitor, spin_s, limit_s=0.01).sleep({pair[0].fileno(): READ}, ())
    assert caught.value.failure.kind is FailureKind.OVERDUE

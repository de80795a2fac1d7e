"""Socket options of data and control connections."""

import socket

KEEPALIVE_PROBES = 3
MAX_KEEPALIVE_S = 32767  # Linux rejects larger values
MAX_USER_TIMEOUT_MS = 2**31 - 1


def prepare_data(sock: socket.socket, timeout_s: float) -> None:
    """Options for payloads: no Nagle delay, keepalive.

    Buffer sizes are left alone: setting them would disable the kernel's autotuning. There is no TCP_USER_TIMEOUT: Linux
    also counts the time in which the peer is alive but does not read, and a rank that computes for a long time while a
    payload waits for it must not lose its connection. The control connection detects a lost peer instead.
    """
    _prepare(sock, timeout_s)


def prepare_ring(sock: socket.socket, timeout_s: float) -> None:
    """Options for payloads between neighbours.

    With a limit on unacknowledged bytes, unlike `prepare_data`: data moves only while all hosts are in one call, and no
    heartbeat is sent on this connection. Only the limit shows that neighbours cannot reach each other although the
    coordinator reaches both.
    """
    prepare_control(sock, timeout_s)


def prepare_control(sock: socket.socket, timeout_s: float) -> None:
    """Options for heartbeats: no Nagle delay, keepalive, and a limit on how long bytes may stay unacknowledged."""
    _prepare(sock, timeout_s)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # 1.5 times our own timeout, whose message is better; the kernel's default is about a quarter of an hour.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(min(timeout_s * 1500, MAX_USER_TIMEOUT_MS)))


def _prepare(sock: socket.socket, timeout_s: float) -> None:
    sock.setblocking(False)
    # Otherwise Nagle's algorithm holds a small frame back until the previous one is acknowledged.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # A host that has lost power sends nothing, not even a reset: after this many unanswered probes the kernel gives up.
    seconds = max(1, int(min(timeout_s / (KEEPALIVE_PROBES + 1), MAX_KEEPALIVE_S)))
    for name, value in (("TCP_KEEPIDLE", seconds), ("TCP_KEEPINTVL", seconds), ("TCP_KEEPCNT", KEEPALIVE_PROBES)):
        if hasattr(socket, name):  # some have other names on macOS; there the default has to do
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

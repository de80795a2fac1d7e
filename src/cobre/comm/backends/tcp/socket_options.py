"""What the kernel is told about our connections."""

import socket

KEEPALIVE_PROBES = 3
MAX_KEEPALIVE_S = 32767  # the kernel refuses more
MAX_USER_TIMEOUT_MS = 2**31 - 1


def prepare_data(sock: socket.socket, timeout_s: float) -> None:
    """For payloads: no delays, keepalive.

    No sizes of buffers: the kernel fits them to the path, and a size of ours would switch that off. No user timeout:
    Linux also counts the time in which the other side is alive but does not read, and a rank that computes for long
    while a payload waits for it must not lose its connection. The control connection notices instead.
    """
    _prepare(sock, timeout_s)


def prepare_control(sock: socket.socket, timeout_s: float) -> None:
    """For heartbeats: no delays, keepalive, and the kernel gives up on unacknowledged bytes."""
    _prepare(sock, timeout_s)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Later than our own limit, whose message is better; earlier than the kernel's quarter of an hour.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(min(timeout_s * 1500, MAX_USER_TIMEOUT_MS)))


def _prepare(sock: socket.socket, timeout_s: float) -> None:
    sock.setblocking(False)
    # Without it the kernel holds a small frame back until the previous one is acknowledged.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # A host that lost power sends nothing, not even an end: after this many unanswered probes the kernel gives up.
    seconds = max(1, int(min(timeout_s / (KEEPALIVE_PROBES + 1), MAX_KEEPALIVE_S)))
    for name, value in (("TCP_KEEPIDLE", seconds), ("TCP_KEEPINTVL", seconds), ("TCP_KEEPCNT", KEEPALIVE_PROBES)):
        if hasattr(socket, name):  # macOS calls some of them otherwise; there the default must do
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

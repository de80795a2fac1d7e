"""What the kernel is told about our connections."""

import socket

# Measured on loopback: smaller buffers cost system calls, larger ones fall out of the cache.
BUFFER_BYTES = 1 << 20
KEEPALIVE_PROBES = 3


def prepare_data(sock: socket.socket, timeout_s: float) -> None:
    """For payloads: no delays, large buffers, keepalive.

    No user timeout here: Linux also counts the time in which the other side is alive but does not read, and a rank that
    computes for long while a payload waits for it must not lose its connection. The control connection notices instead.
    """
    _prepare(sock, timeout_s)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)


def prepare_control(sock: socket.socket, timeout_s: float) -> None:
    """For heartbeats: no delays, keepalive, and the kernel gives up on unacknowledged bytes."""
    _prepare(sock, timeout_s)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Later than our own limit, whose message is better; earlier than the kernel's quarter of an hour.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(timeout_s * 1500))


def _prepare(sock: socket.socket, timeout_s: float) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    seconds = max(1, int(timeout_s / (KEEPALIVE_PROBES + 1)))
    for name, value in (("TCP_KEEPIDLE", seconds), ("TCP_KEEPINTVL", seconds), ("TCP_KEEPCNT", KEEPALIVE_PROBES)):
        if hasattr(socket, name):  # macOS calls some of them otherwise; there the default must do
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

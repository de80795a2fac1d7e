"""A connection that the coordinator has accepted but not yet authenticated: bounded memory, bounded time."""

import contextlib
import socket
import ssl
import time

from cobre.comm.backends.tcp.rendezvous.handshake import HANDSHAKE_S, CoordinatorHandshake
from cobre.comm.backends.tcp.rendezvous.tls import TLS_HANDSHAKE

WANTS_READ = (BlockingIOError, ssl.SSLWantReadError)


class PendingConnection:
    """One connection during its handshake; never blocks, so that a slow peer does not delay the others."""

    def __init__(
        self, sock: socket.socket, host: str, port: int, secret: bytes, context: ssl.SSLContext | None
    ) -> None:
        sock.setblocking(False)
        self.host = host
        self.address = f"{host} port {port}"
        self.speaks_tls = False
        """The peer started a TLS handshake, but the coordinator does not use TLS: worth a better message."""
        self.deadline = time.monotonic() + HANDSHAKE_S
        self.handshake = CoordinatorHandshake(secret)
        self.sock = (
            sock if context is None else context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        )
        self._in_tls_handshake = context is not None

    def advance(self) -> bool:
        """Continue the handshake with the bytes that have arrived; False if the peer has closed the connection.

        Raises `RefusedError`, `ProtocolError` or `ssl.SSLError` for what it does not accept.
        """
        if self._in_tls_handshake and not self._advance_tls():
            return True
        # Until the socket is empty: OpenSSL may have buffered bytes that the selector cannot see.
        while not self.handshake.is_authenticated:
            try:
                # Never more than the handshake needs: what follows belongs to the channel that gets this socket.
                data = self.sock.recv(self.handshake.needed)
            except WANTS_READ:
                return True
            except OSError:
                return False
            if not data:
                return False
            self.speaks_tls = self.handshake.hello is None and data.startswith(TLS_HANDSHAKE)
            self.send(self.handshake.receive(data))
        return True

    def send(self, data: bytes) -> None:
        """Send without retrying: the few bytes of a handshake fit into an empty socket buffer, or the peer is gone."""
        with contextlib.suppress(OSError):
            self.sock.send(data)

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
        with contextlib.suppress(OSError):
            self.sock.close()

    def _advance_tls(self) -> bool:
        try:
            assert isinstance(self.sock, ssl.SSLSocket)  # noqa: S101 - only then is the flag set
            self.sock.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        self._in_tls_handshake = False
        return True

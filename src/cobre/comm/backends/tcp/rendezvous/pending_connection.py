"""A connection that the coordinator has accepted but does not trust yet: little memory, little time."""

import contextlib
import socket
import ssl
import time

from cobre.comm.backends.tcp.rendezvous.handshake import CoordinatorHandshake

HANDSHAKE_S = 5.0
TLS_HANDSHAKE = b"\x16\x03"
WANTS_READ = (BlockingIOError, ssl.SSLWantReadError)


class PendingConnection:
    """One connection in its handshake; never blocks."""

    def __init__(
        self, sock: socket.socket, host: str, port: int, secret: bytes, context: ssl.SSLContext | None
    ) -> None:
        sock.setblocking(False)
        self.host = host
        self.address = f"{host} port {port}"
        self.speaks_tls = False
        """Where this side does not: what came first is the beginning of a TLS handshake."""
        self.deadline = time.monotonic() + HANDSHAKE_S
        self.handshake = CoordinatorHandshake(secret)
        self.sock = (
            sock if context is None else context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        )
        self._in_tls_handshake = context is not None

    def advance(self) -> bool:
        """Go on with the handshake; False when the peer has hung up. Raises what the handshake raises."""
        if self._in_tls_handshake and not self._advance_tls():
            return True
        while not self.handshake.is_authenticated:
            try:
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
        """Send; the few bytes of a handshake always fit into a fresh connection, or it is no good."""
        with contextlib.suppress(OSError):
            self.sock.send(data)

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self.sock.close()

    def _advance_tls(self) -> bool:
        try:
            assert isinstance(self.sock, ssl.SSLSocket)  # noqa: S101 - told apart by the flag
            self.sock.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        self._in_tls_handshake = False
        return True

"""One control connection: small frames, sent by any thread, read by the monitor."""

import contextlib
import socket
import ssl
import threading

from cobre.comm.backends.tcp.protocol import CONTROL_LIMITS, FrameParser, Tag, frame
from cobre.comm.errors import Peer

READ_BYTES = 4096
MAX_UNSENT_BYTES = 64 * 1024  # a peer that reads nothing for so long is silent anyway
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ControlLink:
    """A control connection to one peer. The lock is held for single calls that never block."""

    def __init__(self, sock: socket.socket, peer: Peer) -> None:
        self.peer = peer
        self.fd = sock.fileno()
        self._sock = sock
        self._lock = threading.Lock()  # OpenSSL's connections do not bear two threads at once
        self._parser = FrameParser(CONTROL_LIMITS)
        self._unsent = bytearray()

    def send(self, tag: Tag, payload: bytes = b"") -> None:
        """Send a frame, or keep it for later when the connection is full; a dead connection is ignored here."""
        with self._lock:
            # Dropped whole where the peer has read nothing for long; cutting a frame would garble all later ones.
            if len(self._unsent) < MAX_UNSENT_BYTES:
                self._unsent += frame(tag, payload)
            self._flush()

    def receive(self) -> list[tuple[Tag, bytes]] | None:
        """The frames that have arrived; None at the end. Raises `OSError` and `ProtocolError`."""
        frames: list[tuple[Tag, bytes]] = []
        while True:
            try:
                with self._lock:  # for the read only: parsing needs no lock, and senders must not wait for it
                    data = self._sock.recv(READ_BYTES)
            except WOULD_BLOCK:
                return frames
            if not data:
                return frames or None
            frames += self._parser.feed(data)

    def close(self) -> None:
        """Send what can be sent without waiting, and close."""
        with self._lock:
            self._flush()
            with contextlib.suppress(OSError):
                # Half-closing first: what the peer has not read yet survives even if it still sends to us.
                self._sock.shutdown(socket.SHUT_WR)
            self._sock.close()

    def drop(self) -> None:
        """Close this process's copy only: in a forked child."""
        # Without the lock, which the parent's thread may have held at the fork, and without shutdown(), which would end
        # the parent's connection too.
        with contextlib.suppress(OSError):
            self._sock.close()

    def _flush(self) -> None:
        with contextlib.suppress(OSError):  # would block, or is dead: the reader will see that
            while self._unsent:
                del self._unsent[: self._sock.send(self._unsent)]

"""One control connection: small frames, sent by any thread, read by the liveness monitor."""

import contextlib
import socket
import ssl
import threading

from cobre.comm.backends.tcp.wire.protocol import CONTROL_LIMITS, FrameParser, Tag, frame
from cobre.comm.errors import Peer

READ_BYTES = 4096
MAX_UNSENT_BYTES = 64 * 1024  # a peer that leaves this much unread has stopped, and will be found silent
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ControlLink:
    """A control connection to one peer. The lock is held for single system calls, none of which blocks."""

    def __init__(self, sock: socket.socket, peer: Peer) -> None:
        self.peer = peer
        self.fd = sock.fileno()
        self._sock = sock
        self._lock = threading.Lock()  # two threads must not use one OpenSSL connection at once
        self._parser = FrameParser(CONTROL_LIMITS)
        self._unsent = bytearray()

    def send(self, tag: Tag, payload: bytes = b"") -> None:
        """Send a frame, or queue it if the socket buffer is full; a dead connection is left for the reader to see."""
        with self._lock:
            # A frame that no longer fits is dropped whole: sending a part of it would garble all later ones.
            if len(self._unsent) < MAX_UNSENT_BYTES:
                self._unsent += frame(tag, payload)
            self._flush()

    def receive(self) -> list[tuple[Tag, bytes]] | None:
        """The frames that have arrived; None at end of file. Raises `OSError` and `ProtocolError`."""
        frames: list[tuple[Tag, bytes]] = []
        while True:
            try:
                with self._lock:  # for the read only: parsing needs no lock, and senders must not wait for it
                    data = self._sock.recv(READ_BYTES)
            except WOULD_BLOCK:
                return frames
            if not data:
                return frames or None  # what came before the end is handled first; the next call returns None
            frames += self._parser.feed(data)

    def close(self) -> None:
        """Send what can be sent without blocking, and close."""
        with self._lock:
            self._flush()
            with contextlib.suppress(OSError):
                # Half-close first: what the peer has not read yet survives even if it is still sending to us.
                self._sock.shutdown(socket.SHUT_WR)
            self._sock.close()

    def drop(self) -> None:
        """Close this process's copy only, in a forked child."""
        # Without the lock, which the parent's thread may have held at the fork, and without shutdown(), which would end
        # the parent's connection too.
        with contextlib.suppress(OSError):
            self._sock.close()

    def _flush(self) -> None:
        with contextlib.suppress(OSError):  # would block, or the connection is dead, which the reader will see
            while self._unsent:
                del self._unsent[: self._sock.send(self._unsent)]

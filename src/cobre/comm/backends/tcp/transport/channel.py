"""One authenticated data connection: bytes are sent from and received into the caller's buffers, without copies."""

import contextlib
import errno
import select
import socket
import ssl
import struct
from collections.abc import Sequence

from cobre.comm.backends.tcp.transport.spin_wait import SpinWait
from cobre.comm.errors import Peer

TLS_PIECE_BYTES = 1 << 18  # OpenSSL encrypts into a buffer of its own; offering it more at once gains nothing
RECEIVE_TIMEOUT_S = 0.1  # the longest that a blocking read keeps its caller from failure records and signals
MAX_VIEWS = 16  # buffers per sendmsg(): far below IOV_MAX, and few enough that building the list costs little


class LinkLostError(Exception):
    """The connection to a peer ended. `cause`: the system's error, or None at an orderly end of file."""

    def __init__(self, peer: Peer, cause: OSError | None = None) -> None:
        super().__init__(peer, cause)
        self.peer = peer
        self.cause = cause


class Channel:
    """A data connection to one peer.

    The socket is blocking, with a limit of RECEIVE_TIMEOUT_S, so that receiving the reply to a small call costs one
    system call instead of a poll and a read. Everything else passes MSG_DONTWAIT. spin_wait: used before a blocking
    read.
    """

    def __init__(self, sock: socket.socket, peer: Peer, spin_wait: SpinWait | None = None) -> None:
        self.sock = sock
        self.peer = peer
        self.fd = sock.fileno()
        self._spin_wait = spin_wait or SpinWait()
        self._make_ready()

    def _make_ready(self) -> None:
        # Not `settimeout`: that makes the socket nonblocking and polls before each read. With SO_RCVTIMEO the kernel
        # itself ends the read, with EAGAIN.
        self.sock.setblocking(True)
        timeval = struct.pack("ll", 0, int(RECEIVE_TIMEOUT_S * 1e6))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval)

    def await_bytes(self, view: memoryview) -> int:
        """Receive into the view, blocking for RECEIVE_TIMEOUT_S at most; 0 if nothing arrived."""
        return self._spin_wait.spin(lambda: self.receive(view)) or self._receive(view, 0)

    def receive(self, view: memoryview) -> int:
        """Receive what has arrived into the view; 0 if nothing has."""
        return self._receive(view, socket.MSG_DONTWAIT)

    def _receive(self, view: memoryview, flags: int) -> int:
        try:
            received = self.sock.recv_into(view, 0, flags)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _lost(self.peer, error) from error
        if received == 0:  # end of file: the peer closed, or its process ended
            raise LinkLostError(self.peer)
        return received

    def send(self, views: Sequence[memoryview | bytes]) -> int:
        """Send as much of the views as the socket buffer takes; 0 if it is full."""
        try:
            return self.sock.sendmsg(views, (), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _lost(self.peer, error, views) from error

    def send_small(self, message: bytes) -> int:
        """Send as much of a small message as the socket buffer takes; cheaper than `send` for one buffer."""
        try:
            return self.sock.send(message, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _lost(self.peer, error) from error

    def close(self) -> None:
        """Close the connection; the kernel still delivers what was sent."""
        with contextlib.suppress(OSError):
            self.sock.close()


class TlsChannel(Channel):
    """A data connection over TLS. Python's TLS sockets take no flags and one buffer only: this never blocks."""

    sock: ssl.SSLSocket

    def _make_ready(self) -> None:
        self.sock.setblocking(False)
        self._poller = select.poll()
        self._poller.register(self.fd, select.POLLIN)

    def await_bytes(self, view: memoryview) -> int:
        """Receive into the view, blocking for RECEIVE_TIMEOUT_S at most; 0 if nothing arrived."""
        # Read before polling: OpenSSL may hold decrypted bytes that poll() cannot see.
        received = self._spin_wait.spin(lambda: self.receive(view)) or self.receive(view)
        if received == 0 and self._poller.poll(RECEIVE_TIMEOUT_S * 1000):
            received = self.receive(view)
        return received

    def receive(self, view: memoryview) -> int:
        """Receive what has arrived into the view; 0 if nothing has."""
        try:
            received = self.sock.recv_into(view)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):  # writes too: TLS 1.3 updates its keys in between
            return 0
        except OSError as error:
            raise _lost(self.peer, error) from error
        if received == 0:
            raise LinkLostError(self.peer)
        return received

    def send_small(self, message: bytes) -> int:
        """Send as much of a small message as the connection takes."""
        return self.send((message,))

    def send(self, views: Sequence[memoryview | bytes]) -> int:
        """Send as much of the first view as the connection takes; 0 if it is full."""
        try:
            return self.sock.send(views[0][:TLS_PIECE_BYTES])
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except OSError as error:
            raise _lost(self.peer, error, views) from error


def _lost(peer: Peer, error: OSError, views: Sequence[memoryview | bytes] = ()) -> Exception:
    """The exception for a failed system call; EFAULT is about the caller's own memory and not about the peer."""
    if error.errno != errno.EFAULT:
        return LinkLostError(peer, error)
    # EFAULT: a mapped file behind the buffer was truncated. Reading the buffer here raises SIGBUS, as it does on every
    # other backend, and the stack trace shows which buffer it was.
    for view in views:
        bytes(view)
    return error


def make_channel(sock: socket.socket, peer: Peer, spin_wait: SpinWait) -> Channel:
    """The channel for a plain or a TLS socket."""
    return TlsChannel(sock, peer, spin_wait) if isinstance(sock, ssl.SSLSocket) else Channel(sock, peer, spin_wait)

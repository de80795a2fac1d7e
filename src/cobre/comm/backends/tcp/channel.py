"""One authenticated data connection: bytes straight from and into the caller's buffers."""

import contextlib
import errno
import select
import socket
import ssl
import struct
from collections.abc import Sequence

from cobre.comm.backends.tcp.spin_wait import SpinWait
from cobre.comm.errors import Peer

TLS_PIECE_BYTES = 1 << 18  # OpenSSL encrypts a copy; there is no use in offering it more at once
RECEIVE_TIMEOUT_S = 0.1  # how long a blocking read keeps a caller from looking at verdicts and signals
MAX_VIEWS = 16  # how many pieces one system call takes


class LinkLostError(Exception):
    """The connection to a peer ended: `cause` is None when it was closed in order."""

    def __init__(self, peer: Peer, cause: OSError | None = None) -> None:
        super().__init__(peer, cause)
        self.peer = peer
        self.cause = cause


class Channel:
    """A data connection to one peer.

    The socket blocks, for RECEIVE_TIMEOUT_S at most, so that the answer to a small call costs one system call instead
    of a poll and a read; everything else asks not to wait (MSG_DONTWAIT). spin_wait: used before a blocking read.
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
        """Put the next bytes into the view, waiting RECEIVE_TIMEOUT_S at most; 0 when none came."""
        return self._spin_wait.spin(lambda: self.receive(view)) or self._receive(view, 0)

    def receive(self, view: memoryview) -> int:
        """Put what is there into the view; 0 when nothing is there yet."""
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
        """Send as much of the views as fits now; 0 when nothing fits."""
        try:
            return self.sock.sendmsg(views, (), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _lost(self.peer, error, views) from error

    def send_small(self, message: bytes) -> int:
        """Send as much of a small message as fits now; cheaper than `send` for one piece."""
        try:
            return self.sock.send(message, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _lost(self.peer, error) from error

    def close(self) -> None:
        """Close the connection; what was sent still arrives."""
        with contextlib.suppress(OSError):
            self.sock.close()


class TlsChannel(Channel):
    """A data connection over TLS. Python's TLS sockets take no flags and no list of views, so this one never blocks."""

    sock: ssl.SSLSocket

    def _make_ready(self) -> None:
        self.sock.setblocking(False)
        self._poller = select.poll()
        self._poller.register(self.fd, select.POLLIN)

    def await_bytes(self, view: memoryview) -> int:
        """Put the next bytes into the view, waiting RECEIVE_TIMEOUT_S at most; 0 when none came."""
        # Read before polling: OpenSSL may hold decrypted bytes that the descriptor no longer shows.
        received = self._spin_wait.spin(lambda: self.receive(view)) or self.receive(view)
        if received == 0 and self._poller.poll(RECEIVE_TIMEOUT_S * 1000):
            received = self.receive(view)
        return received

    def receive(self, view: memoryview) -> int:
        """Put what is there into the view; 0 when nothing is there yet."""
        try:
            received = self.sock.recv_into(view)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except OSError as error:
            raise _lost(self.peer, error) from error
        if received == 0:
            raise LinkLostError(self.peer)
        return received

    def send_small(self, message: bytes) -> int:
        """Send as much of a small message as fits now."""
        return self.send((message,))

    def send(self, views: Sequence[memoryview | bytes]) -> int:
        """Send as much of the first view as fits now; 0 when nothing fits."""
        try:
            return self.sock.send(views[0][:TLS_PIECE_BYTES])
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except OSError as error:
            raise _lost(self.peer, error, views) from error


def _lost(peer: Peer, error: OSError, views: Sequence[memoryview | bytes] = ()) -> Exception:
    """What a failed call means; a hole in the caller's own memory is not the peer's doing."""
    if error.errno != errno.EFAULT:
        return LinkLostError(peer, error)
    # A mapped file that was cut short ends a process that reads it. The kernel only says so; on every backend the
    # outcome is the same, and the signal shows where it happened.
    for view in views:
        bytes(view)
    return error


def make_channel(sock: socket.socket, peer: Peer, spin_wait: SpinWait) -> Channel:
    """A channel over a plain or an encrypted socket."""
    return TlsChannel(sock, peer, spin_wait) if isinstance(sock, ssl.SSLSocket) else Channel(sock, peer, spin_wait)

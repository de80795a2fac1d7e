"""The coordinator's end of the rendezvous: accept, authenticate, pair two connections per rank, start.

Strangers cost little: each connection gets five seconds and a kilobyte, and the number of handshakes under way is
limited; the oldest is dropped for a new one. A connection whose first message carries the mark of a holder of the
secret is not dropped for strangers, however many there are. Nothing that a stranger does ends the rendezvous. Refusals
are logged, and repeated in the error if ranks are missing at the end.
"""

import contextlib
import selectors
import socket
import ssl
import time
from dataclasses import dataclass, field

from cobre.comm.backends.tcp.rendezvous import listener as listening
from cobre.comm.backends.tcp.rendezvous.handshake import HANDSHAKE_S, CoordinatorHandshake, RefusedError, name_of
from cobre.comm.backends.tcp.rendezvous.listener import TLS_HANDSHAKE
from cobre.comm.backends.tcp.wire.messages import Hello, Link
from cobre.comm.backends.tcp.wire.protocol import ProtocolError, Tag, frame
from cobre.comm.config import TcpConfig
from cobre.comm.endpoint import logger
from cobre.comm.errors import InitializationFailedError, Peer
from cobre.comm.types import MAX_SELECT_S
from cobre.text import printable

# A connection that the coordinator has accepted but not yet authenticated: bounded memory, bounded time.

WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError)


class PendingConnection:
    """One connection during its handshake; never blocks, so that a slow peer does not delay the others."""

    def __init__(
        self, sock: socket.socket, host: str, port: int, secret: bytes, context: ssl.SSLContext | None
    ) -> None:
        sock.setblocking(False)
        self.host = host
        self.address = f"{host} port {port}"
        self.speaks_tls = False
        """Whether the peer started a TLS handshake although the coordinator does not use TLS; for a better message."""
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
            except WOULD_BLOCK:
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


MAX_PENDING = 128  # connections without a mark at once; bounds the descriptors and the memory that a flood can cost
MAX_ACCEPTS = 64  # per round of the event loop, so that a flood leaves time for connections accepted before
MAX_REPEATED = 8  # refusals that are warnings, and that the final error repeats; strangers must not fill the log


@dataclass(slots=True)
class AcceptedWorker:
    """A worker that has proved that it holds the secret, and its connections by purpose."""

    hello: Hello
    links: dict[Link, socket.socket] = field(default_factory=dict)

    @property
    def peer(self) -> Peer:
        """The worker as messages name it; the host name that it sent is made safe to print."""
        return Peer(self.hello.rank, printable(self.hello.host, lines=False), self.hello.pid)

    @property
    def is_complete(self) -> bool:
        """Whether both connections have been made."""
        return self.links.keys() == {Link.DATA, Link.CONTROL}

    def has_hung_up(self) -> bool:
        """Return whether the process at the other end has closed a connection, or has ended."""
        return any(_has_ended(sock) for sock in self.links.values())

    def close(self) -> None:
        """Close all connections to this worker."""
        listening.close_all(list(self.links.values()))


def _has_ended(sock: socket.socket) -> bool:
    """Return whether the peer has closed; never blocks. Workers send nothing between PROOF and START."""
    try:
        if isinstance(sock, ssl.SSLSocket):
            return not sock.recv(1)  # TLS sockets cannot peek; nothing is lost, because the worker sends nothing
        return not sock.recv(1, socket.MSG_PEEK)
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


class Acceptor:
    """Server that accepts and authenticates the workers of one run."""

    def __init__(self, config: TcpConfig, secret: bytes, context: ssl.SSLContext | None) -> None:
        self._config = config
        self._secret = secret
        self._context = context
        self._began = time.monotonic()
        self._deadline = self._began + config.connect_timeout_s
        self._workers: dict[int, AcceptedWorker] = {}
        self._pending: dict[int, PendingConnection] = {}  # by descriptor, the oldest first
        self._unmarked: dict[int, PendingConnection] = {}  # those that may be from strangers
        self._dropped = 0  # connections, to make room for others
        self._refusals: list[str] = []
        self._selector = selectors.DefaultSelector()
        self._listeners: list[socket.socket] = []

    def accept_all(self) -> dict[int, AcceptedWorker]:
        """Wait until all workers have connected; returns them by rank.

        Raises `InitializationFailedError` at the connect timeout, naming the ranks that are missing and the refusals.
        No listener is left open, whatever happens.
        """
        try:
            self._listeners = listening.open_listeners(self._config, self._secret, self._deadline)
            for listener in self._listeners:
                self._selector.register(listener, selectors.EVENT_READ)
            while not self._is_complete():
                self._run_once()
            # Only when all have connected: after START a worker takes the end of a connection for a failure.
            self._start()
        except BaseException:
            self._refuse_all()
            raise
        finally:
            self._close()
        return self._workers

    def _is_complete(self) -> bool:
        complete = [worker for worker in self._workers.values() if worker.is_complete]
        # Dead workers are looked for last: one may have died while others were connecting, and a restarted process may
        # be about to take its place.
        return len(complete) == self._config.size - 1 and not self._drop_dead_workers()

    def _run_once(self) -> None:
        """Run one round of the event loop: sleep until a socket is ready or a deadline passes."""
        now = time.monotonic()
        if now >= self._deadline:
            raise self._missing_ranks(now)
        limits = [self._deadline, now + MAX_SELECT_S, *(pending.deadline for pending in self._pending.values())]
        for key, _ in self._selector.select(max(0.0, min(limits) - now)):
            self._serve(key.fileobj)
        self._drop_timed_out()

    def _serve(self, fileobj: object) -> None:
        assert isinstance(fileobj, socket.socket)  # noqa: S101 - only sockets are registered
        if fileobj in self._listeners:
            self._accept(fileobj)
        elif (pending := self._pending.get(fileobj.fileno())) is not None:
            self._advance(pending)
        else:
            # Readable can only mean end of file: workers send nothing before START. They stay registered for this.
            self._drop_dead_workers()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(MAX_ACCEPTS):
            try:
                sock, address = listener.accept()
            except OSError:  # no more connections, or one that was reset in the meantime, or no descriptors left
                return
            # Drop the oldest: a worker needs a moment for its first message, an idle stranger stays until its deadline.
            if len(self._unmarked) >= MAX_PENDING:
                self._dropped += 1
                self._drop(next(iter(self._unmarked.values())))
            pending = PendingConnection(sock, address[0], address[1], self._secret, self._context)
            self._pending[pending.sock.fileno()] = self._unmarked[pending.sock.fileno()] = pending
            self._selector.register(pending.sock, selectors.EVENT_READ)
            # At once: a worker has sent its first message by now, and should not be among those that are dropped.
            self._advance(pending)

    def _advance(self, pending: PendingConnection) -> None:
        try:
            if not pending.advance():
                self._drop(pending)
            elif pending.handshake.is_authenticated:
                self._admit(pending)
            elif pending.handshake.mark is not None:
                self._prefer(pending, pending.handshake.mark)
        except RefusedError as refusal:
            self._refuse(pending, refusal)
        except ssl.SSLError as error:
            self._log_refusal(pending, f"TLS handshake with {pending.host} failed ({error.reason or error})")
            self._drop(pending)
        except (ProtocolError, OSError) as error:
            if pending.speaks_tls:
                self._log_refusal(
                    pending, f"{pending.host} uses TLS, but the coordinator does not (COBRE_TCP_TLS_CERT is not set)"
                )
            else:
                logger.info("dropped a connection from %s: %s", pending.address, error)
            self._drop(pending)

    def _prefer(self, pending: PendingConnection, mark: bytes) -> None:
        """Keep this connection even if strangers flood the port. A second one with its mark is a replay."""
        if not any(other is not pending and other.handshake.mark == mark for other in self._pending.values()):
            self._unmarked.pop(pending.sock.fileno(), None)

    def _admit(self, pending: PendingConnection) -> None:
        hello = pending.handshake.hello
        assert hello is not None  # noqa: S101 - nothing is authenticated without one
        self._check_world(hello)
        worker = self._worker_for(hello)
        if hello.link in worker.links:
            raise RefusedError(f"{name_of(hello)} connected twice", may_retry=True)
        # From here on the socket belongs to the worker: it has no deadline, and `_close` does not drop it.
        self._pending.pop(pending.sock.fileno())
        self._unmarked.pop(pending.sock.fileno(), None)
        worker.links[hello.link] = pending.sock
        self._workers[hello.rank] = worker
        pending.send(pending.handshake.welcome())
        if worker.is_complete:
            logger.info("%s joined from %s", worker.peer, pending.address)

    def _check_world(self, hello: Hello) -> None:
        config, me = self._config, Peer.of_this_process(0)
        if hello.run_id != config.run_id:
            raise RefusedError(
                f"{name_of(hello)} belongs to run {printable(hello.run_id, lines=False)!r}, the coordinator belongs to "
                f"run {config.run_id!r} (COBRE_TCP_RUN_ID)",
                may_retry=True,  # the coordinator of an earlier run may be about to end
            )
        if hello.link is Link.RING:  # a neighbour in the ring, at the wrong address
            raise RefusedError(f"{name_of(hello)} takes rank 0 for its neighbour in the ring")
        if hello.size != config.size:
            raise RefusedError(
                f"{name_of(hello)} has COBRE_TCP_SIZE={hello.size}, but {me} has COBRE_TCP_SIZE={config.size}"
            )
        if not 1 <= hello.rank < config.size:
            raise RefusedError(f"{name_of(hello)} is not a worker of {me}: expected a rank from 1 to {config.size - 1}")

    def _worker_for(self, hello: Hello) -> AcceptedWorker:
        # A process makes two connections, which the instance pairs. Another instance with the same rank is either the
        # restart of a process that died, which may take its place, or a second process that was given the same rank.
        known_worker = self._workers.get(hello.rank)
        if known_worker is None or known_worker.hello.instance == hello.instance:
            return known_worker or AcceptedWorker(hello)
        if known_worker.has_hung_up():
            self._drop_dead_workers()
            return AcceptedWorker(hello)
        raise RefusedError(f"two processes claim rank {hello.rank}: {known_worker.peer} and {name_of(hello)}")

    def _refuse(self, pending: PendingConnection, refusal: RefusedError) -> None:
        self._log_refusal(pending, refusal.text)
        pending.send(pending.handshake.refusal(refusal))
        self._drop(pending)

    def _log_refusal(self, pending: PendingConnection, text: str) -> None:
        """Log a refusal, as a warning once per reason: a worker retries until its connect timeout."""
        if text not in self._refusals and len(self._refusals) < MAX_REPEATED:
            logger.warning("refused a connection from %s: %s", pending.address, text)
            self._refusals.append(text)
        else:
            logger.info("refused another connection from %s: %s", pending.address, text)

    def _drop(self, pending: PendingConnection) -> None:
        self._pending.pop(pending.sock.fileno(), None)
        self._unmarked.pop(pending.sock.fileno(), None)
        self._unregister(pending.sock)
        pending.close()

    def _drop_timed_out(self) -> None:
        now = time.monotonic()
        for pending in [pending for pending in self._pending.values() if pending.deadline <= now]:
            logger.info("dropped a connection from %s: handshake timed out", pending.address)
            self._drop(pending)

    def _drop_dead_workers(self) -> bool:
        """Make room for restarts of workers that died before the start; return whether there were any."""
        dead = [worker for worker in self._workers.values() if worker.has_hung_up()]
        for worker in dead:
            logger.warning("%s disconnected before all ranks had joined; it may connect again", worker.peer)
            for sock in worker.links.values():
                self._unregister(sock)
            worker.close()
            del self._workers[worker.hello.rank]
        return bool(dead)

    def _unregister(self, sock: socket.socket) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(sock)

    def _missing_ranks(self, now: float) -> InitializationFailedError:
        size = self._config.size
        missing = [rank for rank in range(1, size) if not (worker := self._workers.get(rank)) or not worker.is_complete]
        names = ", ".join(f"rank {rank}" for rank in missing[:32]) + (", ..." if len(missing) > 32 else "")
        refused = f" Refused: {'; '.join(self._refusals)}." if self._refusals else ""
        flood = (
            f" {self._dropped:,} connections of strangers were dropped to make room for others: something floods this "
            "port. Choose another one (COBRE_TCP_PORT), or keep strangers from it."
            if self._dropped
            else ""
        )
        joined = f"{size - len(missing)} of {size} ranks joined after {now - self._began:.0f} s"
        return InitializationFailedError("tcp", f"{joined}; missing {names}.{refused}{flood}", missing)

    def _start(self) -> None:
        # Five bytes into an empty socket buffer never block. A worker that has died by now is not an error here: the
        # liveness monitor, which starts next, detects it.
        for worker in self._workers.values():
            _send(worker.links[Link.DATA], frame(Tag.START))

    def _refuse_all(self) -> None:
        """Tell the workers that have connected why the rendezvous failed, and close their connections."""
        text = "the coordinator gave up"
        if time.monotonic() >= self._deadline:
            text = self._missing_ranks(time.monotonic()).message
        for worker in self._workers.values():
            if Link.DATA in worker.links:
                _send(worker.links[Link.DATA], RefusedError(text).frame())
            worker.close()

    def _close(self) -> None:
        """Close listeners and pending connections; from here on connections are refused."""
        for pending in list(self._pending.values()):
            self._drop(pending)
        listening.close_all(self._listeners)
        self._selector.close()


def _send(sock: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        sock.send(data)

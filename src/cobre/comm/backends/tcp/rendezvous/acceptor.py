"""How the coordinator meets its workers: accept, authenticate, pair two connections per rank, start.

Strangers cost little: each connection has five seconds and a kilobyte, and there is a limit to how many may be in
their handshake at once, the oldest giving way. Nothing that a stranger does ends the rendezvous. What was refused is
logged, and repeated in the error if ranks are missing at the end.
"""

import contextlib
import selectors
import socket
import ssl
import time
from dataclasses import dataclass, field

from cobre.comm.backends.tcp.fields import ProtocolError
from cobre.comm.backends.tcp.protocol import Hello, Link, Tag, frame
from cobre.comm.backends.tcp.rendezvous import listener as listening
from cobre.comm.backends.tcp.rendezvous.handshake import RefusedError, name_of, this_process
from cobre.comm.backends.tcp.rendezvous.pending_connection import PendingConnection
from cobre.comm.config import TcpConfig
from cobre.comm.endpoint import logger
from cobre.comm.errors import InitializationFailedError, Peer
from cobre.printable import printable

MAX_PENDING = 128  # unauthenticated connections at once; a flood costs so many descriptors and kilobytes, no more
MAX_ACCEPTS = 64  # per turn, so that a flood of connections leaves time for those accepted before
MAX_REMEMBERED = 8  # reasons for refusals that the final error repeats; strangers must not fill the log
MAX_SELECT_S = 3600.0  # epoll counts milliseconds in 32 bits


@dataclass(slots=True)
class AcceptedWorker:
    """A worker that has proven that it holds the secret, with its connections by purpose."""

    hello: Hello
    links: dict[Link, socket.socket] = field(default_factory=dict)

    @property
    def peer(self) -> Peer:
        """How it is named in messages; what it said of itself is made safe to print."""
        return Peer(self.hello.rank, printable(self.hello.host, lines=False), self.hello.pid)

    @property
    def is_complete(self) -> bool:
        """Whether both connections are there."""
        return len(self.links) == len(Link)

    def has_hung_up(self) -> bool:
        """Whether the process at the other end has gone. Before the start nobody sends anything."""
        return any(_has_ended(sock) for sock in self.links.values())

    def close(self) -> None:
        """Close all connections to it."""
        listening.close_all(list(self.links.values()))


def _has_ended(sock: socket.socket) -> bool:
    """Whether the peer has closed; never blocks. Workers send nothing between their proof and START."""
    try:
        if isinstance(sock, ssl.SSLSocket):
            return not sock.recv(1)  # TLS cannot peek; as nothing is sent, nothing can be lost
        return not sock.recv(1, socket.MSG_PEEK)
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


class Acceptor:
    """Accepts and authenticates the workers of one run; `accept_all` returns them by rank."""

    def __init__(self, config: TcpConfig, secret: bytes, context: ssl.SSLContext | None) -> None:
        self._config = config
        self._secret = secret
        self._context = context
        self._began = time.monotonic()
        self._deadline = self._began + config.connect_timeout_s
        self._workers: dict[int, AcceptedWorker] = {}
        self._pending: dict[int, PendingConnection] = {}  # by descriptor, the oldest first
        self._refused: list[str] = []
        self._selector = selectors.DefaultSelector()
        self._listeners: list[socket.socket] = []

    def accept_all(self) -> dict[int, AcceptedWorker]:
        """Wait until all workers have come; returns them by rank.

        Raises `InitializationFailedError` at the connect timeout, naming the ranks that are missing and what was
        refused. In every case no listener is left open.
        """
        try:
            self._listeners = listening.open_listeners(self._config, self._secret, self._deadline)
            for listener in self._listeners:
                self._selector.register(listener, selectors.EVENT_READ)
            while not self._is_complete():
                self._turn()
            # Only when all are here: a worker that has START takes every later end for a failure of the world.
            self._start()
        except BaseException:
            self._dismiss()
            raise
        finally:
            self._close()
        return self._workers

    def _is_complete(self) -> bool:
        complete = [worker for worker in self._workers.values() if worker.is_complete]
        # The dead last: a rank may have died while the others were still coming, and its successor may be on its way.
        return len(complete) == self._config.size - 1 and not self._drop_dead_workers()

    def _turn(self) -> None:
        """One round of the event loop: sleep until something happens or some deadline passes."""
        now = time.monotonic()
        if now >= self._deadline:
            raise self._missing_ranks(now)
        limits = [self._deadline, now + MAX_SELECT_S, *(pending.deadline for pending in self._pending.values())]
        for key, _ in self._selector.select(max(0.0, min(limits) - now)):
            self._serve(key.fileobj)
        self._drop_late_pending()

    def _serve(self, fileobj: object) -> None:
        assert isinstance(fileobj, socket.socket)  # noqa: S101 - only sockets are registered
        if fileobj in self._listeners:
            self._accept(fileobj)
        elif (pending := self._pending.get(fileobj.fileno())) is not None:
            self._advance(pending)
        else:
            # A worker's connection is readable only when it has ended. It stays registered so that this wakes us.
            self._drop_dead_workers()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(MAX_ACCEPTS):
            try:
                sock, address = listener.accept()
            except OSError:  # nobody else is waiting, or one has already given up, or we are out of descriptors
                return
            # The oldest gives way: a real worker needs a moment for its handshake, an idle stranger stays for ever.
            if len(self._pending) >= MAX_PENDING:
                self._drop(next(iter(self._pending.values())))
            pending = PendingConnection(sock, address[0], address[1], self._secret, self._context)
            self._pending[pending.sock.fileno()] = pending
            self._selector.register(pending.sock, selectors.EVENT_READ)

    def _advance(self, pending: PendingConnection) -> None:
        try:
            if not pending.advance():
                self._drop(pending)
            elif pending.handshake.is_authenticated:
                self._admit(pending)
        except RefusedError as refusal:
            self._refuse(pending, refusal)
        except ssl.SSLError as error:
            self._remember(pending, f"{pending.host} does not speak TLS as this rank does ({error.reason or error})")
            self._drop(pending)
        except (ProtocolError, OSError) as error:
            if pending.speaks_tls:
                self._remember(pending, f"{pending.host} speaks TLS, which this rank does not (COBRE_TCP_TLS_CERT)")
            else:
                logger.info("a connection from %s was dropped: %s", pending.address, error)
            self._drop(pending)

    def _admit(self, pending: PendingConnection) -> None:
        hello = pending.handshake.hello
        assert hello is not None  # noqa: S101 - nobody is authenticated without one
        self._check_world(hello)
        worker = self._slot_for(hello)
        if hello.link in worker.links:
            raise RefusedError(f"{name_of(hello)} connects twice", may_retry=True)
        # From here on it belongs to the worker: no deadline, and not dropped by `_close`.
        self._pending.pop(pending.sock.fileno())
        worker.links[hello.link] = pending.sock
        self._workers[hello.rank] = worker
        pending.send(pending.handshake.welcome())
        if worker.is_complete:
            logger.info("%s has joined from %s", worker.peer, pending.address)

    def _check_world(self, hello: Hello) -> None:
        config, me = self._config, this_process(0)
        if hello.run_id != config.run_id:
            raise RefusedError(
                f"{name_of(hello)} belongs to run {printable(hello.run_id, lines=False)!r}, the coordinator to run "
                f"{config.run_id!r}",
                may_retry=True,  # the coordinator of an earlier run may be about to end
            )
        if hello.size != config.size:
            raise RefusedError(
                f"{name_of(hello)} says COBRE_TCP_SIZE={hello.size}, {me} says COBRE_TCP_SIZE={config.size}"
            )
        if not 1 <= hello.rank < config.size:
            raise RefusedError(f"{name_of(hello)} claims a rank that {me} does not have to give")

    def _slot_for(self, hello: Hello) -> AcceptedWorker:
        # One process makes two connections, paired by the instance. Another instance with the same rank is either the
        # successor of a process that died, which may have its place, or a second process with the same number.
        present = self._workers.get(hello.rank)
        if present is None or present.hello.instance == hello.instance:
            return present or AcceptedWorker(hello)
        if present.has_hung_up():
            self._drop_dead_workers()
            return AcceptedWorker(hello)
        raise RefusedError(f"two processes claim rank {hello.rank}: {present.peer} and {name_of(hello)}")

    def _refuse(self, pending: PendingConnection, refusal: RefusedError) -> None:
        self._remember(pending, refusal.text)
        pending.send(pending.handshake.refusal(refusal))
        self._drop(pending)

    def _remember(self, pending: PendingConnection, text: str) -> None:
        """Log a refusal as a warning once for each reason: a worker tries again until its time is up."""
        if text not in self._refused and len(self._refused) < MAX_REMEMBERED:
            logger.warning("a connection from %s was refused: %s", pending.address, text)
            self._refused.append(text)
        else:
            logger.info("a connection from %s was refused again: %s", pending.address, text)

    def _drop(self, pending: PendingConnection) -> None:
        self._pending.pop(pending.sock.fileno(), None)
        self._forget(pending.sock)
        pending.close()

    def _drop_late_pending(self) -> None:
        now = time.monotonic()
        for pending in [pending for pending in self._pending.values() if pending.deadline <= now]:
            logger.info("a connection from %s was dropped: no handshake in time", pending.address)
            self._drop(pending)

    def _drop_dead_workers(self) -> bool:
        """A worker that died before the start makes room for its successor."""
        dead = [worker for worker in self._workers.values() if worker.has_hung_up()]
        for worker in dead:
            logger.warning("%s has gone before the start; its place is free", worker.peer)
            for sock in worker.links.values():
                self._forget(sock)
            worker.close()
            del self._workers[worker.hello.rank]
        return bool(dead)

    def _forget(self, sock: socket.socket) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(sock)

    def _missing_ranks(self, now: float) -> InitializationFailedError:
        size = self._config.size
        missing = [rank for rank in range(1, size) if not (m := self._workers.get(rank)) or not m.is_complete]
        names = ", ".join(f"rank {rank}" for rank in missing[:32]) + (", ..." if len(missing) > 32 else "")
        refused = f" Refused: {'; '.join(self._refused)}." if self._refused else ""
        return InitializationFailedError(
            "tcp",
            f"{size - len(missing)} of {size} ranks joined after {now - self._began:.0f} s; missing {names}.{refused}",
        )

    def _start(self) -> None:
        for worker in self._workers.values():
            _send(worker.links[Link.DATA], frame(Tag.START))

    def _dismiss(self) -> None:
        """Send the workers that have come the reason why the start failed, and close their connections."""
        text = "the coordinator gave up"
        if time.monotonic() >= self._deadline:
            text = self._missing_ranks(time.monotonic()).message
        for worker in self._workers.values():
            if Link.DATA in worker.links:
                _send(worker.links[Link.DATA], RefusedError(text).frame())
            worker.close()

    def _close(self) -> None:
        """Close listeners and pending connections; from here on nobody can connect."""
        for pending in list(self._pending.values()):
            self._drop(pending)
        listening.close_all(self._listeners)
        self._selector.close()


def _send(sock: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        sock.send(data)

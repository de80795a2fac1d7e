"""The ring of the hosts of a world: every host listens for its left neighbour and dials its right one.

The ring is connected once, after all ranks have connected to the coordinator, through which the hosts tell each other
where they listen. Three exchanges: the offers; who has reached its neighbour; who has authenticated both. If one host
cannot take part (a firewall, no free port, no TLS certificate), none does, and all report why. Listeners are open until
the third exchange, on the address at which the host reaches the coordinator or the coordinator is reached.

A neighbour authenticates itself by the handshake that workers and the coordinator use, and returns the random token of
the offer. With TLS the dialling host compares the certificate with the offer's digest, which came over an authenticated
connection: host names need not match. Strangers cost as little as at the coordinator: five seconds and a kilobyte each,
and a connection with the mark of a holder of the secret is not dropped for them.
"""

import contextlib
import errno
import hashlib
import secrets
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cobre.comm.backends.tcp.rendezvous.acceptor import PendingConnection
from cobre.comm.backends.tcp.rendezvous.handshake import HANDSHAKE_S, RefusedError, WorkerHandshake
from cobre.comm.backends.tcp.rendezvous.listener import Address, close_all, ring_client_context, ring_server_context
from cobre.comm.backends.tcp.wire.messages import INSTANCE_BYTES, Hello, Link, RingOffer
from cobre.comm.backends.tcp.wire.protocol import ProtocolError
from cobre.comm.config import TcpConfig
from cobre.comm.endpoint import logger
from cobre.comm.errors import InitializationFailedError, Peer

CONNECT_S = 5.0  # to reach a neighbour: a firewall that drops packets delays the start by this much, once
BACKLOG = 64
MAX_PENDING = 64  # connections without a mark at once, as at the coordinator
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

Exchange = Callable[[RingOffer], Sequence[RingOffer]]
"""Sends this host's offer to all hosts, and returns the offers of all, in ring order. Collective."""


class UnreachableError(Exception):
    """The ring cannot be made; the text names the host and the reason. The same on all hosts."""


@dataclass(frozen=True, slots=True)
class RingSockets:
    """Authenticated connections to both neighbours; data arrives from the left one and leaves for the right one."""

    left: socket.socket
    left_peer: Peer
    right: socket.socket
    right_peer: Peer


def connect_ring(
    config: TcpConfig, secret: bytes, position: int, local_address: Sequence[object], exchange: Exchange
) -> RingSockets:
    """Connect this host to its neighbours. position: of this host in the ring. local_address: to listen on.

    Raises `UnreachableError` on all hosts if one of them cannot take part. A collective.
    """
    me = Peer.of_this_process(config.rank)
    opened: list[socket.socket] = []  # all but the two that are returned are closed at the end
    listener, offer = _listen(config, me, local_address)
    opened += [listener] if listener else []
    try:
        offers = _agree(exchange, offer)
        left, right = offers[position - 1], offers[(position + 1) % len(offers)]
        assert listener is not None  # noqa: S101 - else its offer would have had a problem
        dialled, problem = _dial(config, right, local_address)
        opened += [dialled] if dialled else []
        _agree(exchange, RingOffer(me.rank, me.host, me.pid, problem=problem))
        assert dialled is not None  # noqa: S101 - as above
        neighbours = _NeighbourHandshakes(
            config, secret, listener, offer, left, _RightNeighbour(config, secret, dialled, right)
        )
        opened += [neighbours.right.sock]
        try:
            problem = neighbours.run()
        finally:
            opened += [neighbours.left] if neighbours.left else []
        _agree(exchange, RingOffer(me.rank, me.host, me.pid, problem=problem))
        assert neighbours.left is not None  # noqa: S101 - as above
        opened.remove(neighbours.left)
        opened = [sock for sock in opened if sock.fileno() != neighbours.right.sock.fileno()]
        return RingSockets(neighbours.left, _peer_of(left), neighbours.right.sock, _peer_of(right))
    finally:
        close_all(opened)


def _agree(exchange: Exchange, offer: RingOffer) -> Sequence[RingOffer]:
    """Exchange offers; raise on all hosts alike if one has a problem."""
    offers = exchange(offer)
    problems = [f"{_peer_of(offer)} {offer.problem}" for offer in offers if offer.problem]
    if problems:
        raise UnreachableError("; ".join(problems[:4]) + ("; ..." if len(problems) > 4 else ""))
    return offers


def _peer_of(offer: RingOffer) -> Peer:
    return Peer(offer.rank, offer.host, offer.pid)


def _listen(config: TcpConfig, me: Peer, local_address: Sequence[object]) -> tuple[socket.socket | None, RingOffer]:
    """Open a listening socket, and return it with the offer to use it; or None, with an offer that gives the reason."""
    if config.uses_tls and not config.tls_cert:
        problem = "cannot listen for its neighbour: it has no TLS certificate (COBRE_TCP_TLS_CERT)"
        return None, RingOffer(me.rank, me.host, me.pid, problem=problem)
    address = str(local_address[0]).partition("%")[0]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    reason = "every port of COBRE_TCP_RING_PORTS is in use"
    for port in config.ring_port_range:
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, port, *local_address[2:]))
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            if error.errno == errno.EADDRINUSE:
                continue
            reason = error.strerror or str(error)
            break
        token = secrets.token_bytes(INSTANCE_BYTES)
        certificate = _certificate_digest(config.tls_cert) if config.uses_tls else b""
        return listener, RingOffer(me.rank, me.host, me.pid, address, listener.getsockname()[1], token, certificate)
    return None, RingOffer(me.rank, me.host, me.pid, problem=f"cannot listen on {address}: {reason}")


def _certificate_digest(path: str) -> bytes:
    """Return the SHA-256 of the first certificate in a PEM file, which is the one that TLS presents."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    try:
        text = Path(path).read_text(encoding="ascii", errors="replace")
        pem = text[text.index(begin) : text.index(end) + len(end)]
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest()
    except (OSError, ValueError) as error:
        raise InitializationFailedError("tcp", f"cannot read COBRE_TCP_TLS_CERT={path}: {error}") from error


def _dial(config: TcpConfig, offer: RingOffer, local_address: Sequence[object]) -> tuple[socket.socket | None, str]:
    """Connect to a neighbour, without authentication yet; return None and the reason if it cannot be reached."""
    is_v6 = ":" in offer.address
    sock = socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(min(CONNECT_S, config.connect_timeout_s))
        # A link-local address needs the interface of this host through which others are reached.
        sock.connect((offer.address, offer.port, *(local_address[2:] if is_v6 and len(local_address) == 4 else ())))
    except OSError as error:
        sock.close()
        reason = "no reply" if isinstance(error, TimeoutError) else error.strerror or str(error)
        return None, f"cannot reach {_peer_of(offer)} at {Address(offer.address, offer.port)}: {reason}"
    return sock, ""


class _RightNeighbour:
    """The connection to the right neighbour during its handshake; never blocks."""

    def __init__(self, config: TcpConfig, secret: bytes, sock: socket.socket, offer: RingOffer) -> None:
        self._offer = offer
        self._handshake = WorkerHandshake(config.rank, config.size, config.run_id, secret, Link.RING, offer.token)
        sock.setblocking(False)
        context = ring_client_context(config)
        self._needs_tls = context is not None
        self.sock = sock if context is None else context.wrap_socket(sock, do_handshake_on_connect=False)
        self._has_begun = False

    @property
    def is_welcome(self) -> bool:
        """Whether both ends have proved that they hold the secret."""
        return self._handshake.is_welcome

    def advance(self) -> None:
        """Continue with what has arrived; raises `OSError`, `ProtocolError` or `RefusedError`."""
        try:
            if self._needs_tls:
                self._encrypt()
            if not self._has_begun:
                self._has_begun = True
                self.sock.send(self._handshake.begin())  # a few hundred bytes, into an empty socket buffer
            while not self._handshake.is_welcome:
                data = self.sock.recv(self._handshake.needed)
                if not data:
                    raise ConnectionResetError(errno.ECONNRESET, "connection closed")
                if reply := self._handshake.receive(data):
                    self.sock.send(reply)
        except WOULD_BLOCK:
            return

    def _encrypt(self) -> None:
        assert isinstance(self.sock, ssl.SSLSocket)  # noqa: S101 - only then is the flag set
        self.sock.do_handshake()
        presented = self.sock.getpeercert(binary_form=True) or b""
        if hashlib.sha256(presented).digest() != self._offer.certificate:
            raise ProtocolError("its TLS certificate is not the one that it announced")
        self._needs_tls = False


class _NeighbourHandshakes:
    """Event loop that authenticates both neighbours: all hosts do so at once, and each waits for the next."""

    def __init__(
        self,
        config: TcpConfig,
        secret: bytes,
        listener: socket.socket,
        offer: RingOffer,
        left_offer: RingOffer,
        right: _RightNeighbour,
    ) -> None:
        self._config = config
        self._secret = secret
        self._context = ring_server_context(config)
        self._listener = listener
        self._token = offer.token
        self._left_offer = left_offer
        self._pending: dict[int, PendingConnection] = {}  # by descriptor, the oldest first
        self._selector = selectors.DefaultSelector()
        self.left: socket.socket | None = None
        self.right = right

    def run(self) -> str:
        """Wait for both neighbours, HANDSHAKE_S at most; return why one is missing, or an empty string."""
        deadline = time.monotonic() + HANDSHAKE_S
        try:
            self._selector.register(self._listener, selectors.EVENT_READ)
            self._selector.register(self.right.sock, selectors.EVENT_READ)
            self.right.advance()
            while self.left is None or not self.right.is_welcome:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    return self._missing_neighbour()
                for key, _ in self._selector.select(remaining_s):
                    self._serve(key.fileobj)
        except (OSError, ProtocolError, RefusedError) as error:
            text = getattr(error, "text", "") or getattr(error, "strerror", "") or str(error)
            return f"cannot authenticate {_peer_of(self.right._offer)}: {text}"
        finally:
            for pending in list(self._pending.values()):
                self._drop(pending)
            self._selector.close()
        return ""

    def _missing_neighbour(self) -> str:
        if self.left is None:
            return f"has seen no valid handshake of {_peer_of(self._left_offer)} within {HANDSHAKE_S:g} s"
        return f"has had no reply from {_peer_of(self.right._offer)} within {HANDSHAKE_S:g} s"

    def _serve(self, fileobj: object) -> None:
        assert isinstance(fileobj, socket.socket)  # noqa: S101 - only sockets are registered
        if fileobj is self._listener:
            self._accept()
        elif fileobj is self.right.sock:
            self.right.advance()
            if self.right.is_welcome:
                self._selector.unregister(fileobj)
        elif (pending := self._pending.get(fileobj.fileno())) is not None:
            self._advance(pending)

    def _accept(self) -> None:
        try:
            sock, address = self._listener.accept()
        except OSError:  # reset in the meantime
            return
        unmarked = [sock for sock in self._pending.values() if sock.handshake.mark is None]
        if len(unmarked) >= MAX_PENDING:
            self._drop(unmarked[0])
        pending = PendingConnection(sock, address[0], address[1], self._secret, self._context)
        self._pending[pending.sock.fileno()] = pending
        self._selector.register(pending.sock, selectors.EVENT_READ)
        self._advance(pending)

    def _advance(self, pending: PendingConnection) -> None:
        try:
            if not pending.advance():
                self._drop(pending)
            elif pending.handshake.is_authenticated:
                self._admit(pending)
        except (RefusedError, ProtocolError, OSError) as error:
            logger.info("dropped a connection from %s to the port of the ring: %s", pending.address, error)
            self._drop(pending)

    def _admit(self, pending: PendingConnection) -> None:
        hello = pending.handshake.hello
        assert hello is not None  # noqa: S101 - nothing is authenticated without one
        if self.left is not None or not self._is_left_neighbour(hello):
            raise RefusedError("this host expects another neighbour")
        self._selector.unregister(pending.sock)
        del self._pending[pending.sock.fileno()]
        pending.send(pending.handshake.welcome())
        self.left = pending.sock

    def _is_left_neighbour(self, hello: Hello) -> bool:
        config = self._config
        received = (hello.link, hello.rank, hello.size, hello.run_id, hello.instance)
        return received == (Link.RING, self._left_offer.rank, config.size, config.run_id, self._token)

    def _drop(self, pending: PendingConnection) -> None:
        self._pending.pop(pending.sock.fileno(), None)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(pending.sock)
        pending.close()

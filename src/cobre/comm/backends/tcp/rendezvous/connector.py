"""A worker's end of the rendezvous: connect to any of the coordinator's addresses, retrying until the timeout."""

import secrets
import socket
import ssl
import time
from dataclasses import dataclass

from cobre.comm.backends.tcp.rendezvous.handshake import (
    HANDSHAKE_S,
    RefusedError,
    UnprovenRefusalError,
    WorkerHandshake,
)
from cobre.comm.backends.tcp.rendezvous.listener import (
    TLS_ALERT,
    TLS_HANDSHAKE,
    SocketAddress,
    close_all,
    is_loopback,
    parse_address,
    require_secret,
    resolve,
    unresolved,
)
from cobre.comm.backends.tcp.wire.messages import INSTANCE_BYTES, Link
from cobre.comm.backends.tcp.wire.protocol import ProtocolError
from cobre.comm.config import TcpConfig
from cobre.comm.endpoint import logger
from cobre.comm.errors import InitializationFailedError, Peer, RendezvousAbandonedError
from cobre.text import printable

TLS_RECORDS = (TLS_ALERT, TLS_HANDSHAKE)
CONNECT_S = 5.0  # per address: a firewall that drops packets must not prevent an attempt at the next address
FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.02, 0.5
WARN_AFTER_S = 5.0  # how long a rank tries before it logs a warning
MAX_SOCKET_TIMEOUT_S = 1e6  # socket timeouts are milliseconds in 32 bits


@dataclass(frozen=True, slots=True)
class CoordinatorConnection:
    """A worker's two authenticated connections, and the process at the other end."""

    links: dict[Link, socket.socket]
    coordinator: Peer


class HandshakeFailedError(Exception):
    """The handshake failed: the peer closed the connection, did not reply, or is not a coordinator."""


class Connector:
    """Client that connects one worker to rank 0.

    On a cluster, ranks start in any order, and names may resolve late: whatever fails is retried. Only a coordinator
    that has proved that it holds the secret can turn a worker away for good.
    """

    def __init__(self, config: TcpConfig, secret: bytes, context: ssl.SSLContext | None) -> None:
        self._config = config
        self._secret = secret
        self._context = context
        self._address = parse_address(config.coordinator, config.port)
        self._began = time.monotonic()
        self._deadline = self._began + config.connect_timeout_s
        self._logged: set[str] = set()  # each problem is logged once, however often it occurs
        self._warned: set[str] = set()
        self._last_problem = "no attempt was made"
        self._cause = ""
        """The last problem other than "connection refused", which every attempt meets once rank 0 has given up."""
        self._unproven_text = ""
        self._has_joined = False

    def connect(self) -> CoordinatorConnection:
        """Connect, authenticate, and wait until all ranks have connected.

        Raises `InitializationFailedError` if the coordinator refuses, or at the connect timeout with the last cause.
        """
        backoff = FIRST_BACKOFF_S
        while True:
            # Resolved in every round: on a cluster the name may appear, or change, while we wait.
            for target in self._targets():
                connection = self._try(target)
                if connection is not None:
                    return connection
            # Exponential backoff, up to half a second: hundreds of workers may be waiting for one rank 0.
            if time.monotonic() + backoff >= self._deadline:
                raise self._timed_out()
            self._warn_if_slow()
            time.sleep(backoff)
            backoff = min(2 * backoff, MAX_BACKOFF_S)

    def _targets(self) -> list[SocketAddress]:
        try:
            targets = resolve(self._address)
        except socket.gaierror as error:
            self._note_problem(unresolved(self._address.host, error))
            return []
        for target in targets:
            if not is_loopback(target.host):
                require_secret(self._secret, self._config.insecure, f"the coordinator is at {target}")
        return targets

    def _try(self, target: SocketAddress) -> CoordinatorConnection | None:
        links: dict[Link, socket.socket] = {}
        try:
            return self._connect_at(target, links)
        except RefusedError as refusal:
            close_all(list(links.values()))
            if self._has_joined:
                raise RendezvousAbandonedError("tcp", self._refused_text(target, refusal)) from refusal
            self._handle_refusal(target, refusal)
        except ssl.SSLCertVerificationError as error:
            close_all(list(links.values()))
            self._note_problem(f"rejected the certificate of {target}: {error.verify_message}", is_cause=True)
        except (HandshakeFailedError, ProtocolError) as error:
            close_all(list(links.values()))
            self._note_problem(f"{target}: {error}", is_cause=True)
        except OSError as error:
            close_all(list(links.values()))
            self._note_problem(f"{target}: {error.strerror or error}")
        except BaseException:  # Ctrl-C too must not leave half-open connections behind
            close_all(list(links.values()))
            raise
        return None

    def _handle_refusal(self, target: SocketAddress, refusal: RefusedError) -> None:
        """Give up only if the coordinator has proved its identity: any process may answer at its address."""
        if isinstance(refusal, UnprovenRefusalError):
            self._unproven_text = printable(refusal.text, lines=False)
            self._note_problem(
                f"{target} refused the connection without proving that it holds the secret", is_cause=True
            )
        elif refusal.may_retry:
            self._note_problem(f"{target} refused the connection: {printable(refusal.text)}", is_cause=True)
        else:
            raise InitializationFailedError("tcp", self._refused_text(target, refusal)) from refusal

    def _connect_at(self, target: SocketAddress, links: dict[Link, socket.socket]) -> CoordinatorConnection:
        instance, self._has_joined = secrets.token_bytes(INSTANCE_BYTES), False
        # START comes on the data connection, so that one is made last: when it is authenticated, both are.
        for link in (Link.CONTROL, Link.DATA):
            links[link] = self._connect(target)
            handshake = self._handshake(link, instance)
            self._run_handshake(links[link], handshake)
        self._has_joined = True  # from here on a refusal is not about this rank
        self._await_start(links[Link.DATA], handshake)
        assert handshake.coordinator is not None  # noqa: S101 - set by the handshake
        return CoordinatorConnection(links, handshake.coordinator)

    def _connect(self, target: SocketAddress) -> socket.socket:
        sock = socket.socket(target.family, socket.SOCK_STREAM)
        try:
            sock.settimeout(self._at_most(CONNECT_S))
            sock.connect(target.sockaddr)
            if sock.getsockname() == sock.getpeername():
                # Linux can connect a socket to itself (simultaneous open) if the port is in the ephemeral range and
                # no process listens on it.
                raise HandshakeFailedError("connection refused")
            if self._context is not None:
                sock.settimeout(self._at_most(HANDSHAKE_S))
                return self._encrypted(sock, self._context)
        except BaseException:
            sock.close()
            raise
        return sock

    def _encrypted(self, sock: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
        try:
            return context.wrap_socket(sock, server_hostname=self._address.host)
        except ssl.SSLCertVerificationError:
            raise
        except OSError as error:
            reason = getattr(error, "reason", None) or error.strerror or error
            raise HandshakeFailedError(
                f"TLS handshake failed ({reason}); is COBRE_TCP_TLS_CERT set for the coordinator too?"
            ) from error

    def _handshake(self, link: Link, instance: bytes) -> WorkerHandshake:
        config = self._config
        return WorkerHandshake(config.rank, config.size, config.run_id, self._secret, link, instance)

    def _run_handshake(self, sock: socket.socket, handshake: WorkerHandshake) -> None:
        limit = min(time.monotonic() + HANDSHAKE_S, self._deadline)
        sock.settimeout(self._at_most(HANDSHAKE_S))
        sock.sendall(handshake.begin())
        while not handshake.is_welcome:
            self._advance(sock, handshake, limit)

    def _await_start(self, sock: socket.socket, handshake: WorkerHandshake) -> None:
        self._note_problem("connected, waiting for the other ranks")
        # A little longer than the coordinator's limit: its error, which names the missing ranks, must come first.
        limit = self._deadline + 1.0
        while not handshake.has_started:
            self._advance(sock, handshake, limit)

    def _advance(self, sock: socket.socket, handshake: WorkerHandshake, limit: float) -> None:
        sock.settimeout(min(max(0.001, limit - time.monotonic()), MAX_SOCKET_TIMEOUT_S))
        try:
            data = sock.recv(handshake.needed)
        except TimeoutError:
            raise HandshakeFailedError("no reply in time") from None
        except OSError as error:
            raise HandshakeFailedError(self._handshake_ended(error.strerror or str(error))) from error
        if not data:
            raise HandshakeFailedError(self._handshake_ended("connection closed"))
        if self._context is None and handshake.coordinator is None and data.startswith(TLS_RECORDS):
            raise HandshakeFailedError("the coordinator uses TLS, but this rank does not: set COBRE_TCP_TLS_CA")
        reply = handshake.receive(data)
        if reply:
            sock.sendall(reply)

    def _handshake_ended(self, reason: str) -> str:
        hint = "" if self._context else "; or it uses TLS: then set COBRE_TCP_TLS_CA"
        return (
            f"the peer ended the handshake ({reason}): perhaps not a coordinator, or it has too many connections{hint}"
        )

    def _at_most(self, limit_s: float) -> float:
        return max(0.001, min(limit_s, self._deadline - time.monotonic()))

    def _note_problem(self, problem: str, *, is_cause: bool = False) -> None:
        self._last_problem = problem
        self._cause = problem if is_cause else self._cause
        if problem not in self._logged:
            self._logged.add(problem)
            logger.info("rank %d connecting to %s: %s", self._config.rank, self._address, problem)

    def _warn_if_slow(self) -> None:
        """Log each problem once as a warning after WARN_AFTER_S: the address may be mistyped."""
        waited = time.monotonic() - self._began
        if waited >= WARN_AFTER_S and self._last_problem not in self._warned:
            self._warned.add(self._last_problem)
            logger.warning(
                "rank %d (host %s) has been trying to reach rank 0 at %s for %.0f s: %s; it gives up after %g s",
                self._config.rank,
                socket.gethostname(),
                self._address,
                waited,
                self._last_problem,
                self._config.connect_timeout_s,
            )

    def _refused_text(self, target: SocketAddress, refusal: RefusedError) -> str:
        return f"the coordinator at {target} refused rank {self._config.rank}: {printable(refusal.text)}"

    def _timed_out(self) -> InitializationFailedError:
        return InitializationFailedError(
            "tcp",
            f"rank {self._config.rank} could not connect to rank 0, the coordinator, at {self._address} within "
            f"{self._config.connect_timeout_s:g} s: {self._explanation()}",
        )

    def _explanation(self) -> str:
        cause = self._cause or self._last_problem
        last = f"; finally: {self._last_problem}" if self._last_problem != cause else ""
        unproven = f"; it said: {self._unproven_text}" if self._unproven_text else ""
        return f"{cause}{unproven}{last}"

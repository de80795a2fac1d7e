"""How a worker finds its coordinator: in any order of starting, by any of its addresses, until the time is up."""

import secrets
import socket
import ssl
import time
from dataclasses import dataclass

from cobre.comm.backends.tcp.fields import ProtocolError
from cobre.comm.backends.tcp.protocol import INSTANCE_BYTES, Link
from cobre.comm.backends.tcp.rendezvous.address import Endpoint, is_loopback, parse_address, resolve
from cobre.comm.backends.tcp.rendezvous.handshake import RefusedError, UnprovenRefusalError, WorkerHandshake
from cobre.comm.backends.tcp.rendezvous.listener import close_all, require_secret
from cobre.comm.config import TcpConfig
from cobre.comm.endpoint import logger
from cobre.comm.errors import InitializationFailedError, Peer
from cobre.printable import printable

HANDSHAKE_S = 5.0
TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
CONNECT_S = 5.0  # per address: a firewall that swallows packets must not hide the next address
FIRST_PAUSE_S, LAST_PAUSE_S = 0.02, 0.5
PATIENCE_S = 5.0  # after which a rank that has not found the coordinator says so
LONGEST_WAIT_S = 1e6  # a socket counts milliseconds in 32 bits


@dataclass(frozen=True, slots=True)
class CoordinatorConnection:
    """A worker's two connections, and who is at the other end."""

    links: dict[Link, socket.socket]
    coordinator: Peer


class HangUpError(Exception):
    """The other side ended the connection without a word."""


class Connector:
    """One worker's way into the world."""

    def __init__(self, config: TcpConfig, secret: bytes, context: ssl.SSLContext | None) -> None:
        self._config = config
        self._secret = secret
        self._context = context
        self._address = parse_address(config.coordinator, config.port)
        self._began = time.monotonic()
        self._deadline = self._began + config.connect_timeout_s
        self._told: set[str] = set()
        self._warned: set[str] = set()
        self._trouble = "nothing was tried"
        self._cause = ""
        """The last trouble that says more than that nobody answers: rank 0 may have given up before this rank does."""
        self._hearsay = ""

    def connect(self) -> CoordinatorConnection:
        """Connect, prove, and wait until all ranks are there."""
        pause = FIRST_PAUSE_S
        while True:
            for endpoint in self._endpoints():
                connection = self._try(endpoint)
                if connection is not None:
                    return connection
            if time.monotonic() + pause >= self._deadline:
                raise self._too_late()
            self._warn()
            time.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)

    def _endpoints(self) -> list[Endpoint]:
        try:
            endpoints = resolve(self._address)
        except socket.gaierror as error:
            self._note(f"the name {self._address.host} is not known ({error.strerror})")
            return []
        for endpoint in endpoints:
            if not is_loopback(endpoint.host):
                require_secret(self._secret, self._config.insecure, f"the coordinator is at {endpoint}")
        return endpoints

    def _try(self, endpoint: Endpoint) -> CoordinatorConnection | None:
        links: dict[Link, socket.socket] = {}
        try:
            return self._connect_at(endpoint, links)
        except RefusedError as refusal:
            close_all(list(links.values()))
            self._take_refusal(endpoint, refusal)
        except ssl.SSLCertVerificationError as error:
            close_all(list(links.values()))
            self._note(f"the certificate of {endpoint} is not accepted: {error.verify_message}", is_cause=True)
        except (HangUpError, ProtocolError) as error:
            close_all(list(links.values()))
            self._note(f"{endpoint}: {error}", is_cause=True)
        except OSError as error:
            close_all(list(links.values()))
            self._note(f"{endpoint}: {error.strerror or error}")
        except BaseException:
            close_all(list(links.values()))
            raise
        return None

    def _take_refusal(self, endpoint: Endpoint, refusal: RefusedError) -> None:
        """Only a coordinator that has proven to be ours can send this rank away; anybody may answer at an address."""
        if isinstance(refusal, UnprovenRefusalError):
            self._hearsay = printable(refusal.text, lines=False)
            self._note(f"whoever answers at {endpoint} refuses, without proof that it holds the secret", is_cause=True)
        elif refusal.may_retry:
            self._note(f"{endpoint} refuses: {printable(refusal.text)}", is_cause=True)
        else:
            raise self._refused(endpoint, refusal) from refusal

    def _connect_at(self, endpoint: Endpoint, links: dict[Link, socket.socket]) -> CoordinatorConnection:
        instance = secrets.token_bytes(INSTANCE_BYTES)
        for link in (Link.CONTROL, Link.DATA):
            links[link] = self._connect(endpoint)
            handshake = self._handshake(link, instance)
            self._shake_hands(links[link], handshake)
        self._await_start(links[Link.DATA], handshake)
        assert handshake.coordinator is not None  # noqa: S101 - named in the handshake
        return CoordinatorConnection(links, handshake.coordinator)

    def _connect(self, endpoint: Endpoint) -> socket.socket:
        sock = socket.socket(endpoint.family, socket.SOCK_STREAM)
        try:
            sock.settimeout(self._at_most(CONNECT_S))
            sock.connect(endpoint.sockaddr)
            if sock.getsockname() == sock.getpeername():
                # Linux may connect a socket to itself while nobody listens on a port of its own range.
                raise HangUpError("nobody listens there")
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
            raise HangUpError(
                f"no TLS handshake ({reason}): is COBRE_TCP_TLS_CERT set for the coordinator, too?"
            ) from error

    def _handshake(self, link: Link, instance: bytes) -> WorkerHandshake:
        config = self._config
        return WorkerHandshake(config.rank, config.size, config.run_id, self._secret, link, instance)

    def _shake_hands(self, sock: socket.socket, handshake: WorkerHandshake) -> None:
        limit = min(time.monotonic() + HANDSHAKE_S, self._deadline)
        sock.settimeout(self._at_most(HANDSHAKE_S))
        sock.sendall(handshake.begin())
        while not handshake.is_welcome:
            self._advance(sock, handshake, limit)

    def _await_start(self, sock: socket.socket, handshake: WorkerHandshake) -> None:
        self._note("connected, waiting for the other ranks")
        # A little longer than the coordinator's own patience: it knows who is missing.
        limit = self._deadline + 1.0
        while not handshake.has_started:
            self._advance(sock, handshake, limit)

    def _advance(self, sock: socket.socket, handshake: WorkerHandshake, limit: float) -> None:
        sock.settimeout(min(max(0.001, limit - time.monotonic()), LONGEST_WAIT_S))
        try:
            data = sock.recv(handshake.needed)
        except TimeoutError:
            raise HangUpError("no answer in time") from None
        except OSError as error:
            raise HangUpError(self._broken_off(error.strerror or str(error))) from error
        if not data:
            raise HangUpError(self._broken_off("hung up"))
        if self._context is None and handshake.coordinator is None and data.startswith(TLS_RECORDS):
            raise HangUpError("the answer is TLS, which this rank does not use: set COBRE_TCP_TLS_CA here, too")
        answer = handshake.receive(data)
        if answer:
            sock.sendall(answer)

    def _broken_off(self, how: str) -> str:
        hint = "" if self._context else "; does it use TLS (COBRE_TCP_TLS_CA), which this rank does not?"
        return f"whoever answers there broke off the handshake ({how}){hint}"

    def _at_most(self, seconds: float) -> float:
        return max(0.001, min(seconds, self._deadline - time.monotonic()))

    def _note(self, trouble: str, *, is_cause: bool = False) -> None:
        self._trouble = trouble
        self._cause = trouble if is_cause else self._cause
        if trouble not in self._told:
            self._told.add(trouble)
            logger.info("rank %d on its way to %s: %s", self._config.rank, self._address, trouble)

    def _warn(self) -> None:
        """Nobody waits in silence for a name with a typing error in it."""
        waited = time.monotonic() - self._began
        if waited >= PATIENCE_S and self._trouble not in self._warned:
            self._warned.add(self._trouble)
            logger.warning(
                "rank %d (host %s) has looked for rank 0 at %s for %.0f s: %s; it gives up after %g s",
                self._config.rank,
                socket.gethostname(),
                self._address,
                waited,
                self._trouble,
                self._config.connect_timeout_s,
            )

    def _refused(self, endpoint: Endpoint, refusal: RefusedError) -> InitializationFailedError:
        text = printable(refusal.text)
        return InitializationFailedError(
            "tcp", f"the coordinator at {endpoint} and rank {self._config.rank} do not agree: {text}"
        )

    def _too_late(self) -> InitializationFailedError:
        return InitializationFailedError(
            "tcp",
            f"rank {self._config.rank} did not meet rank 0, the coordinator, at {self._address} in "
            f"{self._config.connect_timeout_s:g} s: {self._told_in_the_end()}",
        )

    def _told_in_the_end(self) -> str:
        cause = self._cause or self._trouble
        last = f"; in the end: {self._trouble}" if self._trouble != cause else ""
        hearsay = f"; it says: {self._hearsay}" if self._hearsay else ""
        return f"{cause}{hearsay}{last}"

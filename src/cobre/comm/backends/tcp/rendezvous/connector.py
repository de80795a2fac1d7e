"""How a worker connects to its coordinator: at any of its addresses, with retries, until the connect timeout."""

import secrets
import socket
import ssl
import time
from dataclasses import dataclass

from cobre.comm.backends.tcp.fields import ProtocolError
from cobre.comm.backends.tcp.protocol import INSTANCE_BYTES, Link
from cobre.comm.backends.tcp.rendezvous.address import SocketAddress, is_loopback, parse_address, resolve
from cobre.comm.backends.tcp.rendezvous.handshake import RefusedError, UnprovenRefusalError, WorkerHandshake
from cobre.comm.backends.tcp.rendezvous.listener import close_all, require_secret
from cobre.comm.config import TcpConfig
from cobre.comm.endpoint import logger
from cobre.comm.errors import InitializationFailedError, Peer
from cobre.printable import printable

HANDSHAKE_S = 5.0
TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
CONNECT_S = 5.0  # per address: a firewall that swallows packets must not hide the next address
FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.02, 0.5
WARN_AFTER_S = 5.0  # after which a rank that has not found the coordinator says so
LONGEST_WAIT_S = 1e6  # a socket counts milliseconds in 32 bits


@dataclass(frozen=True, slots=True)
class CoordinatorConnection:
    """A worker's two connections, and who is at the other end."""

    links: dict[Link, socket.socket]
    coordinator: Peer


class HangUpError(Exception):
    """The other side ended the connection without a word."""


class Connector:
    """Connects one worker to rank 0.

    Late DNS, refused connections and any order of starting are normal in a cluster: whatever fails is retried. Only a
    coordinator that has proven that it holds the secret can send a worker away for good.
    """

    def __init__(self, config: TcpConfig, secret: bytes, context: ssl.SSLContext | None) -> None:
        self._config = config
        self._secret = secret
        self._context = context
        self._address = parse_address(config.coordinator, config.port)
        self._began = time.monotonic()
        self._deadline = self._began + config.connect_timeout_s
        self._logged: set[str] = set()  # each problem is logged once, however often it is met
        self._warned: set[str] = set()
        self._last_problem = "nothing was tried"
        self._cause = ""
        """The last problem that says more than that nobody answers: rank 0 may have given up before this rank does."""
        self._unproven_text = ""

    def connect(self) -> CoordinatorConnection:
        """Connect, authenticate, and wait until all ranks are there.

        Raises `InitializationFailedError` at the connect timeout with the last cause, or where the coordinator refuses.
        """
        backoff = FIRST_BACKOFF_S
        while True:
            # Resolved anew in every round: the name may become known, or change, while we wait.
            for target in self._targets():
                connection = self._try(target)
                if connection is not None:
                    return connection
            if time.monotonic() + backoff >= self._deadline:
                raise self._timed_out()
            self._warn_if_slow()
            time.sleep(backoff)
            backoff = min(2 * backoff, MAX_BACKOFF_S)

    def _targets(self) -> list[SocketAddress]:
        try:
            targets = resolve(self._address)
        except socket.gaierror as error:
            self._note_problem(f"the name {self._address.host} is not known ({error.strerror})")
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
            self._handle_refusal(target, refusal)
        except ssl.SSLCertVerificationError as error:
            close_all(list(links.values()))
            self._note_problem(f"the certificate of {target} is not accepted: {error.verify_message}", is_cause=True)
        except (HangUpError, ProtocolError) as error:
            close_all(list(links.values()))
            self._note_problem(f"{target}: {error}", is_cause=True)
        except OSError as error:
            close_all(list(links.values()))
            self._note_problem(f"{target}: {error.strerror or error}")
        except BaseException:
            close_all(list(links.values()))
            raise
        return None

    def _handle_refusal(self, target: SocketAddress, refusal: RefusedError) -> None:
        """Only a coordinator that has proven to be ours can send this rank away; anybody may answer at an address."""
        if isinstance(refusal, UnprovenRefusalError):
            self._unproven_text = printable(refusal.text, lines=False)
            self._note_problem(
                f"whoever answers at {target} refuses, without proof that it holds the secret", is_cause=True
            )
        elif refusal.may_retry:
            self._note_problem(f"{target} refuses: {printable(refusal.text)}", is_cause=True)
        else:
            raise self._refused(target, refusal) from refusal

    def _connect_at(self, target: SocketAddress, links: dict[Link, socket.socket]) -> CoordinatorConnection:
        instance = secrets.token_bytes(INSTANCE_BYTES)
        # START comes on the data connection, so that is made last: when it is complete, both are.
        for link in (Link.CONTROL, Link.DATA):
            links[link] = self._connect(target)
            handshake = self._handshake(link, instance)
            self._run_handshake(links[link], handshake)
        self._await_start(links[Link.DATA], handshake)
        assert handshake.coordinator is not None  # noqa: S101 - named in the handshake
        return CoordinatorConnection(links, handshake.coordinator)

    def _connect(self, target: SocketAddress) -> socket.socket:
        sock = socket.socket(target.family, socket.SOCK_STREAM)
        try:
            sock.settimeout(self._at_most(CONNECT_S))
            sock.connect(target.sockaddr)
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

    def _run_handshake(self, sock: socket.socket, handshake: WorkerHandshake) -> None:
        limit = min(time.monotonic() + HANDSHAKE_S, self._deadline)
        sock.settimeout(self._at_most(HANDSHAKE_S))
        sock.sendall(handshake.begin())
        while not handshake.is_welcome:
            self._advance(sock, handshake, limit)

    def _await_start(self, sock: socket.socket, handshake: WorkerHandshake) -> None:
        self._note_problem("connected, waiting for the other ranks")
        # A little longer than the coordinator's own limit: its error, which names the missing ranks, should come first.
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

    def _note_problem(self, problem: str, *, is_cause: bool = False) -> None:
        self._last_problem = problem
        self._cause = problem if is_cause else self._cause
        if problem not in self._logged:
            self._logged.add(problem)
            logger.info("rank %d on its way to %s: %s", self._config.rank, self._address, problem)

    def _warn_if_slow(self) -> None:
        """After WARN_AFTER_S log each problem once as a warning: the name may have a typing error in it."""
        waited = time.monotonic() - self._began
        if waited >= WARN_AFTER_S and self._last_problem not in self._warned:
            self._warned.add(self._last_problem)
            logger.warning(
                "rank %d (host %s) has looked for rank 0 at %s for %.0f s: %s; it gives up after %g s",
                self._config.rank,
                socket.gethostname(),
                self._address,
                waited,
                self._last_problem,
                self._config.connect_timeout_s,
            )

    def _refused(self, target: SocketAddress, refusal: RefusedError) -> InitializationFailedError:
        text = printable(refusal.text)
        return InitializationFailedError(
            "tcp", f"the coordinator at {target} and rank {self._config.rank} do not agree: {text}"
        )

    def _timed_out(self) -> InitializationFailedError:
        return InitializationFailedError(
            "tcp",
            f"rank {self._config.rank} did not meet rank 0, the coordinator, at {self._address} in "
            f"{self._config.connect_timeout_s:g} s: {self._explanation()}",
        )

    def _explanation(self) -> str:
        cause = self._cause or self._last_problem
        last = f"; in the end: {self._last_problem}" if self._last_problem != cause else ""
        unproven = f"; it says: {self._unproven_text}" if self._unproven_text else ""
        return f"{cause}{unproven}{last}"

"""Addresses, listening sockets and TLS: what rank 0 listens on, and what both ends are configured with."""

import contextlib
import errno
import ipaddress
import socket
import ssl
import time
from dataclasses import dataclass

from cobre.comm.config import MAX_TCP_PORT, TcpConfig
from cobre.comm.endpoint import logger
from cobre.comm.errors import InitializationFailedError, MissingConfigurationError

# Addresses as users write them: `host`, `host:port`, `[v6]:port`, or a bare IPv6 address.


@dataclass(frozen=True, slots=True)
class Address:
    """A host name or numeric address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class SocketAddress:
    """One resolved address that a socket can be bound or connected to."""

    family: int
    sockaddr: tuple[object, ...]

    @property
    def host(self) -> str:
        """The numeric address, without the port."""
        return str(self.sockaddr[0])

    def __str__(self) -> str:
        return str(Address(self.host, int(str(self.sockaddr[1]))))


def parse_address(text: str, default_port: int, variable: str = "COBRE_TCP_COORDINATOR") -> Address:
    """Parse an address; a port in it takes precedence over the default. `variable`: named in the error."""
    host, port = _split(text.strip())
    number = default_port if port is None else int(port) if port.isascii() and port.isdigit() else None
    if not host or number is None or not 0 <= number <= MAX_TCP_PORT:
        raise InitializationFailedError(
            "tcp", f"{variable}={text!r} is not a valid address: expected host, host:port or [IPv6 address]:port"
        )
    return Address(host, number)


def _split(text: str) -> tuple[str, str | None]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return "", None
        return host, rest[1:] if rest else None
    if text.count(":") > 1:  # a bare IPv6 address
        return text, None
    host, colon, port = text.partition(":")
    return host, port if colon else None


def resolve(address: Address, *, passive: bool = False) -> list[SocketAddress]:
    """Resolve an address, in the resolver's order; raises `socket.gaierror`. passive: for bind(), not connect()."""
    flags = socket.AI_PASSIVE if passive else 0
    entries = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=flags)
    unique = dict.fromkeys(SocketAddress(family, sockaddr) for family, _, _, _, sockaddr in entries)
    return list(unique)


def unresolved(host: str, error: socket.gaierror) -> str:
    """Return the message for a name that cannot be resolved here; the same wherever that happens."""
    return f"cannot resolve {host} on host {socket.gethostname()}: {error.strerror or 'no reason given'}"


def is_loopback(host: str) -> bool:
    """Return whether a numeric address is a loopback address, IPv4-mapped ones included."""
    try:
        number = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(number, "ipv4_mapped", None)
    return (mapped or number).is_loopback


BACKLOG = 1024
RETRY_S = 0.2
WARN_AFTER_S = 3.0  # how long rank 0 tries to resolve its own name before it logs a warning
NOT_LOCAL = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def require_secret(secret: bytes, insecure: bool, reason: str) -> None:
    """Raise `MissingConfigurationError` if ranks would communicate with other machines without a secret.

    `reason`: why one is needed.
    """
    if not secret and not insecure:
        raise MissingConfigurationError(
            "tcp",
            "COBRE_TCP_SECRET_FILE",
            f"is not set, nor is COBRE_TCP_SECRET, but {reason}, where anybody who reaches the port could join. "
            "Give all ranks the same secret, or set COBRE_TCP_INSECURE=1 on a network that you trust",
        )


def open_listeners(config: TcpConfig, secret: bytes, deadline: float) -> list[socket.socket]:
    """Open listening sockets on all addresses that the configuration names.

    Raises `InitializationFailedError` if none can be listened on, and `MissingConfigurationError` without a secret.
    """
    if not config.coordinator and not config.bind:
        return _listen_everywhere(config, secret, config.port, "COBRE_TCP_COORDINATOR is not set")
    address = _address_to_bind(config)
    addresses = _resolve_in_time(address, deadline)
    exposed = [one for one in addresses if not is_loopback(one.host)]
    if exposed:
        require_secret(secret, config.insecure, f"rank 0 would listen on {exposed[0]}")
    listeners = _listen_on_all(addresses)
    if listeners:
        return listeners
    # An address to bind that is not local is a mistake; a coordinator's address that is not local may belong to a
    # router or a Kubernetes service in front of this machine.
    if config.bind:
        raise InitializationFailedError(
            "tcp", f"COBRE_TCP_BIND={config.bind} is not an address of this machine ({socket.gethostname()})"
        )
    reason = f"{address.host} is not an address of this machine"
    return _listen_everywhere(config, secret, address.port, reason)


def _address_to_bind(config: TcpConfig) -> Address:
    port = parse_address(config.coordinator, config.port).port if config.coordinator else config.port
    if config.bind:
        return parse_address(config.bind, port, "COBRE_TCP_BIND")
    return parse_address(config.coordinator, port)


def _resolve_in_time(address: Address, deadline: float) -> list[SocketAddress]:
    """Resolve rank 0's own name, with retries: on a cluster it may appear only after the process has started."""
    warn_at = time.monotonic() + WARN_AFTER_S
    logged = False
    while True:
        try:
            return resolve(address, passive=True)
        except socket.gaierror as error:
            now = time.monotonic()
            text = unresolved(address.host, error)
            if now >= deadline:
                raise InitializationFailedError("tcp", text) from error
            if now >= warn_at:
                logger.warning("rank 0 cannot listen yet: %s; it gives up in %.0f s", text, deadline - now)
                warn_at = deadline
            if not logged:
                logger.info("%s; retrying", text)
                logged = True
            time.sleep(RETRY_S)


def _listen_everywhere(config: TcpConfig, secret: bytes, port: int, reason: str) -> list[socket.socket]:
    """Listen on all addresses: none is configured, or it belongs to a router or service in front of this machine."""
    require_secret(secret, config.insecure, f"{reason}, and rank 0 would listen on all addresses of this machine")
    logger.info("%s: listening on all addresses of this machine; COBRE_TCP_BIND overrides this", reason)
    wildcards = ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0"))  # noqa: S104 - allowed just above
    return _listen_on_all([SocketAddress(family, (host, port)) for family, host in wildcards])


def _listen_on_all(addresses: list[SocketAddress]) -> list[socket.socket]:
    listeners: list[socket.socket] = []
    try:
        for address in addresses:
            listener = _listen(address)
            if listener is not None:
                listeners.append(listener)
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def _listen(address: SocketAddress) -> socket.socket | None:
    """Open a listening socket; None if the address does not belong to this machine."""
    try:
        listener = socket.socket(address.family, socket.SOCK_STREAM)
    except OSError:  # this machine has no such address family
        return None
    try:
        # A run that ended a moment ago leaves connections in TIME_WAIT, which would block the port for a minute.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # One socket per family: a dual-stack IPv6 socket would make the bind of the IPv4 one fail.
        if address.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address.sockaddr)
        listener.listen(BACKLOG)
        listener.setblocking(False)  # a connection that is reset before accept() must not block the event loop
    except OSError as error:
        listener.close()
        if error.errno in NOT_LOCAL:
            return None
        raise _cannot_listen(address, error) from error
    return listener


def _cannot_listen(address: SocketAddress, error: OSError) -> InitializationFailedError:
    if error.errno == errno.EADDRINUSE:
        return InitializationFailedError(
            "tcp",
            f"{address} is in use by another process, perhaps an earlier run: stop it, or set another COBRE_TCP_PORT "
            "on all ranks",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return InitializationFailedError("tcp", f"cannot listen on {address}: {error.strerror}; use a port above 1023")
    return InitializationFailedError("tcp", f"cannot listen on {address}: {error.strerror}")


def close_all(sockets: list[socket.socket]) -> None:
    """Close sockets, whatever state they are in."""
    for sock in sockets:
        with contextlib.suppress(OSError):
            sock.close()


# Optional encryption: TLS 1.3 with the certificates that the user configured.

TLS_ALERT, TLS_HANDSHAKE = b"\x15\x03", b"\x16\x03"  # the first bytes of records of these kinds


def server_context(config: TcpConfig) -> ssl.SSLContext | None:
    """Return the coordinator's context: it presents its certificate, and requires the workers' if there is a CA."""
    if not config.uses_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, config)
    # Without a configured CA there is nothing to verify workers against: their proof of the secret has to do. The
    # system's CAs would accept any peer with a public certificate.
    if config.tls_ca:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(config: TcpConfig) -> ssl.SSLContext | None:
    """Return a worker's context.

    It verifies the coordinator's certificate and host name, and presents its own if it has one.
    """
    if not config.uses_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not config.tls_ca:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    _load(context, config)
    return context


def ring_server_context(config: TcpConfig) -> ssl.SSLContext | None:
    """Return a host's context for its left neighbour, which dials it and proves that it holds the secret."""
    if not config.uses_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The neighbour never reads from this connection. Tickets left unread would make its close() a reset, which discards
    # data that is still on its way.
    context.num_tickets = 0
    _load(context, config)
    return context


def ring_client_context(config: TcpConfig) -> ssl.SSLContext | None:
    """Return a host's context for its right neighbour; the caller compares the certificate with the announced one."""
    if not config.uses_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the digest of the certificate is compared, which is stricter than a name
    context.verify_mode = ssl.CERT_NONE
    _load(context, config)
    return context


def _load(context: ssl.SSLContext, config: TcpConfig) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        if config.tls_cert:
            context.load_cert_chain(config.tls_cert, config.tls_key)
        if config.tls_ca:
            context.load_verify_locations(config.tls_ca)
    except (OSError, ssl.SSLError) as error:
        raise InitializationFailedError(
            "tcp", f"cannot load the TLS files (COBRE_TCP_TLS_CERT, COBRE_TCP_TLS_KEY, COBRE_TCP_TLS_CA): {error}"
        ) from error

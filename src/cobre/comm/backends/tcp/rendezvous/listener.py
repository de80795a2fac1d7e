"""Where the coordinator listens: the address as asked, never more of the machine than is needed."""

import contextlib
import errno
import socket
import time

from cobre.comm.backends.tcp.rendezvous.address import Address, SocketAddress, is_loopback, parse_address, resolve
from cobre.comm.config import TcpConfig
from cobre.comm.endpoint import logger
from cobre.comm.errors import InitializationFailedError, MissingConfigurationError

BACKLOG = 1024
RETRY_S = 0.2
WARN_AFTER_S = 3.0  # a name that is not known by then may never be; those who wait shall hear of it
NOT_OURS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def require_secret(secret: bytes, insecure: bool, what: str) -> None:
    """Refuse to talk to other machines without a secret."""
    if not secret and not insecure:
        raise MissingConfigurationError(
            "tcp",
            "COBRE_TCP_SECRET_FILE",
            f"is not set, nor is COBRE_TCP_SECRET, and {what}: anybody who reaches the port could join. "
            "Give all ranks the same secret; on a network that you trust COBRE_TCP_INSECURE=1 does without",
        )


def open_listeners(config: TcpConfig, secret: bytes, deadline: float) -> list[socket.socket]:
    """Listening sockets on all addresses that the configuration means, or an error that says what is in the way."""
    if not config.coordinator and not config.bind:
        return _listen_everywhere(config, secret, config.port, "COBRE_TCP_COORDINATOR is not set")
    address = _address_to_bind(config)
    addresses = _resolve_in_time(address, deadline)
    open_to_others = [one for one in addresses if not is_loopback(one.host)]
    if open_to_others:
        require_secret(secret, config.insecure, f"rank 0 would listen on {open_to_others[0]}")
    listeners = _listen_on_all(addresses)
    if listeners:
        return listeners
    if config.bind:
        raise InitializationFailedError(
            "tcp", f"COBRE_TCP_BIND={config.bind} is not an address of this machine ({socket.gethostname()})"
        )
    foreign = f"{address.host} is not an address of this machine"
    return _listen_everywhere(config, secret, address.port, foreign)


def _address_to_bind(config: TcpConfig) -> Address:
    port = parse_address(config.coordinator, config.port).port if config.coordinator else config.port
    if config.bind:
        return parse_address(config.bind, port, "COBRE_TCP_BIND")
    return parse_address(config.coordinator, port)


def _resolve_in_time(address: Address, deadline: float) -> list[SocketAddress]:
    """In a cluster rank 0's own name may become known only after it has started."""
    warn_at = time.monotonic() + WARN_AFTER_S
    logged = False
    while True:
        try:
            return resolve(address, passive=True)
        except socket.gaierror as error:
            now = time.monotonic()
            text = f"the name {address.host} is not known on {socket.gethostname()}: {error.strerror}"
            if now >= deadline:
                raise InitializationFailedError("tcp", text) from error
            if now >= warn_at:
                logger.warning("rank 0 cannot listen yet: %s; it gives up in %.0f s", text, deadline - now)
                warn_at = deadline
            if not logged:
                logger.info("%s; trying again", text)
                logged = True
            time.sleep(RETRY_S)


def _listen_everywhere(config: TcpConfig, secret: bytes, port: int, why: str) -> list[socket.socket]:
    """No address was named, or it is that of a router or a service in front of this machine."""
    require_secret(secret, config.insecure, f"{why}, so rank 0 would listen on all addresses of this machine")
    logger.info("%s: listening on all addresses of this machine; COBRE_TCP_BIND overrides this", why)
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
    """A listening socket; None when the address is not one of this machine's."""
    try:
        listener = socket.socket(address.family, socket.SOCK_STREAM)
    except OSError:  # no such family here
        return None
    try:
        # A run that ended a moment ago leaves connections in TIME_WAIT, which would keep the port for a minute.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Each family has its own socket; a v6 one that also took v4 would make the bind of the other fail.
        if address.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address.sockaddr)
        listener.listen(BACKLOG)
        listener.setblocking(False)  # a connection that is gone before accept() must not block the event loop
    except OSError as error:
        listener.close()
        if error.errno in NOT_OURS:
            return None
        raise _cannot_listen(address, error) from error
    return listener


def _cannot_listen(address: SocketAddress, error: OSError) -> InitializationFailedError:
    if error.errno == errno.EADDRINUSE:
        return InitializationFailedError(
            "tcp",
            f"{address} is in use by another process, perhaps an earlier run: end that, or choose another port "
            "with COBRE_TCP_PORT on all ranks",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        advice = "use a port above 1023"
        return InitializationFailedError("tcp", f"{address} may not be listened on: {error.strerror}; {advice}")
    return InitializationFailedError("tcp", f"{address} cannot be listened on: {error.strerror}")


def close_all(sockets: list[socket.socket]) -> None:
    """Close, whatever state they are in."""
    for sock in sockets:
        with contextlib.suppress(OSError):
            sock.close()

"""Addresses as users write them: `host`, `host:port`, `[v6]:port`, or a bare IPv6 address."""

import ipaddress
import socket
from dataclasses import dataclass

from cobre.comm.config import MAX_TCP_PORT
from cobre.comm.errors import InitializationFailedError


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
    number = default_port if port is None else _port(port)
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


def _port(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def resolve(address: Address, *, passive: bool = False) -> list[SocketAddress]:
    """Resolve an address, in the resolver's order; raises `socket.gaierror`. passive: for bind(), not connect()."""
    flags = socket.AI_PASSIVE if passive else 0
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=flags)
    unique = dict.fromkeys(SocketAddress(family, sockaddr) for family, _, _, _, sockaddr in found)
    return list(unique)


def unresolved(host: str, error: socket.gaierror) -> str:
    """The message for a name that cannot be resolved here; the same wherever that happens."""
    return f"cannot resolve {host} on host {socket.gethostname()}: {error.strerror or 'no reason given'}"


def is_loopback(host: str) -> bool:
    """Whether a numeric address is a loopback address, IPv4-mapped ones included."""
    try:
        number = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(number, "ipv4_mapped", None)
    return (mapped or number).is_loopback

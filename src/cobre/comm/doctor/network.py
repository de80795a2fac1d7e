"""Inspects what backend tcp needs: a loopback interface, names that resolve, a usable secret."""

import os
import queue
import socket
import stat
import threading
from collections.abc import Mapping
from pathlib import Path

from cobre.comm import variables
from cobre.comm.backends.tcp.rendezvous.address import parse_address
from cobre.comm.backends.tcp.rendezvous.secret import load_secret
from cobre.comm.config import DEFAULT_TCP_PORT, TcpConfig
from cobre.comm.doctor.findings import Finding
from cobre.comm.errors import BackendError, InitializationFailedError

LOOKUP_LIMIT_S = 3.0
CONNECT_LIMIT_S = 3.0
LOOPBACK = "127.0.0.1"
LOOPBACKS = {LOOPBACK: socket.AF_INET, "::1": socket.AF_INET6}


def inspect_network(environ: Mapping[str, str] = os.environ) -> list[Finding]:
    """Findings about the loopback interface, host names and the secret."""
    return [_loopback(), _own_name(socket.gethostname()), *_coordinator(environ), _secret(environ)]


def _loopback() -> Finding:
    problems = {address: loopback_problem(address) for address in LOOPBACKS}
    usable = [address for address, problem in problems.items() if not problem]
    if usable:
        return Finding("loopback", f"connections to {' and '.join(usable)} work")
    text = "; ".join(f"{address}: {problem}" for address, problem in problems.items())
    return Finding("loopback", f"cannot connect ({text})", "check that the interface is up: ip link set lo up")


def loopback_problem(address: str) -> str:
    """Why processes cannot connect to each other at this address; empty if they can."""
    try:
        with (
            socket.create_server((address, 0), family=LOOPBACKS[address]) as listener,
            socket.create_connection(listener.getsockname()[:2], timeout=CONNECT_LIMIT_S),
        ):
            listener.accept()[0].close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _own_name(host: str) -> Finding:
    advice = f"other machines may not know {host}; use a numeric address in COBRE_TCP_COORDINATOR"
    return _lookup("own name", host, advice)


def _coordinator(environ: Mapping[str, str]) -> list[Finding]:
    named = environ.get(variables.TCP_COORDINATOR, "")
    if not named:
        return []
    try:
        address = parse_address(named, DEFAULT_TCP_PORT)
    except InitializationFailedError as error:
        return [Finding("coordinator", f"not usable: {error.message}", "ranks would refuse it; correct the address")]
    advice = "ranks retry until the connect timeout; check the name, or that the service will exist by then"
    return [_lookup("coordinator", address.host, advice)]


def _lookup(name: str, host: str, advice: str) -> Finding:
    addresses = resolve(host)
    if addresses is None:
        return Finding(name, f"{host}: no reply within {LOOKUP_LIMIT_S:g} s", f"the name server is slow; {advice}")
    return (
        Finding(name, f"{host} resolves to {', '.join(addresses)}")
        if addresses
        else Finding(name, f"{host} does not resolve", advice)
    )


def resolve(host: str) -> list[str] | None:
    """The addresses of a host, empty if there are none; None if the name server took too long."""
    # In a thread, because getaddrinfo() has no timeout.
    replies: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    threading.Thread(target=lambda: replies.put(_addresses(host)), daemon=True).start()
    try:
        return replies.get(timeout=LOOKUP_LIMIT_S)
    except queue.Empty:
        return None


def _addresses(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _secret(environ: Mapping[str, str]) -> Finding:
    path, text = environ.get(variables.TCP_SECRET_FILE, ""), environ.get(variables.TCP_SECRET, "")
    if path and _is_pipe(path):
        return Finding("secret", f"{path} is a pipe, which can be read only once: not checked")
    if not (path or text):
        return Finding(
            "secret", "not set; required if ranks are on different machines (the launcher generates its own)"
        )
    try:
        load_secret(TcpConfig("localhost", 0, 1, secret_file=path, secret=text))
    except BackendError as error:
        return Finding("secret", f"not usable: {error}", "python -c 'import secrets; print(secrets.token_hex(32))'")
    if path:
        return Finding("secret", f"{path}: readable, and not by other users")
    return Finding(
        "secret",
        "COBRE_TCP_SECRET is set",
        "COBRE_TCP_SECRET_FILE is safer: other users may be able to see environment variables",
    )


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(Path(path).stat().st_mode)
    except OSError:
        return False

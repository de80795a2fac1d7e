"""What backend tcp needs: an address to listen on, names that resolve, a secret that is one."""

import os
import queue
import socket
import stat
import threading
from collections.abc import Mapping
from pathlib import Path

from cobre.comm.backends.tcp.rendezvous.secret import load_secret
from cobre.comm.config import TcpConfig
from cobre.comm.doctor.findings import Finding
from cobre.comm.errors import BackendError

LOOKUP_LIMIT_S = 3.0
CONNECT_LIMIT_S = 3.0
LOOPBACK = "127.0.0.1"
LOOPBACKS = {LOOPBACK: socket.AF_INET, "::1": socket.AF_INET6}


def look_at_network(environ: Mapping[str, str] = os.environ) -> list[Finding]:
    """Addresses, names and the secret."""
    return [_loopback(), _own_name(socket.gethostname()), *_coordinator(environ), _secret(environ)]


def _loopback() -> Finding:
    problems = {address: loopback_problem(address) for address in LOOPBACKS}
    usable = [address for address, problem in problems.items() if not problem]
    if usable:
        return Finding("loopback", f"connections to {' and '.join(usable)} work")
    text = "; ".join(f"{address}: {problem}" for address, problem in problems.items())
    return Finding("loopback", f"no connection ({text})", "is the interface up? ip link set lo up")


def loopback_problem(address: str) -> str:
    """Why a process cannot talk to another one there; empty: it can."""
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
    advice = f"others may not find this machine as {host}; give COBRE_TCP_COORDINATOR as an address"
    return _lookup("own name", host, advice)


def _coordinator(environ: Mapping[str, str]) -> list[Finding]:
    named = environ.get("COBRE_TCP_COORDINATOR", "")
    if not named:
        return []
    host = named.partition("]")[0].lstrip("[") if named.startswith("[") else named.partition(":")[0]
    advice = "ranks keep trying until the connect timeout; check the name, or that the service exists by then"
    return [_lookup("coordinator", host, advice)]


def _lookup(name: str, host: str, advice: str) -> Finding:
    addresses = resolve(host)
    if addresses is None:
        return Finding(name, f"{host}: no answer in {LOOKUP_LIMIT_S:g} s", f"the name server is slow; {advice}")
    return (
        Finding(name, f"{host} is {', '.join(addresses)}")
        if addresses
        else Finding(name, f"{host} does not resolve", advice)
    )


def resolve(host: str) -> list[str] | None:
    """Its addresses; None: the name server took too long, which no argument of the library could limit."""
    answers: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(_addresses(host)), daemon=True).start()
    try:
        return answers.get(timeout=LOOKUP_LIMIT_S)
    except queue.Empty:
        return None


def _addresses(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _secret(environ: Mapping[str, str]) -> Finding:
    path, text = environ.get("COBRE_TCP_SECRET_FILE", ""), environ.get("COBRE_TCP_SECRET", "")
    if path and _is_pipe(path):
        return Finding("secret", f"{path} is a pipe; it is read once, so it was not tried")
    if not (path or text):
        return Finding("secret", "none set; needed when ranks are on different machines (the launcher makes its own)")
    try:
        load_secret(TcpConfig("localhost", 0, 1, secret_file=path, secret=text))
    except BackendError as error:
        return Finding("secret", f"not usable: {error}", "python -c 'import secrets; print(secrets.token_hex(32))'")
    if path:
        return Finding("secret", f"{path}: readable, and by nobody else")
    return Finding("secret", "COBRE_TCP_SECRET is set", "COBRE_TCP_SECRET_FILE is safer: others may see variables")


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(Path(path).stat().st_mode)
    except OSError:
        return False

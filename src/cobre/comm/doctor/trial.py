"""Starts a world of two ranks, which run collectives and check the results."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cobre.comm import Backend, BackendError, CommError, create_communicator, launch
from cobre.comm.detection import find_mpiexec
from cobre.comm.doctor.machine import run_limited
from cobre.comm.trace.writer import TRACE_VARIABLE

RANKS = 2
LIMIT_S = 60.0
SUCCESS = "the ranks agree"
_NO_TRACE = {TRACE_VARIABLE: ""}


@dataclass(frozen=True, slots=True)
class Trial:
    """How long it took, in seconds; `problem` is empty if it succeeded."""

    seconds: float
    problem: str = ""


def run_collectives(comm: Backend) -> str:
    """Reduce, gather and wait at a barrier; raises `ValueError` if a result is wrong."""
    total, everyone = np.zeros(4), np.zeros(comm.size)
    comm.allreduce(np.full(4, comm.rank + 1.0), total)
    comm.allgatherv(np.array([float(comm.rank)]), everyone, [1] * comm.size)
    comm.barrier()
    expected = sum(range(1, comm.size + 1))
    if (total != expected).any() or (everyone != np.arange(comm.size)).any():
        raise ValueError(f"wrong results: expected {expected}, got {total}; gathered {everyone}")
    return SUCCESS


def try_launched(backend: str, size: int = RANKS, options: Mapping[str, str] | None = None) -> Trial:
    """Start ranks with `cobre.comm.launch`."""
    begin = time.monotonic()
    environment = {**_NO_TRACE, **(options or {})}
    try:
        launch.run(run_collectives, size, backend, environment=environment, timeout_s=LIMIT_S, output=launch.discard)
    except (BackendError, CommError, launch.WorkerError, OSError) as error:
        return Trial(time.monotonic() - begin, first_line(error))
    return Trial(time.monotonic() - begin)


def try_mpiexec() -> Trial:
    """Start ranks with mpiexec; the problem is taken from their output."""
    begin = time.monotonic()
    command = [find_mpiexec(), "-n", str(RANKS), sys.executable, "-m", "cobre.comm.doctor.trial"]
    # By default Open MPI refuses to run as root, and more ranks than cores; neither matters to a trial of two.
    open_mpi = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    code, text = run_limited(command, LIMIT_S, COBRE_COMM_BACKEND="mpi", **_NO_TRACE, **open_mpi)
    lines = [line for line in text.splitlines() if line.strip()]
    if code or text.count(SUCCESS) != RANKS:
        return Trial(time.monotonic() - begin, next((line for line in lines if "Error" in line), "".join(lines[-1:])))
    return Trial(time.monotonic() - begin)


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its class if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def main() -> None:
    """Run one rank of a trial that mpiexec started."""
    with create_communicator() as comm:
        sys.stdout.write(run_collectives(comm) + "\n")


if __name__ == "__main__":
    main()

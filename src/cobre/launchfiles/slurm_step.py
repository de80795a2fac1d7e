"""The task of a Slurm step joins a tcp world: `srun -n 8 python -m cobre.launchfiles.slurm_step cobre run CASE`.

Runs on every rank, sets `COBRE_TCP_*` from the variables of the step, and replaces itself by the command. What is
set already takes precedence: `COBRE_TCP_PORT`, `COBRE_TCP_SECRET_FILE` and the rest.
"""

import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence

from cobre.comm.backends.tcp.rendezvous.listener import unresolved
from cobre.comm.config import BACKEND_VARIABLE
from cobre.comm.detection import SLURM_RANK, SLURM_SIZE
from cobre.comm.types import BackendKind
from cobre.errors import CobreError
from cobre.launchfiles.settings import HostListError, hosts

NODES = "SLURM_STEP_NODELIST"
FIRST_PORT, PORTS = 20_000, 10_000  # below Linux's ephemeral ports, which start at 32768
USAGE_ERROR, CANNOT_RUN = 2, 127
RESOLVE_LIMIT_S, RETRY_S = 5.0, 0.5


class NoStepError(CobreError):
    """The process was not started by srun, or the host of rank 0 is unknown."""


def step_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which this task joins the others of its step, as far as they are not set already."""
    missing = [name for name in (SLURM_RANK, SLURM_SIZE, NODES) if not environ.get(name)]
    if missing:
        raise NoStepError(f"{' and '.join(missing)} not set: start this by srun, inside a Slurm job")
    job = environ.get("SLURM_JOB_ID", "")
    world = {
        BACKEND_VARIABLE: BackendKind.TCP.value,
        "COBRE_TCP_RANK": environ[SLURM_RANK],
        "COBRE_TCP_SIZE": environ[SLURM_SIZE],
        "COBRE_TCP_PORT": str(FIRST_PORT + (int(job) if job.isdecimal() else 0) % PORTS),
        "COBRE_TCP_RUN_ID": f"{environ.get('SLURM_JOB_ID', '')}.{environ.get('SLURM_STEP_ID', '')}",
    }
    if not environ.get("COBRE_TCP_COORDINATOR"):
        world["COBRE_TCP_COORDINATOR"] = _first_host(environ)
    return {name: value for name, value in world.items() if not environ.get(name)}


def _first_host(environ: Mapping[str, str]) -> str:
    """Return the node of task 0: the first of the step's, unless the user laid out the tasks by hand."""
    if environ.get("SLURM_DISTRIBUTION") == "arbitrary":
        raise NoStepError(
            "tasks are distributed by hand (SLURM_DISTRIBUTION=arbitrary), so the node of task 0 is unknown: "
            "set COBRE_TCP_COORDINATOR to it"
        )
    try:
        return next(hosts(environ[NODES]))
    except HostListError as error:
        raise NoStepError(f"{NODES}: {error}") from None


def check_resolvable(node: str) -> None:
    """Raise `NoStepError` if the name of the first node cannot be resolved: ranks would try until their timeout."""
    error = _resolution_error(node, time.monotonic() + RESOLVE_LIMIT_S)
    if error is not None:
        raise NoStepError(
            f"{unresolved(node, error)} (the first node of the step): set COBRE_TCP_COORDINATOR to a name or address "
            f"by which all nodes reach {node} (`scontrol show node {node}` shows its NodeAddr)"
        )


def _resolution_error(node: str, deadline: float) -> socket.gaierror | None:
    """Return why a name cannot be resolved; None if it can.

    A server that does not reply is asked again until the deadline.
    """
    while True:
        try:
            socket.getaddrinfo(node, None)
        except socket.gaierror as error:
            # EAI_NONAME is an answer: there is no such name, and retrying would not change that.
            if error.errno == socket.EAI_NONAME or time.monotonic() >= deadline:
                return error
            time.sleep(RETRY_S)
        else:
            return None


def main(command: Sequence[str]) -> int:
    """Replace this process by the command; returns an exit code only if that is not possible."""
    if not command:
        return _print_error("expected the command that each rank runs", USAGE_ERROR)
    try:
        world = step_environment(os.environ)
        if "COBRE_TCP_COORDINATOR" in world:
            check_resolvable(world["COBRE_TCP_COORDINATOR"])
        os.environ.update(world)
        os.execvp(command[0], list(command))  # noqa: S606 - the user's own command line
    except NoStepError as error:
        return _print_error(str(error), USAGE_ERROR)
    except OSError as error:
        return _print_error(f"cannot run {command[0]}: {error.strerror}", CANNOT_RUN)


def _print_error(text: str, exit_code: int) -> int:
    sys.stderr.write(f"cobre.launchfiles.slurm_step: {text}\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

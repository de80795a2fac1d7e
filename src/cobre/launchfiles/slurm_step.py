"""Joins a Slurm step to a tcp world: `srun -n 8 python -m cobre.launchfiles.slurm_step cobre run CASE`.

Runs on every rank in front of the command, sets `COBRE_TCP_*` from the variables of the step, and becomes the command.
What is already set stays: `COBRE_TCP_PORT`, `COBRE_TCP_SECRET_FILE` and the rest are the user's to choose.
"""

import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence

from cobre.comm.config import BACKEND_VARIABLE
from cobre.comm.types import BackendKind
from cobre.errors import CobreError
from cobre.launchfiles.host_list import HostListError, hosts

RANK, SIZE, NODES = "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"
FIRST_PORT, PORTS = 20_000, 10_000  # below those that Linux gives to connections
USAGE_ERROR, CANNOT_RUN = 2, 127
PATIENCE_S, RETRY_S = 5.0, 0.5


class NoStepError(CobreError):
    """The variables of a step are missing or make no sense."""


def step_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables by which this task joins the others of its step, as far as they are not set already."""
    missing = [name for name in (RANK, SIZE, NODES) if not environ.get(name)]
    if missing:
        raise NoStepError(f"{' and '.join(missing)} not set: start this by srun, inside a Slurm job")
    world = {
        BACKEND_VARIABLE: BackendKind.TCP.value,
        "COBRE_TCP_RANK": environ[RANK],
        "COBRE_TCP_SIZE": environ[SIZE],
        "COBRE_TCP_PORT": str(_port(environ)),
        "COBRE_TCP_RUN_ID": f"{environ.get('SLURM_JOB_ID', '')}.{environ.get('SLURM_STEP_ID', '')}",
    }
    if not environ.get("COBRE_TCP_COORDINATOR"):
        world["COBRE_TCP_COORDINATOR"] = _first_host(environ)
    return {name: value for name, value in world.items() if not environ.get(name)}


def _first_host(environ: Mapping[str, str]) -> str:
    """The node of task 0: the first of the step's, unless the user laid out the tasks by hand."""
    if environ.get("SLURM_DISTRIBUTION") == "arbitrary":
        raise NoStepError(
            "tasks are distributed by hand (SLURM_DISTRIBUTION=arbitrary), so the node of task 0 is not known: "
            "set COBRE_TCP_COORDINATOR to it"
        )
    try:
        return next(hosts(environ[NODES]))
    except HostListError as error:
        raise NoStepError(f"{NODES}: {error}") from None


def check_known(node: str) -> None:
    """Raise where a node's name cannot be resolved: ranks would wait for it until their limit."""
    problem = _why_unknown(node, time.monotonic() + PATIENCE_S)
    if problem:
        raise NoStepError(
            f"the name {node}, that of the first node, is not known on {socket.gethostname()} ({problem}): set "
            f"COBRE_TCP_COORDINATOR to a name or address by which all nodes reach {node} "
            f"(`scontrol show node {node}` shows its NodeAddr)"
        )


def _why_unknown(node: str, deadline: float) -> str:
    """Empty when the name is known; a server that does not answer is asked again for a while."""
    while True:
        try:
            socket.getaddrinfo(node, None)
        except socket.gaierror as error:
            if error.errno == socket.EAI_NONAME or time.monotonic() >= deadline:
                return error.strerror or "no reason given"
            time.sleep(RETRY_S)
        else:
            return ""


def _port(environ: Mapping[str, str]) -> int:
    """Jobs that share a node use different ports, most of the time."""
    job = environ.get("SLURM_JOB_ID", "")
    return FIRST_PORT + (int(job) if job.isdecimal() else 0) % PORTS


def main(command: Sequence[str]) -> int:
    """Become the command; returns only when that is not possible."""
    if not command:
        return _say("give the command that each rank runs", USAGE_ERROR)
    try:
        world = step_environment(os.environ)
        if "COBRE_TCP_COORDINATOR" in world:
            check_known(world["COBRE_TCP_COORDINATOR"])
        os.environ.update(world)
        os.execvp(command[0], list(command))  # noqa: S606 - the user's own command line
    except NoStepError as error:
        return _say(str(error), USAGE_ERROR)
    except OSError as error:
        return _say(f"{command[0]} cannot be run: {error.strerror}", CANNOT_RUN)


def _say(text: str, exit_code: int) -> int:
    sys.stderr.write(f"cobre.launchfiles.slurm_step: {text}\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

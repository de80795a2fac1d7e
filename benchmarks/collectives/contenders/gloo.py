"""torch.distributed on gloo, in an environment of its own."""

import socket
import tempfile
from pathlib import Path

from collectives.contenders.base import WORLD_TIMEOUT_S, Contender, Entrant, Plan
from collectives.contenders.processes import Command, environ_for, run_to_end
from collectives.environments import gloo_environment
from collectives.ranks.entry import rank_arguments, read_durations
from collectives.timing import Durations

LOOPBACK = "127.0.0.1"
SETTINGS = (
    "on the loopback interface, one thread, else defaults; allgatherv: the fastest of a padded "
    "all_gather_into_tensor, a broadcast from every rank, and isend/irecv between all pairs, tried for each case"
)


class GlooContender(Contender):
    """The peer that also speaks TCP."""

    name = "gloo"
    entrants = (Entrant("gloo", "torch gloo", SETTINGS),)

    def __init__(self) -> None:
        self._environment = gloo_environment()
        self.needs = ", ".join(self._environment.requirements)

    def prepare(self) -> str:
        """Make the virtual environment where it is missing."""
        return self._environment.ensure()

    def run(self, size: int, plan: Plan) -> list[list[Durations]]:
        """Start the ranks; they meet at a socket that rank 0 inherits."""
        with (
            tempfile.TemporaryDirectory(prefix="cobre-bench-") as folder,
            socket.create_server((LOOPBACK, 0), backlog=size) as listener,
        ):
            ranks = [self._rank(rank, size, listener, plan, folder) for rank in range(size)]
            run_to_end(ranks, Path(folder), WORLD_TIMEOUT_S)
            return read_durations(folder, size)

    def _rank(self, rank: int, size: int, listener: socket.socket, plan: Plan, folder: str) -> Command:
        words = [str(self._environment.python), "-m", "collectives.ranks.gloo"]
        words += rank_arguments(folder, plan.cases, quick=plan.quick)
        words += ["--rank", str(rank), "--size", str(size), "--port", str(listener.getsockname()[1])]
        descriptors = (listener.fileno(),) if rank == 0 else ()
        words += [f"--listener={descriptor}" for descriptor in descriptors]
        return Command(words, environ_for(self._environment.folder, GLOO_SOCKET_IFNAME="lo"), descriptors)

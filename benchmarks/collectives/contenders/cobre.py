"""Our own worlds, started by our own launcher, in the interpreter that runs the benchmark."""

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from cobre.comm import Backend, available_backends, launch
from cobre.errors import DISTRIBUTION
from collectives.adapters.cobre import CobreAdapter
from collectives.adapters.memcpy import MemcpyAdapter
from collectives.adapters.sockets import connect_star
from collectives.contenders.base import WORLD_TIMEOUT_S, Contender, Entrant, Plan, WorldFailedError
from collectives.environments import UnavailableError
from collectives.timing import Durations, measure

Measurement = Callable[[Backend, Plan], Durations]


def measure_collectives(comm: Backend, plan: Plan) -> Durations:
    """Time the collectives of this communicator. Collective: call on every rank."""
    return measure(CobreAdapter(comm), plan.select())


def measure_copies(comm: Backend, plan: Plan) -> Durations:
    """Time memory copies; the communicator only synchronises the ranks. Collective: call on every rank."""
    return measure(MemcpyAdapter(CobreAdapter(comm)), plan.select())


def measure_socket_copies(comm: Backend, plan: Plan) -> Durations:
    """Time copies through sockets; the communicator only synchronises the ranks. Collective: call on every rank."""
    with connect_star(CobreAdapter(comm)) as adapter:
        return measure(adapter, plan.select())


SETTINGS = {"tcp": {"COBRE_TCP_RANKS_PER_HOST": "1"}}  # measures connections, not memory


class CobreContender(Contender):
    """One backend of cobre.comm."""

    measurement: Measurement = staticmethod(measure_collectives)

    def __init__(self, backend: str, entrant: Entrant | None = None) -> None:
        self.entrants = (entrant or Entrant(backend, f"cobre {backend}"),)
        self.name = self.entrants[0].name
        self._backend = backend

    def prepare(self) -> str:
        """Return the version; the benchmark itself requires the package."""
        if self._backend not in available_backends():
            raise UnavailableError(f"this installation has {', '.join(available_backends())}")
        return f"cobre {installed_version()}, NumPy {np.__version__}"

    def run(self, size: int, plan: Plan) -> list[list[Durations]]:
        """Start the ranks with `launch.run`."""
        try:
            return [
                launch.run(
                    self.measurement,
                    size,
                    self._backend,
                    (plan,),
                    environment=SETTINGS.get(self._backend),
                    timeout_s=WORLD_TIMEOUT_S,
                )
            ]
        except launch.WorkerError as error:
            raise WorldFailedError(str(error)) from error


class MemcpyContender(CobreContender):
    """All ranks copying at once, started and kept in step by shm."""

    measurement = staticmethod(measure_copies)

    def __init__(self) -> None:
        settings = "numpy.copyto of the bytes that a rank must at least write, in all ranks at once"
        super().__init__("shm", Entrant("memcpy", "memcpy, all at once", settings))


class SocketsContender(CobreContender):
    """Plain sockets between rank 0 and all others, started and kept in step by shm."""

    measurement = staticmethod(measure_socket_copies)

    def __init__(self) -> None:
        settings = (
            "the bytes that a star must move, over TCP on loopback, all connections and both directions at once, "
            "without protocol or checks; TCP_NODELAY, the kernel's own buffers"
        )
        super().__init__("shm", Entrant("sockets", "plain socket copy", settings))


def installed_version() -> str:
    """Return our version, also if only the sources are on the path."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "(not installed, from sources)"

"""The base classes of backends: both contracts in one object."""

from typing import Any

from cobre.comm.communicator import Communicator
from cobre.comm.errors import InvalidCommunicatorError
from cobre.comm.shared_memory import SharedMemoryProvider


class Backend(Communicator, SharedMemoryProvider):
    """A communicator that also creates shared regions; what `create_communicator` returns.

    A new backend derives from it and defines the hooks that `Communicator` and `SharedMemoryProvider` list.
    """


def _not_joined(*_: object) -> None:
    raise InvalidCommunicatorError("this rank has not joined its world yet")


class BoundCollectivesBackend(Backend):
    """A backend whose collectives are those of another object, bound to it once this rank has joined.

    The hooks are bound methods of that object. Methods of this class that call it would add a Python call to every
    collective.
    """

    _allgatherv: Any = _not_joined
    _allreduce: Any = _not_joined
    _broadcast: Any = _not_joined
    _barrier: Any = _not_joined

    def _bind_collectives(self, collectives: object) -> None:
        for name in ("allgatherv", "allreduce", "broadcast", "barrier"):
            setattr(self, f"_{name}", getattr(collectives, name))

"""The base class of backends: both contracts in one object."""

from cobre.comm.communicator import Communicator
from cobre.comm.shared_memory import SharedMemoryProvider


class Backend(Communicator, SharedMemoryProvider):
    """A communicator that also creates shared regions; what `create_communicator` returns.

    A new backend derives from it and defines the hooks that `Communicator` and `SharedMemoryProvider` list.
    """

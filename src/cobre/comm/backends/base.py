"""What every backend is: both contracts in one object."""

from cobre.comm.communicator import Communicator
from cobre.comm.shared_memory import SharedMemoryProvider


class Backend(Communicator, SharedMemoryProvider):
    """A communicator that also makes shared regions; what `create_communicator` returns."""

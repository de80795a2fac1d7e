"""The shm backend, under the name that the specification gives it."""

from cobre.comm.backends.shm.communicator import ShmCommunicator
from cobre.comm.config import ShmConfig

__all__ = ["ShmCommunicator", "ShmConfig"]

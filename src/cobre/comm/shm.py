"""The shm backend, under the name that the specification gives it."""

from cobre.comm.backends.shm import ShmCommunicator
from cobre.comm.config import ShmConfig

__all__ = ["ShmCommunicator", "ShmConfig"]

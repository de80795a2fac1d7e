"""The mpi backend, under the name that the specification gives it."""

from cobre.comm.backends.mpi.communicator import MpiCommunicator
from cobre.comm.config import MpiConfig

__all__ = ["MpiCommunicator", "MpiConfig"]

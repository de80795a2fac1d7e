"""The tcp backend, under the name that the specification gives it."""

from cobre.comm.backends.tcp.communicator import TcpCommunicator
from cobre.comm.config import TcpConfig

__all__ = ["TcpCommunicator", "TcpConfig"]

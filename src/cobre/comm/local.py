"""The local backend, under the name that the specification gives it."""

from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.config import LocalConfig

__all__ = ["LocalCommunicator", "LocalConfig"]

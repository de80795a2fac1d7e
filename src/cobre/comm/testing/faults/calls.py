"""Every kind of collective as a call without arguments, with a payload of a given size."""

import mmap
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.types import Array

PreparedCall: TypeAlias = Callable[[], object]


def prepare(operation: str, comm: Backend, nbytes: int, root: int, *, torn: bool = False) -> PreparedCall:
    """Make the buffers now, so that only the call itself is left.

    torn: reading this rank's data kills its process half-way.
    """
    data = torn_memory(nbytes) if torn else np.full(nbytes, comm.rank + 1, np.uint8)
    return OPERATIONS[operation](comm, data, root)


def torn_memory(nbytes: int) -> Array:
    """Memory whose second half cannot be read: its file ends before (SIGBUS)."""
    with tempfile.TemporaryFile() as file:
        file.truncate(nbytes)
        memory = mmap.mmap(file.fileno(), nbytes)
        file.truncate(nbytes // 2)
    return np.frombuffer(memory, np.uint8)


def _barrier(comm: Backend, _data: Array, _root: int) -> PreparedCall:
    return comm.barrier


def _allgatherv(comm: Backend, data: Array, _root: int) -> PreparedCall:
    recv = np.empty(data.size * comm.size, np.uint8)
    return partial(comm.allgatherv, data, recv, [data.size] * comm.size)


def _allreduce(comm: Backend, data: Array, _root: int) -> PreparedCall:
    return partial(comm.allreduce, data, np.empty_like(data))


def _broadcast(comm: Backend, data: Array, root: int) -> PreparedCall:
    return partial(comm.broadcast, data, root)


def _gather_into_region(comm: Backend, data: Array, _root: int) -> PreparedCall:
    region = comm.create_shared_region(data.size * comm.size, np.uint8)
    return partial(comm.allgatherv, data, region, [data.size] * comm.size)


def _fence(comm: Backend, _data: Array, _root: int) -> PreparedCall:
    return comm.create_shared_region(8, np.uint8).fence


def _create_shared_region(comm: Backend, data: Array, _root: int) -> PreparedCall:
    return lambda: comm.create_shared_region(data.size, np.uint8).close()


def _split_local(comm: Backend, _data: Array, _root: int) -> PreparedCall:
    return lambda: comm.split_local().close()


OPERATIONS: Mapping[str, Callable[[Backend, Array, int], PreparedCall]] = {
    "barrier": _barrier,
    "allgatherv": _allgatherv,
    "allreduce": _allreduce,
    "broadcast": _broadcast,
    "gather_into_region": _gather_into_region,
    "fence": _fence,
    "create_shared_region": _create_shared_region,
    "split_local": _split_local,
}

PUBLIC_NAMES: Mapping[str, str] = {name: name for name in OPERATIONS} | {"gather_into_region": "allgatherv"}
"""What errors call the operation."""

WITH_PAYLOAD = ("allgatherv", "allreduce", "broadcast", "gather_into_region")

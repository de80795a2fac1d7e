"""What a rank sees when a call fails, in a JSON-serialisable form."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from cobre.comm.communicator import Communicator
from cobre.comm.errors import CollectiveFailedError, CommError

COLLECTIVES: dict[str, Callable[[Any], object]] = {
    "allgatherv": lambda comm: comm.allgatherv(np.zeros(1), np.zeros(comm.size), [1] * comm.size),
    "allreduce": lambda comm: comm.allreduce(np.zeros(1), np.zeros(1)),
    "broadcast": lambda comm: comm.broadcast(np.zeros(1)),
    "barrier": lambda comm: comm.barrier(),
    "create_shared_region": lambda comm: comm.create_shared_region(1, np.int8).close(),
    "split_local": lambda comm: comm.split_local().close(),
}
"""The smallest call of each kind."""

MESSAGES = ("allgatherv", "allreduce", "broadcast", "barrier")
"""Those that every communicator has, whether it makes shared regions or not."""


def describe(error: BaseException) -> dict[str, Any]:
    """Type and text of an error, and the ranks, operation and sequence number that it names."""
    report: dict[str, Any] = {
        "error": type(error).__name__,
        "message": str(error),
        "ranks": [],
        "pids": [],
        "hosts": [],
    }
    if isinstance(error, CollectiveFailedError):
        report |= {
            "operation": error.operation,
            "sequence": error.sequence,
            "ranks": list(error.ranks),
            "pids": [peer.pid for peer in error.peers],
            "hosts": [peer.host for peer in error.peers],
        }
    return report


def attempt(call: Callable[[], object]) -> dict[str, Any]:
    """Make a call; the description of what it raised, with an empty "error" if it succeeded."""
    try:
        call()
    except (CommError, KeyboardInterrupt) as error:
        return describe(error)
    return {"error": "", "message": "", "ranks": [], "pids": [], "hosts": []}


def refusals(comm: Communicator, names: Iterable[str] = COLLECTIVES) -> dict[str, str]:
    """The error that each kind of call raises now."""
    return {name: attempt(partial(COLLECTIVES[name], comm))["error"] for name in names}


def causes(comm: Communicator) -> list[str]:
    """The error that a call raises now, and the chain of its causes."""
    try:
        comm.barrier()
    except CommError as error:
        return [type(link).__name__ for link in _chain(error)]
    return []


def _chain(error: BaseException) -> list[BaseException]:
    return [error, *(_chain(error.__cause__) if error.__cause__ is not None else [])]

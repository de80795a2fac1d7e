"""Who may call: one thread at a time, only in the process that owns the communicator, never a copy (clause 6)."""

import copy
import json
import os
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.errors import CommunicatorBusyError, InvalidRootError
from cobre.comm.testing.case import Params, Value, case
from cobre.comm.testing.inputs import fingerprint
from cobre.comm.testing.report import COLLECTIVES, refusals
from cobre.comm.testing.steps import Gather
from cobre.comm.types import ReduceOp

NEXT = Gather("after a wrong caller", "int32", "ragged", 5)
LIMIT_S = 20.0


def _expect_next(answer: Any) -> Any:
    def expect(_params: Params, size: int) -> Sequence[Value]:
        return [{"answer": answer, "next": fingerprint(NEXT.predict(size))}] * size

    return expect


@case("callers/second_thread", (6,), expect=_expect_next("refused as busy"))
def second_thread(comm: Backend, _params: Params) -> Value:
    """While one thread is in a collective a second one is refused, and the first is not disturbed."""
    answered = threading.Event()
    worker = threading.Thread(target=_stay_busy, args=(comm, answered))
    worker.start()
    answer = _probe(comm, worker)
    answered.set()
    worker.join()
    return {"answer": answer, "next": fingerprint(NEXT.perform(comm))}


def _stay_busy(comm: Backend, answered: threading.Event) -> None:
    """Gather repeatedly until all ranks have their answer; they must stop together."""
    send = np.zeros((1 << 20) // comm.size)  # on few cores many ranks need long for much data
    recv = np.zeros(send.size * comm.size)
    everybody = np.zeros(1, np.int8)
    while not everybody[0]:
        comm.allgatherv(send, recv, [send.size] * comm.size)
        comm.allreduce(np.array([answered.is_set()], np.int8), everybody, ReduceOp.MIN)


def _probe(comm: Backend, worker: threading.Thread) -> str:
    """Call until refused as busy. The root is bad, so that a call between two of the other thread's sends nothing."""
    deadline = time.monotonic() + LIMIT_S
    while worker.is_alive() and time.monotonic() < deadline:
        try:
            comm.broadcast(np.zeros(1), root=comm.size)
        except CommunicatorBusyError:
            return "refused as busy"
        except InvalidRootError:
            continue
    return "never refused as busy"


_FORKED = dict.fromkeys(COLLECTIVES, "ForkedCommunicatorError") | {"state": "forked"}


def _fork_skip_reason() -> str:
    """Return why forks cannot be tested under the address sanitizer; empty without it."""
    try:
        is_sanitized = "libasan" in Path("/proc/self/maps").read_text()
    except OSError:  # not on this platform
        return ""
    return (
        "the allocator of the address sanitizer has a lock that a fork may copy while another thread holds it: the "
        "child then waits for ever (3 of 377 forks of a program without Cobre)"
        if is_sanitized
        else ""
    )


@case("callers/forked_child", (6,), expect=_expect_next(_FORKED), skip_reason=_fork_skip_reason)
def forked_child(comm: Backend, _params: Params) -> Value:
    """Call in a forked child, which raises; its `close` and its exit do not affect the parent's world."""
    comm.barrier()
    answer = _in_forked_child(comm)
    return {"answer": answer, "next": fingerprint(NEXT.perform(comm))}


def _in_forked_child(comm: Backend) -> Any:
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is what this case is about
        child = os.fork()
    if child == 0:
        _answer_and_exit(comm, write_end)
    os.close(write_end)
    with os.fdopen(read_end) as answers:
        answer = answers.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else "the child died"


def _answer_and_exit(comm: Backend, write_end: int) -> None:
    try:
        answer = refusals(comm) | {"state": comm.state}
        comm.close()
        os.write(write_end, json.dumps(answer).encode())
    finally:
        os._exit(0)  # no cleanup that belongs to the owner


@case("callers/not_picklable", (6,), expect=_expect_next(["TypeError", "TypeError", "TypeError"]))
def not_picklable(comm: Backend, _params: Params) -> Value:
    """Copy and pickle a communicator, which is refused; the error says what to do instead."""
    ways = (lambda: copy.copy(comm), lambda: copy.deepcopy(comm), lambda: comm.__reduce_ex__(4))  # the last is pickle's
    return {"answer": [_kind(way) for way in ways], "next": fingerprint(NEXT.perform(comm))}


def _kind(way: Any) -> str:
    try:
        way()
    except TypeError as error:
        return "TypeError" if "create_communicator" in str(error) else f"no advice: {error}"
    return "copied"

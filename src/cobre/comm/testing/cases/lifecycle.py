"""From joining to closing: identity, labels, nodes, use after close, and who may call (clauses 3, 4 and 6)."""

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
from cobre.comm.testing.case import Depth, Params, Value, case
from cobre.comm.testing.cases.regions import ranks_of_node
from cobre.comm.testing.inputs import combinations, fingerprint
from cobre.comm.testing.report import COLLECTIVES, CORE_COLLECTIVES, refusals
from cobre.comm.testing.steps import Barrier, Broadcast, Gather, Reduce
from cobre.comm.types import ReduceOp


def _judge_identity(_params: Params, values: Sequence[Value]) -> str:
    size = len(values)
    wrong = [
        f"rank {rank}: {value}"
        for rank, value in enumerate(values)
        if (value["rank"], value["size"], value["state"]) != (rank, size, "open")
        or f"rank {rank} of {size}" not in value["repr"]
    ]
    if len({value["pid"] for value in values}) != size:
        wrong.append("two ranks are one process")
    return "\n".join(wrong)


@case("lifecycle/identity", (1,), judge=_judge_identity)
def identity(comm: Backend, _params: Params) -> Value:
    """Compare rank and size with those that the launcher assigned, one process each."""
    return {"rank": comm.rank, "size": comm.size, "state": comm.state, "repr": repr(comm), "pid": os.getpid()}


@case("lifecycle/labels", (3,))
def labels(comm: Backend, _params: Params) -> Value:
    """Pass labels of any length and characters to every call."""
    for label in ("", "gather the parts", "etapa número 12 ✓", "half a \ud800 character", "x" * 10_000):
        comm.barrier(label=label)
        comm.broadcast(np.zeros(1), label=label)
        comm.allreduce(np.zeros(1), np.zeros(1), label=label)
        comm.allgatherv(np.zeros(1), np.zeros(comm.size), [1] * comm.size, label=label)
        with comm.create_shared_region(1, np.int8, label=label) as region:
            region.fence(label=label)
    return True


def _expect_closed(_params: Params, size: int) -> Sequence[Value]:
    closed = dict.fromkeys(CORE_COLLECTIVES, "CommunicatorClosedError")
    return [{"refusals": closed, "state": "closed", "next": fingerprint(_next().predict(size))}] * size


def _next() -> Gather:
    return Gather("after a close", "int32", "ragged", 5)


@case("lifecycle/use_after_close", (3, 4), expect=_expect_closed)
def use_after_close(comm: Backend, _params: Params) -> Value:
    """Use a closed communicator: it raises, can be closed again, and does not affect others."""
    inner = comm.split_local()
    inner.barrier()
    inner.close()
    inner.close()
    return {
        "refusals": refusals(inner, CORE_COLLECTIVES),
        "state": inner.state,
        "next": fingerprint(_next().perform(comm)),
    }


@case("lifecycle/split_local", (1, 8))
def split_local(comm: Backend, _params: Params) -> Value:
    """Use the communicators of node and world side by side, in any order."""
    node = ranks_of_node(comm)
    with comm.split_local() as inner:
        total = np.empty(1, np.int64)
        is_correct = (inner.size, node[inner.rank]) == (len(node), comm.rank)
        for number in range(10):
            inner.allreduce(np.array([comm.rank + number]), total)
            is_correct = is_correct and int(total[0]) == sum(node) + number * len(node)
            comm.allreduce(np.array([1]), total)
            is_correct = is_correct and int(total[0]) == comm.size
    return is_correct


def _close_grid(_size: int, depth: Depth) -> Sequence[Params]:
    rounds = 3 if depth is Depth.QUICK else 20
    return combinations(last=("gather", "reduce", "broadcast", "barrier"), rounds=(rounds,))


@case("lifecycle/close_after_last_call", (4,), grid=_close_grid)
def close_after_last_call(comm: Backend, params: Params) -> Value:
    """Close right after the last call, which does not affect ranks that are still in that call."""
    for number in range(params["rounds"]):
        inner = comm.split_local()
        _last_step(params["last"], number).perform(inner)
        inner.close()
    return True


def _last_step(kind: str, number: int) -> Gather | Reduce | Broadcast | Barrier:
    steps: dict[str, Gather | Reduce | Broadcast | Barrier] = {
        "gather": Gather(f"last {number}", "int8", "ragged", 300_000),
        "reduce": Reduce(f"last {number}", "float32", "SUM", 100_000),
        "broadcast": Broadcast(f"last {number}", "int8", 300_000, root=number),
        "barrier": Barrier(),
    }
    return steps[kind]


# Callers: one thread at a time, only in the process that owns the communicator, never a copy (clause 6).

NEXT = Gather("after a wrong caller", "int32", "ragged", 5)
LIMIT_S = 20.0


def _expect_next(answer: Any) -> Any:
    def expect(_params: Params, size: int) -> Sequence[Value]:
        return [{"answer": answer, "next": fingerprint(NEXT.predict(size))}] * size

    return expect


@case("callers/second_thread", (6,), expect=_expect_next("refused as busy"))
def second_thread(comm: Backend, _params: Params) -> Value:
    """Call from a second thread while one is in a collective: it is refused, and the first is not disturbed."""
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
        "child then waits forever (3 of 377 forks of a program without Cobre)"
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
        warnings.simplefilter("ignore", DeprecationWarning)  # this case forks a process with threads
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
    """Copy and pickle a communicator; both raise an error that names the alternative."""
    copies = (
        lambda: copy.copy(comm),
        lambda: copy.deepcopy(comm),
        lambda: comm.__reduce_ex__(4),
    )  # the last is pickle's
    return {"answer": [_kind(make_copy) for make_copy in copies], "next": fingerprint(NEXT.perform(comm))}


def _kind(make_copy: Any) -> str:
    try:
        make_copy()
    except TypeError as error:
        return "TypeError" if "create_communicator" in str(error) else f"no advice: {error}"
    return "copied"

"""From joining to closing: rank and size, labels, communicators of nodes, use after close (clauses 3 and 4)."""

import os
from collections.abc import Sequence

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.testing.case import Depth, Params, Value, case
from cobre.comm.testing.cases.regions import ranks_of_node
from cobre.comm.testing.inputs import combinations, fingerprint
from cobre.comm.testing.report import MESSAGES, refusals
from cobre.comm.testing.steps import Barrier, Broadcast, Gather, Reduce


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
    """Rank and size are those that the launcher assigned, one process each."""
    return {"rank": comm.rank, "size": comm.size, "state": comm.state, "repr": repr(comm), "pid": os.getpid()}


@case("lifecycle/labels", (3,))
def labels(comm: Backend, _params: Params) -> Value:
    """Every call accepts a label of any length and characters."""
    for label in ("", "gather the parts", "etapa número 12 ✓", "half a \ud800 character", "x" * 10_000):
        comm.barrier(label=label)
        comm.broadcast(np.zeros(1), label=label)
        comm.allreduce(np.zeros(1), np.zeros(1), label=label)
        comm.allgatherv(np.zeros(1), np.zeros(comm.size), [1] * comm.size, label=label)
        with comm.create_shared_region(1, np.int8, label=label) as region:
            region.fence(label=label)
    return True


def _expect_closed(_params: Params, size: int) -> Sequence[Value]:
    closed = dict.fromkeys(MESSAGES, "CommunicatorClosedError")
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
    return {"refusals": refusals(inner, MESSAGES), "state": inner.state, "next": fingerprint(_next().perform(comm))}


@case("lifecycle/split_local", (1, 8))
def split_local(comm: Backend, _params: Params) -> Value:
    """Use the communicators of node and world side by side, in any order."""
    node = ranks_of_node(comm)
    with comm.split_local() as inner:
        total = np.empty(1, np.int64)
        right = (inner.size, node[inner.rank]) == (len(node), comm.rank)
        for number in range(10):
            inner.allreduce(np.array([comm.rank + number]), total)
            right = right and int(total[0]) == sum(node) + number * len(node)
            comm.allreduce(np.array([1]), total)
            right = right and int(total[0]) == comm.size
    return right


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

"""Failures: every rank raises, and a communicator that has failed stays broken (clauses 2, 4 and 5)."""

import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.testing import inputs
from cobre.comm.testing.case import Depth, Params, Value, case, needs_two_ranks
from cobre.comm.testing.inputs import MIB, combinations
from cobre.comm.testing.report import COLLECTIVES, attempt, causes, refusals
from cobre.comm.types import Array, ReduceOp

REASON = "no feasible solution in stage 12"
BROKEN = dict.fromkeys(COLLECTIVES, "CommunicatorBrokenError")


def _judge_abort(_params: Params, values: Sequence[Value]) -> str:
    wrong = [
        f"rank {rank} got {value}" for rank, value in enumerate(values) if rank and not _names_abort(value["first"])
    ]
    for rank, value in enumerate(values):
        causes = ["CommunicatorBrokenError", "CollectiveFailedError" if rank == 0 else "AbortedError"]
        if (value["later"], value["causes"][:2], value["states"]) != (BROKEN, causes, ["broken", "closed"]):
            wrong.append(f"rank {rank} afterwards: {value}")
    return "\n".join(wrong)


def _names_abort(first: Value) -> bool:
    return first["error"] == "AbortedError" and REASON in first["message"] and "rank 0" in first["message"]


@case("failures/abort", (4, 5), judge=_judge_abort, own_world=True)
def abort(comm: Backend, _params: Params) -> Value:
    """Abort: all ranks get the reason, and every later call raises with the first error as cause."""
    comm.barrier()
    if comm.rank == 0:
        comm.abort(REASON)
        first = {}
    else:
        first = attempt(comm.barrier)
    report = {"first": first, "later": refusals(comm), "causes": causes(comm)}
    broken = comm.state
    comm.close()
    return report | {"states": [broken, comm.state]}


def _judge_early_close(_params: Params, values: Sequence[Value]) -> str:
    closed_rank = len(values) - 1
    expected = {"error": "PeerLostError", "operation": "allreduce", "sequence": 2, "ranks": [closed_rank]}
    problems = []
    for rank, value in enumerate(values[:-1]):
        report = value["first"]
        if {key: report.get(key) for key in expected} != expected:
            problems.append(f"rank {rank}: expected {expected}, got {report}")
        elif report["pids"] != [values[closed_rank]["pid"]] or report["hosts"] != [values[closed_rank]["host"]]:
            problems.append(f"rank {rank} names {report['hosts']} {report['pids']}, not {values[closed_rank]}")
    return "\n".join(problems)


@case("failures/early_close", (1, 5), judge=_judge_early_close, grid=needs_two_ranks, own_world=True)
def early_close(comm: Backend, _params: Params) -> Value:
    """Close one rank too early: it is named, with its host, its pid and the call that needed it."""
    comm.barrier()
    report: dict[str, Value] = {"pid": os.getpid(), "host": socket.gethostname()}
    if comm.rank == comm.size - 1:
        comm.close()
    else:
        report["first"] = attempt(lambda: COLLECTIVES["allreduce"](comm))
    return report


# Calls that disagree: no data, and an error on every rank that names both sides (clause 2).

ODD_RANK = -1  # the last one makes the other call
TWO_SIDES = 2  # the odd rank, and any other


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Calls that disagree: most ranks' and one rank's. words: what the error message must contain."""

    usual: Callable[[Backend, Array], object]
    odd: Callable[[Backend, Array], object]
    words: tuple[str, ...]
    min_size: int = 2
    quick: bool = False


def _reduce(elements: int, dtype: str = "int64", op: ReduceOp = ReduceOp.SUM) -> Callable[[Backend, Array], object]:
    return lambda comm, recv: comm.allreduce(np.ones(elements, dtype), _viewed_as(recv, elements, dtype), op)


def _broadcast(elements: int, dtype: str = "int64", root: int = 0) -> Callable[[Backend, Array], object]:
    return lambda comm, recv: comm.broadcast(_viewed_as(recv, elements, dtype), root)


def _gather(counts: Callable[[int], list[int]], dtype: str = "int64") -> Callable[[Backend, Array], object]:
    def call(comm: Backend, recv: Array) -> None:
        count_list = counts(comm.size)
        comm.allgatherv(np.ones(count_list[comm.rank], dtype), _viewed_as(recv, sum(count_list), dtype), count_list)

    return call


def _viewed_as(recv: Array, elements: int, dtype: str) -> Array:
    return recv[: elements * np.dtype(dtype).itemsize].view(dtype)


def _barrier(comm: Backend, _recv: Array) -> None:
    comm.barrier()


def _region(elements: int, dtype: str) -> Callable[[Backend, Array], object]:
    return lambda comm, _recv: comm.create_shared_region(elements, dtype)


def _two(size: int) -> list[int]:
    return [2] * size


DISAGREEMENTS: Mapping[str, Disagreement] = {
    "operation": Disagreement(_barrier, _reduce(3), ("barrier", "allreduce"), quick=True),
    "operation with payload": Disagreement(_gather(_two), _broadcast(4), ("allgatherv", "broadcast")),
    "operation with large payload": Disagreement(_reduce(MIB // 8), _broadcast(MIB // 8), ("allreduce", "broadcast")),
    "operation on a region": Disagreement(_region(3, "int64"), _barrier, ("create_shared_region", "barrier")),
    "dtype of a reduction": Disagreement(_reduce(3), _reduce(3, "float64"), ("int64", "float64"), quick=True),
    "dtype of a gather": Disagreement(_gather(_two), _gather(_two, "float64"), ("int64", "float64")),
    "dtype of a broadcast": Disagreement(_broadcast(3), _broadcast(3, "float64"), ("int64", "float64")),
    "dtype of a region": Disagreement(_region(3, "int64"), _region(3, "float64"), ("create_shared_region",)),
    "counts": Disagreement(
        _gather(_two), _gather(lambda size: [*_two(size - 1), 3]), ("allgatherv", "counts"), quick=True
    ),
    "counts of others": Disagreement(
        _gather(_two), _gather(lambda size: [1, 3, *_two(size - 2)]), ("allgatherv", "counts"), min_size=3
    ),
    "length of a reduction": Disagreement(_reduce(3), _reduce(4), ("allreduce", "3", "4")),
    "length of a large reduction": Disagreement(_reduce(MIB // 8), _reduce(MIB // 8 + 1), ("allreduce",)),
    "length of a broadcast": Disagreement(_broadcast(3), _broadcast(4), ("broadcast", "3", "4")),
    "root": Disagreement(_broadcast(3), _broadcast(3, root=1), ("root 0", "root 1"), quick=True),
    "reduction": Disagreement(_reduce(3), _reduce(3, op=ReduceOp.MAX), ("SUM", "MAX"), quick=True),
    "size of a region": Disagreement(_region(3, "int64"), _region(4, "int64"), ("create_shared_region",)),
}


def _grid(size: int, depth: Depth) -> Sequence[Params]:
    possible = [name for name, disagreement in DISAGREEMENTS.items() if size >= disagreement.min_size]
    if depth is Depth.FULL:
        return combinations(about=possible)
    # Each costs a world: with two ranks every kind of disagreement, with more only one.
    quick = [name for name in possible if DISAGREEMENTS[name].quick]
    return combinations(about=quick if size == 2 else quick[:1])


def _judge(params: Params, values: Sequence[Value]) -> str:
    words = (f"rank {len(values) - 1}: ", *DISAGREEMENTS[params["about"]].words)
    problems = [f"rank {rank}: {problem}" for rank, value in enumerate(values) for problem in _problems(value, words)]
    return "\n".join(problems)


def _problems(value: Value, words: Sequence[str]) -> list[str]:
    report = value["first"]
    if report["error"] != "MismatchedCallError":
        return [f"expected MismatchedCallError, got {report}"]
    problems = [
        f"the message does not say '{word}': {report['message']}" for word in words if word not in report["message"]
    ]
    if len(set(re.findall(r"rank \d+: ", report["message"]))) != TWO_SIDES:
        problems.append(f"the message does not name a rank on each side: {report['message']}")
    if report["sequence"] != 2:
        problems.append(f"expected call #2, got #{report['sequence']}")
    if not value["untouched"]:
        problems.append("data was delivered")
    if value["causes"][:2] != ["CommunicatorBrokenError", "MismatchedCallError"]:
        problems.append(f"afterwards: {value['causes']}")
    return problems


@case("mismatch/calls", (1, 2, 4), judge=_judge, grid=_grid, own_world=True)
def calls(comm: Backend, params: Params) -> Value:
    """Make a different call on one rank than on the others."""
    comm.barrier()
    disagreement = DISAGREEMENTS[params["about"]]
    call = disagreement.odd if comm.rank == comm.size + ODD_RANK else disagreement.usual
    recv = inputs.sentinel("uint8", 2 * MIB)
    first = attempt(lambda: call(comm, recv))
    return {"first": first, "untouched": bool((recv == inputs.SENTINEL).all()), "causes": causes(comm)}

"""After a failure: everybody learns of it, and the communicator stays broken (clauses 4 and 5)."""

import os
import socket
from collections.abc import Sequence

from cobre.comm.backends.base import Backend
from cobre.comm.testing.case import Params, Value, case, needs_two_ranks
from cobre.comm.testing.report import COLLECTIVES, attempt, causes, refusals

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
    """`abort` reaches all ranks with its reason; every later call raises with the first error as cause."""
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
    gone = len(values) - 1
    wanted = {"error": "PeerLostError", "operation": "allreduce", "sequence": 2, "ranks": [gone]}
    problems = []
    for rank, value in enumerate(values[:-1]):
        seen = value["first"]
        if {key: seen.get(key) for key in wanted} != wanted:
            problems.append(f"rank {rank}: expected {wanted}, got {seen}")
        elif seen["pids"] != [values[gone]["pid"]] or seen["hosts"] != [values[gone]["host"]]:
            problems.append(f"rank {rank} names {seen['hosts']} {seen['pids']}, not {values[gone]}")
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

"""Failures to join: missing ranks, duplicate ranks, ranks that disagree on the size."""

import time
from collections.abc import Sequence

from cobre.comm.testing.case import Depth, Params, needs_two_ranks
from cobre.comm.testing.faults.checks import check_closed, check_refused
from cobre.comm.testing.faults.plan import fault
from cobre.comm.testing.faults.ranks import PlanError, PlanProcess, Ranks
from cobre.comm.testing.inputs import combinations
from cobre.comm.testing.programs import expected_digest

CONNECT_S = 2.0
SEED, LENGTH = 3, 10
PROGRAM = {"action": "run_random_program", "seed": SEED, "length": LENGTH}
ON_REQUEST = {**PROGRAM, "joins_on_request": True}


def _missing_grid(size: int, _depth: Depth) -> Sequence[Params]:
    return combinations(missing=(0, size - 1)) if size > 1 else ()


@fault("never_arrives", (5,), grid=_missing_grid)
def never_arrives(ranks: Ranks, params: Params) -> Sequence[str]:
    """Start all ranks but one: all others name it after the connect timeout."""
    size, missing = ranks.setting.size, params["missing"]
    processes = [ranks.start(rank, ON_REQUEST, connect_timeout_s=CONNECT_S) for rank in range(size) if rank != missing]
    _let_join(processes)
    words = (f"rank {missing}",)
    return [line for process in processes for line in check_refused(process, "InitializationFailedError", words)]


def _let_join(processes: Sequence[PlanProcess]) -> None:
    """Let all join at once: on a busy machine their start times may differ by more than the connect timeout."""
    for process in processes:
        process.wait_for("started")
    for process in processes:
        process.send_command("join")


@fault("duplicate_rank", (5,), grid=needs_two_ranks)
def duplicate_rank(ranks: Ranks, _params: Params) -> Sequence[str]:
    """Of two processes with one rank the second is refused, naming the first; the world is not disturbed."""
    size = ranks.setting.size + 1
    twins = [ranks.start(1, PROGRAM, size=size), ranks.start(1, PROGRAM, size=size)]
    others = [ranks.start(rank, PROGRAM, size=size) for rank in range(size - 1) if rank != 1]
    refused = _first_refused(ranks, twins)
    others.append(ranks.start(size - 1, PROGRAM, size=size))  # only now the world can be complete
    accepted = twins[0] if refused is twins[1] else twins[1]
    problems = check_refused(refused, "InitializationFailedError", ("rank 1", str(accepted.pid), str(refused.pid)))
    for process in (*others, accepted):
        problems += right_bits(process, size) + check_closed(process)
    return problems


def _first_refused(ranks: Ranks, twins: Sequence[PlanProcess]) -> PlanProcess:
    while time.monotonic() < ranks.deadline:
        for twin in twins:
            if twin.has_ended():
                return twin
        time.sleep(0.005)
    raise PlanError("neither of two processes with one rank was refused")


def right_bits(process: PlanProcess, size: int) -> list[str]:
    """Check that the rank ran `PROGRAM` and got what every rank must get."""
    right = process.wait_for("value")["value"] == expected_digest(size, SEED, LENGTH)
    return [] if right else [f"rank {process.rank} has other bits"]


@fault("wrong_size", (5,), grid=needs_two_ranks)
def wrong_size(ranks: Ranks, _params: Params) -> Sequence[str]:
    """Start a rank with another size: it is refused, the error names both sizes, and no rank hangs."""
    size = ranks.setting.size
    processes = [ranks.start(rank, ON_REQUEST, connect_timeout_s=CONNECT_S) for rank in range(size - 1)]
    odd = ranks.start(size - 1, ON_REQUEST, size=size + 1, connect_timeout_s=CONNECT_S)
    _let_join([*processes, odd])
    problems = check_refused(odd, "InitializationFailedError", (str(size), str(size + 1)))
    for process in processes:
        problems += check_refused(process, "InitializationFailedError", (f"rank {size - 1}",))
    return problems

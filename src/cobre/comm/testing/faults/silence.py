"""Ranks that exist but do not arrive: stopped, computing, or late (clause 5)."""

import signal
import time
from collections.abc import Sequence

from cobre.comm.testing.case import Depth, Params
from cobre.comm.testing.faults.calls import PUBLIC_NAMES
from cobre.comm.testing.faults.checks import check_closed, check_completed, check_failure
from cobre.comm.testing.faults.plan import fault
from cobre.comm.testing.faults.ranks import PlanProcess, Ranks
from cobre.comm.testing.inputs import MIB, combinations
from cobre.comm.testing.programs import expected_digest

TIMEOUT_S = 1.0
SLACK_S = 3.0
STOPS = 5


def _grid(size: int, depth: Depth) -> Sequence[Params]:
    operations = (
        ("allreduce",) if depth is Depth.QUICK else ("barrier", "allgatherv", "allreduce", "broadcast", "fence")
    )
    victims = (size - 1,) if depth is Depth.QUICK else tuple({0, size - 1})
    return combinations(operation=operations, victim=victims) if size > 1 else ()


@fault("stop", (5,), grid=_grid)
def stop(ranks: Ranks, params: Params) -> Sequence[str]:
    """Stop a rank: it is named as lost after the timeout; when it continues, its call fails too."""
    processes = ranks.start_all(_wait_task(params), timeout_s=TIMEOUT_S)
    victim = processes[params["victim"]]
    victim.wait_for("ready")
    stopped = time.monotonic()
    victim.send_signal(signal.SIGSTOP)
    others = [process for process in processes if process is not victim]
    problems = [
        problem
        for process in others
        for problem in (
            *_check_timeout(process, victim, params),
            *_check_duration(process, stopped),
            *check_closed(process),
        )
    ]
    victim.send_signal(signal.SIGCONT)
    victim.send_command("go")
    if not victim.wait_for("saw")["error"]:
        problems.append("the call of the stopped rank succeeded")
    return problems + check_closed(victim)


def _check_timeout(process: PlanProcess, victim: PlanProcess, params: Params) -> list[str]:
    return check_failure(process, "PeerTimeoutError", victim, (PUBLIC_NAMES[params["operation"]],))


def _check_duration(process: PlanProcess, since: float) -> list[str]:
    """Not before the timeout, and not long after it."""
    begin = max(since, process.wait_for("calling")["time"])
    seconds = process.wait_for("saw")["at"] - begin
    early, late = TIMEOUT_S / 2, TIMEOUT_S + SLACK_S
    if process.wait_for("saw")["at"] - since < early or seconds > late:
        return [f"rank {process.rank} gave up after {seconds:.2f} s; the timeout is {TIMEOUT_S} s"]
    return []


def _wait_task(params: Params) -> dict[str, object]:
    return {"action": "let_wait", "nbytes": 4096, **params}


def _needs_two_ranks(size: int, _depth: Depth) -> Sequence[Params]:
    return ({"victim": size - 1},) if size > 1 else ()


@fault("stop_and_continue", (5, 8), grid=_needs_two_ranks)
def stop_and_continue(ranks: Ranks, params: Params) -> Sequence[str]:
    """Stop a rank for less than the timeout: that costs time, not bits."""
    seed, length = 7, 100
    processes = ranks.start_all({"action": "run_random_program", "seed": seed, "length": length})
    victim = processes[params["victim"]]
    victim.wait_for("joined")
    for _ in range(STOPS):
        victim.send_signal(signal.SIGSTOP)
        for process in processes:
            process.wait_until_asleep()  # the others have got as far as they can without the victim
        victim.send_signal(signal.SIGCONT)
    expected = expected_digest(ranks.setting.size, seed, length)
    wrong = [process.rank for process in processes if process.wait_for("value")["value"] != expected]
    problems = [f"ranks {wrong} have other bits"] if wrong else []
    return problems + [problem for process in processes for problem in check_closed(process)]


@fault("compute_long", (5,), grid=_needs_two_ranks)
def compute_long(ranks: Ranks, params: Params) -> Sequence[str]:
    """Let a rank compute for several timeouts: it is waited for."""
    task = {"action": "compute_long", "operation": "allgatherv", "nbytes": MIB, "seconds": 3 * TIMEOUT_S, **params}
    processes = ranks.start_all(task, timeout_s=TIMEOUT_S)
    return [problem for process in processes for problem in check_completed(process)]


@fault("operation_limit", (5,), grid=_needs_two_ranks)
def operation_limit(ranks: Ranks, params: Params) -> Sequence[str]:
    """With a hard limit per operation, not even a rank that is alive is waited for longer."""
    task = _wait_task({"operation": "barrier", **params})
    processes = ranks.start_all(task, operation_timeout_s=TIMEOUT_S)
    victim = processes[params["victim"]]
    victim.wait_for("ready")
    problems = [
        problem
        for process in processes
        if process is not victim
        for problem in (
            *check_failure(process, "PeerTimeoutError", victim, ("barrier",), ("limit",)),
            *_check_duration(process, process.wait_for("calling")["time"]),
        )
    ]
    victim.send_command("go")
    if not victim.wait_for("saw")["error"]:
        problems.append("the call of the late rank succeeded, although the others had failed")
    return problems + [problem for process in processes for problem in check_closed(process)]

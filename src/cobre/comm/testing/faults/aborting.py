"""Ranks that abort or misbehave: exceptions, Ctrl-C, early close, mismatched calls (clauses 2, 4, 5 and 6)."""

import signal
import time
from collections.abc import Sequence

from cobre.comm.cores import usable_cores
from cobre.comm.testing.case import Depth, Params, find_case
from cobre.comm.testing.faults.checks import check_closed, check_in_time, check_message
from cobre.comm.testing.faults.plan import fault
from cobre.comm.testing.faults.ranks import Ranks
from cobre.comm.testing.inputs import combinations
from cobre.comm.testing.programs import expected_digest

REASON = "no convergence in step 87"
INTERRUPT_BOUND_S = 1.0  # the contract says 200 ms; on a busy machine the process may be scheduled later


def _one_victim(size: int, depth: Depth) -> Sequence[Params]:
    victims = (size - 1,) if depth is Depth.QUICK else tuple({0, size - 1})
    return combinations(victim=victims) if size > 1 else ()


@fault("raise", (4, 5), grid=_one_victim)
def raise_inside(ranks: Ranks, params: Params) -> Sequence[str]:
    """Raise on one rank: the exception reaches the others with its type and text."""
    task = {"action": "raise_inside", "operation": "allreduce", "nbytes": 1000, "reason": REASON, **params}
    processes = ranks.start_all(task)
    victim = processes[params["victim"]]
    raised = victim.wait_for("raised")["time"]
    words = (f"rank {victim.rank}", str(victim.pid), "ArithmeticError", REASON)
    problems = []
    for process in processes:
        if process is not victim:
            problems += check_message(process, "AbortedError", words) + check_in_time(process, raised)
        problems += check_closed(process)
    return problems


@fault("interrupt", (6,), grid=_one_victim)
def interrupt(ranks: Ranks, params: Params) -> Sequence[str]:
    """Ctrl-C interrupts a waiting rank, and aborts the others."""
    size = ranks.setting.size
    late = 0 if params["victim"] else size - 1
    processes = ranks.start_all({"action": "let_wait", "operation": "allreduce", "nbytes": 1000, "victim": late})
    processes[late].wait_for("ready")
    waiting = processes[params["victim"]]
    waiting.wait_for("calling")
    waiting.wait_until_asleep()
    sent = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    problems = check_message(waiting, "KeyboardInterrupt", ()) + check_in_time(waiting, sent, INTERRUPT_BOUND_S)
    processes[late].send_command("go")
    for process in processes:
        if process is not waiting:
            problems += check_message(process, "AbortedError", (f"rank {waiting.rank}", "KeyboardInterrupt"))
        problems += check_closed(process)
    return problems


def _case_grid(size: int, depth: Depth) -> Sequence[Params]:
    """Every case that breaks its world; only one in quick runs, because the conformance suite covers them."""
    cases = ("failures/abort", "failures/early_close", "mismatch/calls")
    if depth is Depth.QUICK:
        return ({"case": "mismatch/calls", "about": "operation"},) if size > 1 else ()
    return [{"case": case, **params} for case in cases for params in find_case(case).grid(size, depth)]


@fault("case", (2, 4, 5), grid=_case_grid)
def break_world(ranks: Ranks, params: Params) -> Sequence[str]:
    """Abort, early close and disagreeing calls, with processes that were started one by one."""
    arguments = {name: value for name, value in params.items() if name != "case"}
    processes = ranks.start_all({"action": "run_case", "case": params["case"], "params": arguments})
    values = [process.wait_for("value")["value"] for process in processes]
    problem = find_case(params["case"]).judge(arguments, values)
    return ([problem] if problem else []) + [line for process in processes for line in check_closed(process)]


def _crowd_grid(size: int, _depth: Depth) -> Sequence[Params]:
    """Once, whatever the sizes asked for."""
    return ({"per_core": 4},) if size == 2 else ()


@fault("crowd", (7, 8), grid=_crowd_grid)
def crowd(ranks: Ranks, params: Params) -> Sequence[str]:
    """Many more ranks than cores: slower, the same bits."""
    seed, length = 11, 60
    size = params["per_core"] * usable_cores()
    task = {"action": "run_random_program", "seed": seed, "length": length}
    processes = [ranks.start(rank, task, size=size) for rank in range(size)]
    expected = expected_digest(size, seed, length)
    wrong = [process.rank for process in processes if process.wait_for("value")["value"] != expected]
    problems = [f"ranks {wrong} have other bits"] if wrong else []
    return problems + [line for process in processes for line in check_closed(process)]

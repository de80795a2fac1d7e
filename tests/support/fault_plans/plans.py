"""The plans for every backend: ranks that die, are silent, abort or misbehave, or cannot join."""

import signal
import time
from collections.abc import Sequence

from cobre.comm.cores import usable_cores
from cobre.comm.testing.case import Depth, Params, find_case, needs_two_ranks
from cobre.comm.testing.inputs import MIB, combinations
from cobre.comm.testing.steps import expected_digest
from fault_plans.plan import (
    PlanError,
    PlanProcess,
    Ranks,
    check_closed,
    check_completed,
    check_failure,
    check_in_time,
    check_message,
    check_refused,
    fault,
)
from fault_plans.rank_program import OPERATIONS, PUBLIC_NAMES, WITH_PAYLOAD

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
    """Start two processes with one rank: the second is refused, naming the first, and the world is not disturbed."""
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
    """Check that the rank ran `PROGRAM` with the correct results."""
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


# Ranks that die: all others raise within the bound, and name the rank, its host and the call (clause 5).


SMALL = 1000
LARGE = 6 * MIB
NEXT_CALLS = {"after": ("barrier",), "waiting": ("barrier",)}
"""Moments in which the data may be complete: then the call after it fails."""


def _kill_grid(size: int, depth: Depth) -> Sequence[Params]:
    if size < 2:
        return ()
    if depth is Depth.QUICK:
        return _quick_grid(size)
    victims = tuple({0, size - 1})
    small = combinations(
        operation=tuple(OPERATIONS), moment=("before", "waiting", "after"), nbytes=(SMALL,), victim=victims
    )
    large = combinations(operation=WITH_PAYLOAD, moment=("waiting", "moving", "torn"), nbytes=(LARGE,), victim=victims)
    others = ("barrier", "fence", "create_shared_region", "split_local")
    return small + large + combinations(operation=others, moment=("moving",), nbytes=(SMALL,), victim=victims)


def _quick_grid(size: int) -> Sequence[Params]:
    return [
        *combinations(operation=("barrier",), moment=("before",), nbytes=(0,), victim=(0,)),
        *combinations(operation=("allreduce",), moment=("waiting",), nbytes=(SMALL,), victim=(size - 1,)),
        *combinations(operation=("allgatherv",), moment=("moving",), nbytes=(LARGE,), victim=(size - 1,)),
        *combinations(operation=("allgatherv",), moment=("torn",), nbytes=(LARGE,), victim=(0,)),
        *combinations(operation=("broadcast",), moment=("after",), nbytes=(SMALL,), victim=(0,)),
    ]


@fault("kill", (4, 5), grid=_kill_grid)
def kill(ranks: Ranks, params: Params) -> Sequence[str]:
    """Kill one rank before, in or after a collective."""
    task = {"action": "lose_a_rank", **params, "root": params["victim"] if params["moment"] == "torn" else 0}
    processes = ranks.start_all(task)
    victim = processes[params["victim"]]
    died = _death(victim, processes, params["moment"])
    operations = (PUBLIC_NAMES[params["operation"]], *NEXT_CALLS.get(params["moment"], ()))
    return [
        problem
        for survivor in processes
        if survivor is not victim
        for problem in (
            *check_failure(survivor, "PeerLostError", victim, operations),
            *check_in_time(survivor, died),
            *check_closed(survivor),
        )
    ]


def _death(victim: PlanProcess, processes: Sequence[PlanProcess], moment: str) -> float:
    """Return the time of death; in the moment "waiting", kill the victim."""
    if moment == "torn":
        # It says "dying" before the call and dies in the middle of it: on a busy machine that may be seconds later.
        victim.wait_for_end()
        return time.monotonic()
    if moment != "waiting":
        return float(victim.wait_for("dying")["time"])
    victim.wait_for("inside")
    victim.wait_until_asleep()
    died = time.monotonic()
    victim.send_signal(signal.SIGKILL)
    victim.wait_for_end()
    for process in processes:
        if process is not victim:
            process.send_command("go")
    return died


@fault("kill_all", (5,), grid=needs_two_ranks)
def kill_all(ranks: Ranks, _params: Params) -> Sequence[str]:
    """Kill all ranks at once; what matters is the leak check afterwards."""
    task = {"action": "let_wait", "operation": "allreduce", "nbytes": SMALL, "victim": 0}
    processes = ranks.start_all(task)
    for process in processes:
        process.wait_for("ready" if process.rank == 0 else "calling")
    for process in processes:
        process.send_signal(signal.SIGKILL)
    codes = {process.wait_for_end() for process in processes}
    return [] if codes == {-signal.SIGKILL} else [f"exit codes {codes}"]


@fault("exit_without_close", (4,), grid=needs_two_ranks)
def exit_without_close(ranks: Ranks, _params: Params) -> Sequence[str]:
    """Let processes exit without `close`: their exit code is 0, and nothing is left behind."""
    processes = ranks.start_all({"action": "exit_without_closing"})
    codes = [process.wait_for_end() for process in processes]
    return [] if set(codes) == {0} else [f"exit codes {codes}"]


# Ranks that exist but do not arrive: stopped, computing, or late (clause 5).


TIMEOUT_S = 1.0
SLACK_S = 3.0
STOPS = 5


def _stop_grid(size: int, depth: Depth) -> Sequence[Params]:
    operations = (
        ("allreduce",) if depth is Depth.QUICK else ("barrier", "allgatherv", "allreduce", "broadcast", "fence")
    )
    victims = (size - 1,) if depth is Depth.QUICK else tuple({0, size - 1})
    return combinations(operation=operations, victim=victims) if size > 1 else ()


@fault("stop", (5,), grid=_stop_grid)
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
    """Check that the rank gave up not before the timeout, and not long after it."""
    begin = max(since, process.wait_for("calling")["time"])
    seconds = process.wait_for("saw")["at"] - begin
    early, late = TIMEOUT_S / 2, TIMEOUT_S + SLACK_S
    if process.wait_for("saw")["at"] - since < early or seconds > late:
        return [f"rank {process.rank} gave up after {seconds:.2f} s; the timeout is {TIMEOUT_S} s"]
    return []


def _wait_task(params: Params) -> dict[str, object]:
    return {"action": "let_wait", "nbytes": 4096, **params}


def _last_rank(size: int, _depth: Depth) -> Sequence[Params]:
    return ({"victim": size - 1},) if size > 1 else ()


@fault("stop_and_continue", (5, 8), grid=_last_rank)
def stop_and_continue(ranks: Ranks, params: Params) -> Sequence[str]:
    """Stop a rank for less than the timeout: that costs time, not bits."""
    seed, length = 7, 100
    processes = ranks.start_all({"action": "run_random_program", "seed": seed, "length": length})
    victim = processes[params["victim"]]
    victim.wait_for("joined")
    for _ in range(STOPS):
        victim.send_signal(signal.SIGSTOP)
        for process in processes:
            process.wait_until_asleep()  # the others have advanced as far as possible without the victim
        victim.send_signal(signal.SIGCONT)
    expected = expected_digest(ranks.setting.size, seed, length)
    wrong = [process.rank for process in processes if process.wait_for("value")["value"] != expected]
    problems = [f"ranks {wrong} have other bits"] if wrong else []
    return problems + [problem for process in processes for problem in check_closed(process)]


@fault("compute_long", (5,), grid=_last_rank)
def compute_long(ranks: Ranks, params: Params) -> Sequence[str]:
    """Let a rank compute for several timeouts: it is waited for."""
    task = {"action": "compute_long", "operation": "allgatherv", "nbytes": MIB, "seconds": 3 * TIMEOUT_S, **params}
    processes = ranks.start_all(task, timeout_s=TIMEOUT_S)
    return [problem for process in processes for problem in check_completed(process)]


@fault("operation_limit", (5,), grid=_last_rank)
def operation_limit(ranks: Ranks, params: Params) -> Sequence[str]:
    """Set a hard limit per operation: not even a rank that is alive is waited for longer."""
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


# Ranks that abort or misbehave: exceptions, Ctrl-C, early close, mismatched calls (clauses 2, 4, 5 and 6).


REASON = "no convergence in step 87"
INTERRUPT_BOUND_S = 1.0  # the contract allows 200 ms; on a busy machine the process may be scheduled later


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
    """Interrupt a waiting rank by Ctrl-C, which aborts the others."""
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
    """Return every case that breaks its world; only one in quick runs, because the conformance suite covers them."""
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
    """Return one cell, whatever the requested sizes."""
    return ({"per_core": 4},) if size == 2 else ()


@fault("crowd", (7, 8), grid=_crowd_grid)
def crowd(ranks: Ranks, params: Params) -> Sequence[str]:
    """Start many more ranks than cores: slower, the same bits."""
    seed, length = 11, 60
    size = params["per_core"] * usable_cores()
    task = {"action": "run_random_program", "seed": seed, "length": length}
    processes = [ranks.start(rank, task, size=size) for rank in range(size)]
    expected = expected_digest(size, seed, length)
    wrong = [process.rank for process in processes if process.wait_for("value")["value"] != expected]
    problems = [f"ranks {wrong} have other bits"] if wrong else []
    return problems + [line for process in processes for line in check_closed(process)]

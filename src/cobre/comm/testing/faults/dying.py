"""Ranks that die: all others raise within the bound, and name the rank, its host and the call (clause 5)."""

import signal
import time
from collections.abc import Sequence

from cobre.comm.testing.case import Depth, Params, needs_two_ranks
from cobre.comm.testing.faults.calls import OPERATIONS, PUBLIC_NAMES, WITH_PAYLOAD
from cobre.comm.testing.faults.checks import check_closed, check_failure, check_in_time
from cobre.comm.testing.faults.plan import fault
from cobre.comm.testing.faults.ranks import PlanProcess, Ranks
from cobre.comm.testing.inputs import MIB, combinations

SMALL = 1000
LARGE = 6 * MIB
NEXT_CALLS = {"after": ("barrier",), "waiting": ("barrier",)}
"""Moments in which the data may be complete: then the call after it fails."""


def _grid(size: int, depth: Depth) -> Sequence[Params]:
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


@fault("kill", (4, 5), grid=_grid)
def kill(ranks: Ranks, params: Params) -> Sequence[str]:
    """One rank dies before, in or after a collective."""
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
    """All ranks die at once; what matters is the leak check afterwards."""
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

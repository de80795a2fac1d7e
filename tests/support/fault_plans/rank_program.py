"""One rank of a fault plan: `python -m fault_plans.rank_program TASK`.

It joins the world that its environment describes, does what the task (JSON) says, and reports on standard output, one
JSON object per line. Commands from the parent arrive on standard input.
"""

import json
import mmap
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from cobre._native import die_with_parent
from cobre.comm.backends.base import Backend
from cobre.comm.errors import BackendError, CommError
from cobre.comm.factory import create_communicator
from cobre.comm.testing.case import find_case
from cobre.comm.testing.report import attempt, describe, refusals
from cobre.comm.testing.steps import run_program
from cobre.comm.types import Array


def report_event(event: str, **fields: object) -> None:
    """Report an event to the parent, with the time; flushed before anything else happens."""
    sys.stdout.write(json.dumps({"event": event, "time": time.monotonic(), **fields}) + "\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Script:
    """The communicator and the task that came from the parent."""

    comm: Backend
    task: Mapping[str, Any]

    @property
    def is_victim(self) -> bool:
        """Whether the fault is injected into this rank."""
        return bool(self.comm.rank == self.task["victim"])

    @property
    def is_holdout(self) -> bool:
        """Whether this rank makes the others wait: the last one that is not the victim."""
        last = self.comm.size - 1
        return self.comm.rank == (last if last != self.task["victim"] else last - 1)

    def wait_for_command(self, word: str) -> None:
        """Wait for a command of the parent; exit at end of input, when the parent is gone."""
        for line in sys.stdin:
            if line.strip() == word:
                return
        raise SystemExit(f"end of input while waiting for {word!r}")

    def expect_failure(self, call: Callable[[], object]) -> None:
        """Make a call that should fail, and report everything that a survivor can see."""
        report_event("calling", sequence=self.comm.sequence + 1)
        seen = attempt(call)
        when = time.monotonic()
        sequence = self.comm.sequence
        state = self.comm.state
        later = sorted(set(refusals(self.comm).values())) if seen["error"] else []
        report_event("saw", **seen, at=when, own_sequence=sequence, state=state, later=later)


# Every kind of collective as a call without arguments, with a payload of a given size.


PreparedCall: TypeAlias = Callable[[], object]


def prepare(operation: str, comm: Backend, nbytes: int, root: int, *, torn: bool = False) -> PreparedCall:
    """Allocate the buffers in advance, so that only the call itself remains.

    torn: reading this rank's data kills its process half-way.
    """
    data = torn_memory(nbytes) if torn else np.full(nbytes, comm.rank + 1, np.uint8)
    return OPERATIONS[operation](comm, data, root)


def torn_memory(nbytes: int) -> Array:
    """Map memory whose second half cannot be read: its file ends before (SIGBUS)."""
    with tempfile.TemporaryFile() as file:
        file.truncate(nbytes)
        memory = mmap.mmap(file.fileno(), nbytes)
        file.truncate(nbytes // 2)
    return np.frombuffer(memory, np.uint8)


def _barrier(comm: Backend, _data: Array, _root: int) -> PreparedCall:
    return comm.barrier


def _allgatherv(comm: Backend, data: Array, _root: int) -> PreparedCall:
    recv = np.empty(data.size * comm.size, np.uint8)
    return partial(comm.allgatherv, data, recv, [data.size] * comm.size)


def _allreduce(comm: Backend, data: Array, _root: int) -> PreparedCall:
    return partial(comm.allreduce, data, np.empty_like(data))


def _broadcast(comm: Backend, data: Array, root: int) -> PreparedCall:
    return partial(comm.broadcast, data, root)


def _gather_into_region(comm: Backend, data: Array, _root: int) -> PreparedCall:
    region = comm.create_shared_region(data.size * comm.size, np.uint8)
    return partial(comm.allgatherv, data, region, [data.size] * comm.size)


def _fence(comm: Backend, _data: Array, _root: int) -> PreparedCall:
    return comm.create_shared_region(8, np.uint8).fence


def _create_shared_region(comm: Backend, data: Array, _root: int) -> PreparedCall:
    return lambda: comm.create_shared_region(data.size, np.uint8).close()


def _split_local(comm: Backend, _data: Array, _root: int) -> PreparedCall:
    return lambda: comm.split_local().close()


OPERATIONS: Mapping[str, Callable[[Backend, Array, int], PreparedCall]] = {
    "barrier": _barrier,
    "allgatherv": _allgatherv,
    "allreduce": _allreduce,
    "broadcast": _broadcast,
    "gather_into_region": _gather_into_region,
    "fence": _fence,
    "create_shared_region": _create_shared_region,
    "split_local": _split_local,
}

PUBLIC_NAMES: Mapping[str, str] = {name: name for name in OPERATIONS} | {"gather_into_region": "allgatherv"}
"""What errors call the operation."""

WITH_PAYLOAD = ("allgatherv", "allreduce", "broadcast", "gather_into_region")


# Actions of the ranks of a fault plan, which selects one by name.


def lose_a_rank(script: Script) -> None:
    """Lose one rank before, in or after a collective; the others report their errors."""
    script.comm.barrier()
    moment = script.task["moment"]
    call = _prepare(script, torn=moment == "torn" and script.is_victim)
    script.comm.barrier()
    MOMENTS[moment](script, call)


def _die_before(script: Script, call: PreparedCall) -> None:
    if script.is_victim:
        _die()
    script.expect_failure(call)


def _die_after(script: Script, call: PreparedCall) -> None:
    """Die after the call, which survivors may complete or not; the next one must fail."""
    if script.is_victim:
        call()
        _die()
    script.expect_failure(lambda: _in_turn(call, script.comm.barrier))


def _die_waiting(script: Script, call: PreparedCall) -> None:
    """Wait in the call for a rank that does not join it, until the parent kills this one.

    Its data may be complete by then, so that the others can get that call done; the next one must fail.
    """
    if script.is_victim:
        _report_inside(script)
        call()
        return
    if script.is_holdout:
        script.wait_for_command("go")
    script.expect_failure(lambda: _in_turn(call, script.comm.barrier))


def _die_moving(script: Script, call: PreparedCall) -> None:
    """Make call after call, until the victim's second thread kills it in the middle of one."""
    if script.is_victim:
        threading.Thread(target=_die_inside, args=(script, script.comm.sequence + 3), daemon=True).start()
    script.expect_failure(partial(_repeat, call))


def _die_torn(script: Script, call: PreparedCall) -> None:
    """Die by SIGBUS halfway through the copy, when the victim's send buffer is read."""
    if script.is_victim:
        report_event("dying")
    script.expect_failure(call)


MOMENTS: Mapping[str, Callable[[Script, PreparedCall], None]] = {
    "before": _die_before,
    "after": _die_after,
    "waiting": _die_waiting,
    "moving": _die_moving,
    "torn": _die_torn,
}


def _repeat(call: PreparedCall) -> None:
    """Call until it fails. Any number of calls may be over before the victim's second thread gets a turn."""
    while True:  # the parent has a deadline, and no rank outlives its parent
        call()


def _in_turn(*calls: PreparedCall) -> None:
    for call in calls:
        call()


def _prepare(script: Script, *, torn: bool = False) -> PreparedCall:
    task = script.task
    return prepare(task["operation"], script.comm, task["nbytes"], task.get("root", 0), torn=torn)


def _die() -> None:
    report_event("dying")
    os.kill(os.getpid(), signal.SIGKILL)


def _die_inside(script: Script, sequence: int) -> None:
    while script.comm.sequence < sequence or script.comm.state != "busy":
        time.sleep(0)
    _die()


def _report_inside(script: Script) -> None:
    """Report from a second thread as soon as the first one is inside the call."""

    def watch() -> None:
        while script.comm.state != "busy":
            time.sleep(0)
        report_event("inside")

    threading.Thread(target=watch, daemon=True).start()


def lose_the_creator(script: Script) -> None:
    """Lose rank 0 in the middle of creating a region."""
    script.comm.barrier()
    if script.is_victim:
        threading.Thread(target=_die_inside, args=(script, script.comm.sequence + 3), daemon=True).start()

    script.expect_failure(
        partial(_repeat, lambda: script.comm.create_shared_region(script.task["nbytes"], "u1").close())
    )


def let_wait(script: Script) -> None:
    """Make the call on all ranks but one, which stays alive and waits for a command first. All report."""
    script.comm.barrier()
    call = _prepare(script)
    if script.is_victim:
        report_event("ready")
        script.wait_for_command("go")
    script.expect_failure(call)


def compute_long(script: Script) -> None:
    """Compute on one rank for much longer than the timeout before it calls."""
    script.comm.barrier()
    call = _prepare(script)
    if script.is_victim:
        end = time.monotonic() + script.task["seconds"]
        while time.monotonic() < end:
            sum(range(1000))
    script.expect_failure(call)


def raise_inside(script: Script) -> None:
    """Leave the `with` block of one rank by an exception."""
    script.comm.barrier()
    if script.is_victim:
        try:
            with script.comm:
                raise ArithmeticError(script.task["reason"])
        except ArithmeticError:
            report_event("raised")
    else:
        script.expect_failure(_prepare(script))


def run_case(script: Script) -> None:
    """Run a case of the conformance suite and report its value."""
    report_event("value", value=find_case(script.task["case"]).run(script.comm, script.task["params"]))


def run_random_program(script: Script) -> None:
    """Run a random program and report its digest."""
    report_event("value", value=run_program(script.comm, script.task["seed"], script.task["length"]))


def allocate(script: Script) -> None:
    """Request a region that does not fit, then continue."""
    script.expect_failure(lambda: script.comm.create_shared_region(script.task["nbytes"], "u1"))


def exit_without_closing(script: Script) -> None:
    """End the process right after a call, without `close`."""
    script.comm.barrier()
    report_event("leaving")
    os._exit(0)


ACTIONS: Mapping[str, Callable[[Script], None]] = {
    "lose_a_rank": lose_a_rank,
    "lose_the_creator": lose_the_creator,
    "let_wait": let_wait,
    "compute_long": compute_long,
    "raise_inside": raise_inside,
    "run_case": run_case,
    "run_random_program": run_random_program,
    "allocate": allocate,
    "exit_without_closing": exit_without_closing,
}


def main() -> None:
    """Join, act, close, and report what happens; only a bug of the kit itself ends in a traceback."""
    die_with_parent(os.getppid())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell may have had it ignored
    task = json.loads(sys.argv[1])
    report_event("started", pid=os.getpid(), host=socket.gethostname())
    if task.get("joins_on_request"):
        sys.stdin.readline()
    try:
        comm = create_communicator()
    except (BackendError, CommError) as error:
        report_event("refused", **describe(error))
        return
    report_event("joined", size=comm.size)
    ACTIONS[task["action"]](Script(comm, task))
    comm.close()
    report_event("closed", state=comm.state)


if __name__ == "__main__":
    main()

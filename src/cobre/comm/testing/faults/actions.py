"""What the ranks of a fault plan do; the plan selects an action by name."""

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping

from cobre.comm.testing.case import find_case
from cobre.comm.testing.faults.calls import PreparedCall, prepare
from cobre.comm.testing.faults.script import Script, report_event
from cobre.comm.testing.programs import run_program

MANY_CALLS = 5000


def lose_a_rank(script: Script) -> None:
    """One rank dies before, in or after a collective; the others report what they see."""
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
    """Survivors may get that call done or not; the next one must fail."""
    if script.is_victim:
        call()
        _die()
    script.expect_failure(lambda: _in_turn(call, script.comm.barrier))


def _die_waiting(script: Script, call: PreparedCall) -> None:
    """Wait in the call for a rank that holds out, until the parent kills this one.

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
    """PreparedCall after call, until the victim's second thread kills it in the middle of one."""
    if script.is_victim:
        threading.Thread(target=_die_inside, args=(script, script.comm.sequence + 3), daemon=True).start()
    script.expect_failure(lambda: [call() for _ in range(MANY_CALLS)])


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
    """Rank 0 dies in the middle of creating a region."""
    script.comm.barrier()
    if script.is_victim:
        threading.Thread(target=_die_inside, args=(script, script.comm.sequence + 3), daemon=True).start()

    def create_and_close() -> None:
        for _ in range(MANY_CALLS):
            script.comm.create_shared_region(script.task["nbytes"], "u1").close()

    script.expect_failure(create_and_close)


def let_wait(script: Script) -> None:
    """All ranks but one make the call; that one stays alive and waits for a command first. All report."""
    script.comm.barrier()
    call = _prepare(script)
    if script.is_victim:
        report_event("ready")
        script.wait_for_command("go")
    script.expect_failure(call)


def compute_long(script: Script) -> None:
    """One rank computes much longer than the timeout before it calls."""
    script.comm.barrier()
    call = _prepare(script)
    if script.is_victim:
        end = time.monotonic() + script.task["seconds"]
        while time.monotonic() < end:
            sum(range(1000))
    script.expect_failure(call)


def raise_inside(script: Script) -> None:
    """One rank leaves its `with` block by an exception."""
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
    """Ask for a region that does not fit, then go on."""
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

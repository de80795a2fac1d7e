"""Checks of what survivors report; each returns descriptions of what is wrong."""

import socket
from collections.abc import Sequence

from cobre.comm import errors
from cobre.comm.testing.faults.ranks import Event, PlanProcess

BOUND_S = 2.0
"""The longest time allowed from the death of a rank to the error on all others."""


def check_failure(
    survivor: PlanProcess, error: str, failed: PlanProcess, operations: Sequence[str], words: Sequence[str] = ()
) -> list[str]:
    """Check that the error names the failed rank, its host and pid, and the call; later calls must raise, too."""
    saw = survivor.wait_for("saw")
    if saw["error"] != error:
        return [f"rank {survivor.rank}: expected {error} about rank {failed.rank}, got {saw}"]
    expected = {"ranks": [failed.rank], "pids": [failed.pid], "hosts": [socket.gethostname()]}
    problems = [
        f"{field} should be {value}, not {saw[field]}" for field, value in expected.items() if saw[field] != value
    ]
    if saw["operation"] not in operations:
        problems.append(f"operation should be one of {operations}, not {saw['operation']}")
    if saw["sequence"] != saw["own_sequence"]:
        problems.append(f"call #{saw['own_sequence']} failed, but the error says #{saw['sequence']}")
    return [
        f"rank {survivor.rank}: {problem}" for problem in problems + _missing_words(saw, failed, words) + _after(saw)
    ]


def check_message(survivor: PlanProcess, error: str, words: Sequence[str]) -> list[str]:
    """Check that the error has that type and says those words, and that later calls are refused."""
    saw = survivor.wait_for("saw")
    if saw["error"] != error:
        return [f"rank {survivor.rank}: expected {error}, got {saw}"]
    missing = [f"the message does not say '{word}': {saw['message']}" for word in words if word not in saw["message"]]
    return [f"rank {survivor.rank}: {problem}" for problem in missing + _after(saw)]


def check_in_time(survivor: PlanProcess, since: float, bound_s: float = BOUND_S) -> list[str]:
    """Check that the error came soon after the death, or after the survivor's own call if that was later."""
    saw = survivor.wait_for("saw")
    begin = max(since, survivor.wait_for("calling")["time"])
    seconds = saw["at"] - begin
    return [f"rank {survivor.rank} noticed after {seconds:.2f} s, allowed are {bound_s} s"] if seconds > bound_s else []


def check_closed(process: PlanProcess) -> list[str]:
    """Check that the rank closed its communicator and exited with code 0."""
    state = process.wait_for("closed")["state"]
    code = process.wait_for_end()
    return [] if (state, code) == ("closed", 0) else [f"rank {process.rank} ended as {state} with exit code {code}"]


def check_refused(process: PlanProcess, error: str, words: Sequence[str]) -> list[str]:
    """Check that the rank could not join, for that reason or a finer one (a subclass), and in those words."""
    refused = process.wait_for("refused")
    process.wait_for_end()
    kind = getattr(errors, refused["error"], None)
    if kind is None or not issubclass(kind, getattr(errors, error)):
        return [f"rank {process.rank}: expected {error}, got {refused}"]
    return [
        f"rank {process.rank}: the message does not say '{word}': {refused['message']}"
        for word in words
        if word not in refused["message"]
    ]


def check_completed(process: PlanProcess) -> list[str]:
    """Check that the rank's call succeeded after all."""
    saw = process.wait_for("saw")
    return [f"rank {process.rank}: expected no error, got {saw}"] if saw["error"] else check_closed(process)


def _missing_words(saw: Event, failed: PlanProcess, words: Sequence[str]) -> list[str]:
    wanted = (
        f"rank {failed.rank}",
        str(failed.pid),
        socket.gethostname(),
        f"#{saw['sequence']}",
        saw["operation"],
        *words,
    )
    return [f"the message does not say '{word}': {saw['message']}" for word in wanted if word not in saw["message"]]


def _after(saw: Event) -> list[str]:
    if (saw["state"], saw["later"]) == ("broken", ["CommunicatorBrokenError"]):
        return []
    return [f"after the failure the communicator is {saw['state']} and calls raise {saw['later']}"]

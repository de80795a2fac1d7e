"""The error of a run with failed ranks: which rank is named as the cause, and what is quoted."""

import socket
from dataclasses import dataclass, field

import pytest

from cobre.comm.launch.launcher import first_failure_error
from cobre.comm.launch.payload import RankFailure


@dataclass
class EndedRank:
    """The attributes of an ended rank that `first_failure_error` reads."""

    rank: int
    exit_code: int
    recorded: RankFailure | None = None
    was_stopped: bool = False
    stderr_tail: str = ""
    exit_reason: str = ""
    pid: int = field(init=False)

    def __post_init__(self):
        self.pid = 100 + self.rank

    @property
    def result(self):
        return self

    def failure(self):
        return self.recorded


def rank_failure(summary, is_consequence=False):
    return RankFailure("n07", 1, summary, f"Traceback (most recent call last):\n{summary}", is_consequence, None)


def test_first_to_end_is_the_cause():
    ended = [EndedRank(2, 1, rank_failure("ValueError: a")), EndedRank(0, 1, rank_failure("ValueError: b"))]
    error = first_failure_error(ended, 4)
    assert error.rank == 2
    assert str(error).startswith("Run stopped: rank 2 (host n07, pid 102) raised ValueError: a\n")
    assert "Also, rank 0 (host n07, pid 100) raised ValueError: b" in str(error)
    assert str(error).endswith("2 other ranks were healthy and have exited.")


def test_consequence_is_not_the_cause_even_if_it_came_first():
    lost = rank_failure("PeerLostError: rank 3 died", is_consequence=True)
    error = first_failure_error([EndedRank(0, 1, lost), EndedRank(1, 1, lost), EndedRank(3, -9)], 4)
    assert (error.rank, error.exit_code, error.inner) == (3, -9, None)
    assert "pid 103) was killed by SIGKILL (signal 9): likely out of memory. Try fewer ranks." in str(error)
    assert str(error).endswith("3 other ranks were healthy and have exited.")


def test_rank_stopped_by_launcher_is_not_reported_as_cause():
    error = first_failure_error([EndedRank(1, -15, was_stopped=True), EndedRank(0, 3)], 2)
    assert (error.rank, error.exit_code) == (0, 3)
    assert str(error).endswith("1 other rank was healthy and has exited.")


def test_first_secondary_failure_is_reported_without_primary_one():
    silent = rank_failure("PeerTimeoutError: rank 1 is silent", is_consequence=True)
    error = first_failure_error(
        [EndedRank(2, 1, silent), EndedRank(0, 1, silent), EndedRank(1, -9, was_stopped=True)], 3
    )
    assert error.rank == 2
    assert str(error).endswith("All other ranks were stopped."), "the silent one was not healthy"
    assert "PeerTimeoutError: rank 1 is silent" in str(error)


def test_single_rank_has_no_others():
    assert "other" not in str(first_failure_error([EndedRank(0, 1, rank_failure("ValueError: a"))], 1))


@pytest.mark.parametrize(
    ("exit_code", "text"),
    [
        (3, "exited with code 3 before it finished"),
        (0, "exited with code 0 before it finished"),
        (-11, "was killed by SIGSEGV (signal 11)"),
        (-15, "was killed by SIGTERM (signal 15)"),
        (-40, "was killed by signal 40"),
    ],
)
def test_exit_codes_and_signals_are_described(exit_code, text):
    assert text in str(first_failure_error([EndedRank(0, exit_code)], 1))


def test_crash_after_an_exception_is_reported():
    error = first_failure_error([EndedRank(0, -11, rank_failure("ValueError: a"))], 1)
    assert "raised ValueError: a, then was killed by SIGSEGV (signal 11)" in str(error)


def test_stderr_tail_replaces_missing_traceback():
    error = first_failure_error([EndedRank(0, -6, stderr_tail="terminate called after throwing an instance of 'X'")], 1)
    assert "Last lines of its stderr:\nterminate called" in str(error)


def test_ranks_that_ended_with_the_fork_server_are_secondary():
    exit_reason = "was killed because the fork server of the ranks (pid 7) was killed by SIGKILL (signal 9)"
    error = first_failure_error(
        [EndedRank(1, -9, exit_reason=exit_reason), EndedRank(0, -9, exit_reason=exit_reason)], 2
    )
    assert str(error).startswith(f"Run stopped: rank 1 (host {socket.gethostname()}, pid 101) {exit_reason}")
    assert str(error).endswith("1 other rank was healthy and has exited.")
    assert "out of memory" not in str(error)

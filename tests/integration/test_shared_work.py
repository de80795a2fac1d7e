"""Ranks that see one memory take units of work from one counter: who solves what does not matter, who dies is named.

Real processes. A rank that comes late is one that waits until the other has taken every unit, so nothing here depends
on how fast anything is.
"""

import secrets
import signal
from pathlib import Path

import pytest
from processes import finish, start_python
from shared_work import ITERATIONS, train, until
from studies import QUICK_CASE, small_copy

from cobre.comm import launch
from cobre.comm.backends.local import LocalCommunicator

PROGRAM = Path(__file__).with_name("shared_work.py")


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return small_copy(QUICK_CASE, tmp_path_factory.mktemp("case"))


@pytest.fixture(scope="module")
def alone(case):
    """Trained in this process: nobody to share with."""
    with LocalCommunicator() as comm:
        digest, jobs, own, solves = train(comm, case, lambda *_: None)
    assert jobs == 0
    assert own == solves
    return digest, solves


def late_always(rank, job):
    return rank == 1


def late_in_turns(rank, job):
    return rank == job % 2


@pytest.mark.parametrize("is_late", [late_always, late_in_turns])
def test_a_rank_that_comes_late_finds_its_work_done(case, alone, is_late):
    def work(comm):
        def before(job, counter, units):
            if is_late(comm.rank, job):
                until(lambda: counter[0] >= units)

        return train(comm, case, before)

    outcomes = launch.run(work, 2, "shm")
    digest, solves = alone
    assert {(own_digest, total) for own_digest, _, _, total in outcomes} == {(digest, solves)}
    assert outcomes[0][1] == outcomes[1][1] > ITERATIONS
    assert sum(own for _, _, own, _ in outcomes) == solves
    if is_late is late_always:
        assert [own for _, _, own, _ in outcomes] == [solves, 0]


@pytest.mark.parametrize(("ranks", "threads"), [(2, 2), (5, 1)])
def test_all_ranks_and_threads_take_from_one_counter(case, alone, ranks, threads):
    outcomes = launch.run(lambda comm: train(comm, case, lambda *_: None, threads), ranks, "shm")
    digest, solves = alone
    assert {(own_digest, total) for own_digest, _, _, total in outcomes} == {(digest, solves)}
    assert sum(own for _, _, own, _ in outcomes) == solves


@pytest.mark.parametrize("job", [1, 7])
def test_a_rank_that_dies_with_a_unit_in_its_hands_is_named(case, job):
    """Nobody else takes that unit: the other rank comes to the end of the job, and learns there who is missing."""
    name = f"cobre-unit-{secrets.token_hex(4)}"
    ranks = [start_python(PROGRAM, str(rank), name, str(case), str(job)) for rank in range(2)]
    (code, outcomes, err), (died, _, _) = map(finish, ranks)
    assert (code, died) == (1, -signal.SIGKILL), err
    assert "rank 1" in outcomes, err
    assert "died" in outcomes

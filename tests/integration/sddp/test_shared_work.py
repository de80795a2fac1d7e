"""Ranks that share memory take units of work from one counter: the split changes no bit, and dead ranks are named.

Real processes. A rank that comes late is one that waits until the other has taken every unit, so nothing here depends
on how fast anything is.
"""

import secrets
import signal
from pathlib import Path

import pytest
from crafted_case import write_crafted
from processes import finish, start_python
from shared_work import ITERATIONS, SCENARIOS, evaluate, leave_nodes_to_others, simulate, train, until
from studies import QUICK_CASE, small_copy
from tree_cases import TREES

from cobre.comm import launch
from cobre.comm.backends.local import LocalCommunicator

PROGRAM = Path(__file__).with_name("shared_work.py")


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return small_copy(QUICK_CASE, tmp_path_factory.mktemp("case"))


@pytest.fixture(scope="module")
def alone(case):
    """Train in this process, with no rank to share with."""
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
def test_late_rank_has_no_work_left(case, alone, is_late):
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


@pytest.mark.parametrize("job", [simulate, evaluate])
@pytest.mark.parametrize("is_late", [late_always, late_in_turns])
def test_scenarios_of_a_late_rank_are_simulated_by_the_other(case, job, is_late):
    def work(comm):
        def before(number, counter, units):
            if is_late(comm.rank, number):
                until(lambda: counter[0] >= units)

        return job(comm, case, before)

    with LocalCommunicator() as comm:
        costs, digest, jobs, solves = job(comm, case, lambda *_: None)
    assert jobs == 0
    outcomes = launch.run(work, 2, "shm")
    assert {found for found, *_ in outcomes} == {costs}
    assert outcomes[0][1] == digest
    assert outcomes[0][2] == outcomes[1][2] > 0
    alone = solves % SCENARIOS  # of simulations: every rank finds by itself where scenarios start
    assert sum(own - alone for *_, own in outcomes) == solves - alone
    if is_late is late_always:
        assert outcomes[1][3] == alone


@pytest.mark.parametrize(("ranks", "threads"), [(2, 2), (5, 1)])
def test_number_of_workers_does_not_change_a_simulation(case, ranks, threads):
    with LocalCommunicator() as comm:
        costs, digest, _, _ = simulate(comm, case, lambda *_: None)
    outcomes = launch.run(lambda comm: simulate(comm, case, lambda *_: None, threads), ranks, "shm")
    assert {found for found, *_ in outcomes} == {costs}
    assert outcomes[0][1] == digest


def test_free_rank_solves_tree_nodes(tmp_path):
    """Make the other rank late at every stage of the tree, forward and backward, so that no work remains for it."""
    folder = write_crafted(tmp_path, TREES["cascade"])

    def work(comm):
        if comm.rank == 1:
            leave_nodes_to_others()
        return train(comm, folder, lambda *_: None)

    with LocalCommunicator() as comm:
        digest, _, _, solves = train(comm, folder, lambda *_: None)
    outcomes = launch.run(work, 2, "shm")
    assert [(found, own) for found, _, own, _ in outcomes] == [(digest, solves), (digest, 0)]


@pytest.mark.parametrize("job", [1, 7])
def test_rank_dying_with_a_unit_is_named(case, job):
    """Check that no other rank takes that unit; the survivor names the missing rank at the end of the job."""
    name = f"cobre-unit-{secrets.token_hex(4)}"
    ranks = [start_python(PROGRAM, str(rank), name, str(case), str(job)) for rank in range(2)]
    (code, outcomes, err), (died, _, _) = map(finish, ranks)
    assert (code, died) == (1, -signal.SIGKILL), err
    assert "rank 1" in outcomes, err
    assert "died" in outcomes

"""Visited states: the same on all ranks and backends, once per node, and only what cuts depend on."""

import numpy as np
import pytest

from cobre.comm import launch
from cobre.comm.backends.local import LocalCommunicator
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.training import visited_states as module
from cobre.sddp.training.visited_states import StoredStates, VisitedStates, entry_flags

STAGES, DIMENSION, PATHS, ITERATIONS = 3, 4, 5, 9
KEPT = [np.array([True, False, True, True]), np.array([False, True, False, False]), np.zeros(DIMENSION, bool)]


def expected_states(iteration):
    """Return states as stages x paths x entries."""
    return np.random.default_rng(iteration).random((STAGES, PATHS, DIMENSION))


def gather_states(comm, has_all_entries=False, max_bytes=None):
    """Return all states of all boundaries, the bytes exchanged in the last iteration, and the bytes held."""
    if max_bytes is not None:
        module.MAX_GATHERED_BYTES = max_bytes  # in a process of its own
    pool, split = CutPool(comm, STAGES, DIMENSION, KEPT), WorkSplit(PATHS, comm.size)
    visited, own = VisitedStates(pool, has_all_entries=has_all_entries), split.block(comm.rank)
    for iteration in range(ITERATIONS):
        nbytes = visited.add(comm, split, expected_states(iteration)[:, own.start : own.stop])
    states = [visited.states(start, visited.entries(start)) for start in range(visited.num_stage_starts)]
    assert len(visited) == PATHS * ITERATIONS
    return states, nbytes, visited.nbytes


def expected_tables(has_all_entries=False):
    kept = [np.ones(DIMENSION, bool)] * STAGES if has_all_entries else [np.zeros(DIMENSION, bool), *KEPT[:-1]]
    return [
        np.concatenate([expected_states(iteration)[boundary][:, kept[boundary]] for iteration in range(ITERATIONS)])
        for boundary in range(STAGES)
    ]


@pytest.mark.parametrize("has_all_entries", [False, True])
@pytest.mark.parametrize(("backend", "ranks"), [("local", 1), ("shm", 3), ("tcp", 2), ("tcp", 3)])
def test_states_are_the_same_everywhere(backend, ranks, has_all_entries):
    environment = {"COBRE_TCP_RANKS_PER_HOST": "1" if ranks == 2 else "2"}
    for states, nbytes, _ in launch.run(gather_states, ranks, backend, (has_all_entries, 100), environment=environment):
        assert nbytes == 8 * PATHS * (STAGES * DIMENSION if has_all_entries else 3 + 1)
        for stored, right in zip(states, expected_tables(has_all_entries), strict=True):
            np.testing.assert_array_equal(stored, right)


def test_memory_grows_by_a_quarter_at_most():
    _, _, held = gather_states(LocalCommunicator())
    needed = 8 * PATHS * ITERATIONS * (3 + 1)
    assert needed <= held <= 1.25 * needed + 8 * PATHS * (3 + 1)


def test_stored_states_read_back():
    comm = LocalCommunicator()
    pool = CutPool(comm, STAGES, DIMENSION, KEPT)
    visited = VisitedStates(pool)
    for iteration in range(ITERATIONS):
        visited.add(comm, WorkSplit(PATHS, 1), expected_states(iteration))
    numbers = np.concatenate([view.reshape(-1) for boundary in range(STAGES) for view in visited.views(boundary)])
    again = VisitedStates(pool)
    read = lambda start, count: numbers[start : start + count]  # noqa: E731
    again.restore(StoredStates(entry_flags(visited, DIMENSION), len(numbers), read), ITERATIONS)
    assert again.iterations == visited.iterations
    for boundary, right in enumerate(expected_tables()):
        np.testing.assert_array_equal(again.states(boundary, again.entries(boundary)), right)
    again.close()
    assert again.nbytes == 0


WINDOW = 5


def states_within_window(comm, has_all_entries=False):
    """Return the states that selection reads after each iteration, the peak bytes, and the number of states held."""
    pool, split = CutPool(comm, STAGES, DIMENSION, KEPT), WorkSplit(PATHS, comm.size)
    visited, own = VisitedStates(pool, has_all_entries=has_all_entries, window=WINDOW), split.block(comm.rank)
    stored, held = [], 0
    for iteration in range(8 * WINDOW):
        visited.add(comm, split, expected_states(iteration)[:, own.start : own.stop])
        stored.append(visited.recent_states(1, np.flatnonzero(KEPT[0])).copy())
        held = max(held, visited.nbytes)
    return stored, held, len(visited)


@pytest.mark.parametrize(("backend", "ranks"), [("local", 1), ("shm", 2), ("tcp", 2)])
def test_states_outside_of_a_window_are_forgotten(backend, ranks):
    environment = {"COBRE_TCP_RANKS_PER_HOST": "1"}
    for stored, held, _ in launch.run(states_within_window, ranks, backend, environment=environment):
        for iteration, states in enumerate(stored):
            seen = range(max(0, iteration + 1 - WINDOW), iteration + 1)
            np.testing.assert_array_equal(states, np.concatenate([expected_states(one)[1][:, KEPT[0]] for one in seen]))
        assert held <= 8 * PATHS * (3 + 1) * (WINDOW + 2 * (WINDOW // 4 + 2))


def test_export_keeps_states_outside_the_window_of_selection():
    stored, _, count = states_within_window(LocalCommunicator(), has_all_entries=True)
    assert count == PATHS * 8 * WINDOW
    assert len(stored[-1]) == PATHS * WINDOW

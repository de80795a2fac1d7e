"""Cut selection on cuts and states that are easy to check by hand."""

from itertools import pairwise

import numpy as np
import pytest
from contexts import context_of, iterated
from small_cases import SmallCase, hydro, thermal

from cobre.comm.backends.local import LocalCommunicator
from cobre.core.config import CutSelectionConfig, DominationSelection, DynamicSelection, Level1Selection
from cobre.sddp.cut_pool import CutPool, CutSet
from cobre.sddp.plugins.cut_selection import Capped, Level1, cut_selection
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.training.select_cuts import SelectionStates, apply_selection
from cobre.sddp.training.visited_states import VisitedStates

# Lines over one state: falling, flat, rising; the fourth is never best, the fifth is the second again.
CUTS = CutSet(np.array([4.0, 2.0, 0.0, -1.0, 2.0]), np.array([[-2.0], [0.0], [2.0], [0.0], [0.0]]))
STATES = np.array([[0.0], [0.5], [1.0], [1.5], [2.0], [2.0]])
CREATED = np.array([1, 1, 2, 2, 3], np.int32)
ALL = np.ones(5, np.uint8)


def select(config, states=STATES, iteration=4, active=ALL):
    return cut_selection(config).choose(CUTS, states, CREATED, iteration, active).tolist()


def test_level1_keeps_cuts_that_are_best_at_some_state():
    assert select(CutSelectionConfig(Level1Selection())) == [1, 1, 1, 0, 1]


def test_limited_memory_keeps_the_oldest_of_equals():
    assert select(CutSelectionConfig(Level1Selection(method="lml1"))) == [
        1,
        0,
        1,
        0,
        0,
    ]  # three cuts tie at state 1; the first is the oldest
    assert select(CutSelectionConfig(Level1Selection(method="lml1")), np.array([[1.0 + 1e-3], [0.9]])) == [
        1,
        0,
        1,
        0,
        0,
    ]


def test_tie_tolerance_lets_more_be_near():
    near = CutSelectionConfig(Level1Selection(tie_tolerance=0.5))
    assert select(near, np.array([[0.5]])) == [1, 0, 0, 0, 0]  # 3 against 2
    assert select(near, np.array([[0.9]])) == [1, 1, 1, 0, 1]  # 2.2 against 2 and 1.8


def test_domination_tolerance():
    assert select(CutSelectionConfig(DominationSelection(domination_tolerance=0.0))) == [1, 1, 1, 0, 1]
    assert select(CutSelectionConfig(DominationSelection(domination_tolerance=3.0))) == [1, 1, 1, 1, 1]


def test_cuts_of_the_present_iteration_stay():
    assert select(CutSelectionConfig(Level1Selection(method="lml1")), iteration=2) == [1, 0, 1, 1, 0]


def test_check_frequency():
    rule = cut_selection(CutSelectionConfig(Level1Selection(check_frequency=3)))
    assert [rule.is_due(iteration) for iteration in range(1, 7)] == [False, False, True, False, False, True]


def test_window_of_iterations():
    config = CutSelectionConfig(DynamicSelection(candidate_recency=2, start_iteration=4, seed_window=0))
    rule = cut_selection(config)
    assert [rule.is_due(iteration) for iteration in (1, 2, 3, 4)] == [False, False, True, True]
    assert select(config, iteration=3) == [0, 0, 1, 1, 1]
    assert select(config, iteration=4) == [0, 0, 0, 0, 1]


def test_cuts_of_seed_window_stay_active():
    config = CutSelectionConfig(DynamicSelection(candidate_recency=1, seed_window=2))
    assert select(config, iteration=3) == [0, 0, 1, 1, 1]


def test_dynamic_selection_without_window_keeps_all_cuts():
    assert cut_selection(CutSelectionConfig(DynamicSelection())) is None
    assert cut_selection(CutSelectionConfig()) is None


def test_cap_removes_longest_inactive_cuts():
    """Two states in each of three iterations: line 0 was best first, line 1 then, line 2 last; line 3 and 4 never."""
    states = np.array([[0.0], [0.1], [1.0], [1.0], [1.9], [2.0]])
    shifted = CutSet(CUTS.intercepts + np.array([0.0, 0.1, 0.0, 0.0, 0.0]), CUTS.coefficients)
    rule = Capped(None, 2)
    assert rule.choose(shifted, states, np.zeros(5, np.int32), 3, ALL).tolist() == [0, 1, 1, 0, 0]
    assert Capped(None, 3).choose(shifted, states, np.zeros(5, np.int32), 3, ALL).tolist() == [1, 1, 1, 0, 0]


def test_cap_breaks_ties_by_times_active():
    states = np.array([[0.0], [2.0], [2.0]])  # one iteration: line 0 once, line 2 twice
    assert Capped(None, 1).choose(CUTS, states, np.zeros(5, np.int32), 1, ALL).tolist() == [0, 0, 1, 0, 0]


def test_cap_never_drops_cuts_of_the_present_iteration():
    assert Capped(None, 1).choose(CUTS, STATES, CREATED, 2, ALL).tolist() == [0, 0, 1, 1, 0]


def test_deactivated_cuts_stay_inactive_between_checks():
    """Level 1 looks every fifth iteration, the cap always: the cap may not bring cuts back."""
    rule = cut_selection(CutSelectionConfig(Level1Selection(), max_active_per_stage=4))
    aside = np.array([1, 1, 1, 0, 0], np.uint8)
    assert rule.choose(CUTS, STATES, CREATED, 6, aside).tolist() == aside.tolist()
    assert rule.choose(CUTS, STATES, CREATED, 5, aside).tolist() == [1, 1, 1, 0, 1]


def test_slots_without_a_cut_are_ignored():
    """Values are negative here: a slot that was never written would count 0, and win everywhere."""
    comm = LocalCommunicator()
    pool = CutPool(comm, 2, 1)
    pool.reserve_slots(0, 3)
    pool.write(0, range(2), CutSet(np.array([-5.0, -4.0]), np.array([[0.0], [-2.0]])))
    visited = VisitedStates(pool)
    visited.add(comm, WorkSplit(2, 1), np.array([[[0.0], [0.0]], [[0.0], [3.0]]]))
    apply_selection(comm, pool, Level1(1, 1e-10, only_oldest=True), visited, 1, SelectionStates())
    assert pool.active[0].tolist() == [1, 1, 0]
    pool.close()


def select_by_definition(cuts, states, tolerance):
    """Select by definition, with the heights of all cuts at all states."""
    values = cuts.values_at(states)
    kept = np.zeros(len(cuts), np.uint8)
    kept[np.argmax(values >= values.max(axis=1, keepdims=True) - tolerance, axis=1)] = 1
    return kept


@pytest.mark.parametrize("tolerance", [0.0, 1e-10, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_earlier_states_and_cuts_are_not_compared_again(tolerance, seed):
    """Heights that are often equal, cuts in slots with gaps, iterations at which selection is not due."""
    random = np.random.default_rng(seed)
    comm = LocalCommunicator()
    pool, memory = CutPool(comm, 2, 3), SelectionStates()
    visited, entering = VisitedStates(pool), []
    pool.reserve_slots(0, 5)
    pool.write(0, range(3), CutSet(np.array([-1.0, 2.0, 0.0]), random.integers(-2, 3, (3, 3)).astype(float)))
    for iteration in range(1, 40):
        entering.append(random.integers(0, 4, (7, 3)).astype(float))
        visited.add(comm, WorkSplit(7, 1), np.stack([np.zeros((7, 3)), entering[-1]]))
        slots = pool.reserve_slots(iteration, 7)
        pool.write(0, slots, CutSet(random.random(7), random.integers(-2, 3, (7, 3)) / 2))
        if iteration % 3 == 0:
            continue
        rule = Level1(1, tolerance, only_oldest=True)
        apply_selection(comm, pool, rule, visited, iteration, memory)
        cuts, states = pool.written_cuts(0), np.concatenate(entering)
        expected = select_by_definition(cuts, states, tolerance) | (pool.created[cuts.slots] == iteration)
        assert pool.active[0, cuts.slots].tolist() == expected.tolist()
    pool.close()


def test_only_states_of_window_select_cuts():
    random = np.random.default_rng(5)
    comm, window = LocalCommunicator(), 3
    pool, memory, entering = CutPool(comm, 2, 3), SelectionStates(), []
    visited = VisitedStates(pool, window=window)
    rule = cut_selection(CutSelectionConfig(Level1Selection(check_frequency=1, method="lml1"), state_window=window))
    for iteration in range(1, 20):
        entering.append(random.integers(0, 4, (7, 3)).astype(float))
        visited.add(comm, WorkSplit(7, 1), np.stack([np.zeros((7, 3)), entering[-1]]))
        slots = pool.reserve_slots(iteration, 7)
        pool.write(0, slots, CutSet(random.random(7), random.integers(-2, 3, (7, 3)) / 2))
        apply_selection(comm, pool, rule, visited, iteration, memory)
        cuts = pool.written_cuts(0)
        expected = select_by_definition(cuts, np.concatenate(entering[-window:]), 1e-10) | (
            pool.created[cuts.slots] == iteration
        )
        assert pool.active[0, cuts.slots].tolist() == expected.tolist()
    pool.close()


class CountedCuts(CutSet):
    """Cuts that count evaluated heights."""

    heights = 0

    def values_from(self, states, first):
        CountedCuts.heights += len(states) * (len(self) - first)
        return super().values_from(states, first)


def test_only_new_states_and_new_cuts_are_looked_at():
    random = np.random.default_rng(1)
    rule = Level1(1, 1e-10, only_oldest=True)
    memory, intercepts, slopes, states = rule.new_state(), random.random(400), random.random((400, 2)), []
    for iteration in range(1, 21):
        CountedCuts.heights = 0
        states.append(random.random((20, 2)))
        count = 20 * iteration
        cuts = CountedCuts(intercepts[:count], slopes[:count])
        rule.update(memory, cuts, np.concatenate(states), np.zeros(count, np.int32), iteration)
        assert CountedCuts.heights == 20 * (2 * count - 20)
    assert len(memory._value) < 2 * 400  # one record or so for each state, whatever the number of cuts


@pytest.mark.parametrize(
    "config",
    [
        CutSelectionConfig(Level1Selection(check_frequency=2)),
        CutSelectionConfig(Level1Selection(check_frequency=2, method="lml1")),
        CutSelectionConfig(DominationSelection(0.0, check_frequency=2)),
        CutSelectionConfig(DynamicSelection(candidate_recency=3, seed_window=2)),
        CutSelectionConfig(max_active_per_stage=4),
        CutSelectionConfig(Level1Selection(method="lml1"), max_active_per_stage=4),
    ],
)
def test_bounds_stay_valid_and_caps_hold(tmp_path, config):
    """Fewer cuts in forward and backward passes: the bound never falls, and never passes the true optimum."""
    case = SmallCase(
        hydros=[hydro(0)],
        thermals=[thermal(0, 10.0, 20.0), thermal(1, 90.0, 30.0)],
        stages=4,
        openings=4,
        load={0: 45.0},
        inflow={0: (15.0, 8.0)},
        storage={0: 40.0},
        forward_passes=2,
    )
    folder = case.write(tmp_path)
    best = iterated(context_of(folder), 40)[-1]
    context = context_of(folder)
    bounds = iterated(context, 25, cut_selection(config))
    assert all(later >= earlier * (1 - 1e-12) for earlier, later in pairwise(bounds))
    assert bounds[-1] <= best * (1 + 1e-9)
    assert bounds[-1] >= 0.95 * best
    active = context.pool.active[:-1].sum(axis=1)
    assert active.sum() < 3 * 50
    if config.max_active_per_stage is not None:
        assert (active <= config.max_active_per_stage).all()

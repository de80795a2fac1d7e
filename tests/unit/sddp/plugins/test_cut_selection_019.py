"""Cut selection by the rules of format 0.19."""

import numpy as np
import pytest

from cobre.core.config import CutSelectionConfig, Level1Selection
from cobre.sddp.cut_pool import CutSet
from cobre.sddp.plugins.cut_selection import Capped, Level1, cut_selection

# Values at the states 0, 1 and 2: cut 0 is highest at 0; cuts 1 and 2 are equal everywhere; cut 3 owns nothing.
CUTS = CutSet(np.array([0.5, 0.0, 0.0, 0.1]), np.array([[0.0], [1.0], [1.0], [0.5]]))
STATES = np.array([[0.0], [1.0], [2.0]])
CREATED = np.array([1, 2, 2, 3], np.int32)
ACTIVE = np.ones(4, np.uint8)


def selection(**settings):
    return cut_selection(CutSelectionConfig(Level1Selection(), **settings), "0.19")


def test_each_state_keeps_oldest_best_cut():
    assert selection().choose(CUTS, STATES, CREATED, 3, ACTIVE).tolist() == [1, 1, 0, 0]


def test_new_cuts_are_not_spared_and_can_be_reactivated():
    chosen = selection().choose(CUTS, STATES[:1], CREATED, 3, np.zeros(4, np.uint8))
    assert chosen.tolist() == [1, 0, 0, 0]
    old = Level1(5, 1e-10).choose(CUTS, STATES[:1], CREATED, 3, ACTIVE)
    assert old.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("config", "version", "spares"),
    [
        (CutSelectionConfig(Level1Selection()), "0.19", True),
        (CutSelectionConfig(max_active_per_stage=3), "0.19", True),
        (CutSelectionConfig(Level1Selection()), "0.18", False),
        (CutSelectionConfig(max_active_per_stage=3), "0.18", False),
    ],
)
def test_first_stage_is_not_selected(config, version, spares):
    rule = cut_selection(config, version)
    assert rule is not None
    assert rule.spares_first_stage is spares


def test_cap_applies_after_selection():
    rule = selection(max_active_per_stage=1)
    assert isinstance(rule, Capped)
    assert int(rule.choose(CUTS, STATES, CREATED, 5, ACTIVE).sum()) == 1


# Values at the states of iterations 1 to 3: cut 0, of a stored policy, is best at the first two, cut 3 at the last.
STARTED = CutSet(np.array([2.0, 0.5, 0.4, -3.0]), np.array([[0.0], [0.0], [0.0], [3.0]]))
FROM_ELSEWHERE = np.array([0, 1, 2, 2], np.int32)


def apply_cap(limit, version):
    rule = cut_selection(CutSelectionConfig(max_active_per_stage=limit), version)
    assert rule is not None
    return rule.choose(STARTED, STATES, FROM_ELSEWHERE, 3, ACTIVE).tolist()


def test_cap_counts_and_removes_only_cuts_of_this_run():
    assert apply_cap(3, "0.19") == [1, 1, 1, 1]
    assert apply_cap(2, "0.19") == [1, 0, 1, 1]
    assert apply_cap(1, "0.19") == [1, 0, 0, 1]
    assert apply_cap(2, "0.18") == [1, 0, 0, 1]


def test_never_best_cut_ranks_by_its_iteration():
    """Cut 0 was best last in iteration 1; cut 1 never was, but is of iteration 2."""
    cuts = CutSet(np.array([1.0, 0.0, -1.0]), np.array([[0.0], [0.0], [1.5]]))
    created = np.array([1, 2, 2], np.int32)
    old, new = (cut_selection(CutSelectionConfig(max_active_per_stage=2), version) for version in ("0.18", "0.19"))
    states = np.array([[0.0], [2.0], [2.0]])
    assert old.choose(cuts, states, created, 3, np.ones(3, np.uint8)).tolist() == [1, 0, 1]
    assert new.choose(cuts, states, created, 3, np.ones(3, np.uint8)).tolist() == [0, 1, 1]

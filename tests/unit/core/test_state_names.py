"""Tests of building and parsing state names."""

import pytest

from cobre.core.stage_data import COMMITMENT, IN_TRANSIT, StateLayout, StateSlot
from cobre.core.state_names import INFLOW_LAG, STORAGE, StateName, StateOwners, entity_ids, kind_of, state_names

NAMES = {
    "storage:3": StateName(STORAGE, 3),
    "inflow_lag12:70": StateName(INFLOW_LAG, 70, 12),
    "commitment2:5": StateName(COMMITMENT, 5, 2),
    "in_transit1:0": StateName(IN_TRANSIT, 0, 1),
}


@pytest.mark.parametrize("text", NAMES)
def test_state_name_is_built_from_parts(text):
    assert StateName.parse(text) == NAMES[text]
    assert str(NAMES[text]) == text
    assert kind_of(text) == NAMES[text].kind


@pytest.mark.parametrize("text", ["", "storage", "storage2:3", "inflow_lag:3", "volume:3", "storage:x", "storage:3 "])
def test_unknown_state_name_raises(text):
    with pytest.raises(ValueError, match="not the name of a state"):
        StateName.parse(text)


def test_ids_of_a_kind_keep_their_order():
    names = ("storage:9", "storage:2", "commitment1:4", "inflow_lag1:9")
    assert entity_ids(names, STORAGE) == (9, 2)
    assert entity_ids(names, COMMITMENT) == (4,)


def test_vector_holds_storages_decided_states_lags_and_passed_states():
    layout = StateLayout((StateSlot(COMMITMENT, 1, 2),), (StateSlot(IN_TRANSIT, 0, 1),))
    names = state_names(StateOwners([7, 3], [10, 20]), layout, order=2)
    lags = ("inflow_lag1:7", "inflow_lag1:3", "inflow_lag2:7", "inflow_lag2:3")
    assert names == ("storage:7", "storage:3", "commitment2:20", *lags, "in_transit1:7")

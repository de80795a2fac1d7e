"""Power that is committed ahead and water in transit: bounds equal those of one LP over the whole tree."""

from dataclasses import replace

import numpy as np
import pytest
from ahead_cases import (
    MONTHS,
    ahead,
    ahead_hours,
    ahead_random,
    both,
    random_both,
    travelling,
    travelling_uneven,
)
from scenario_tree_lp import ScenarioTreeLp

import cobre
from cobre.io.case import load_case
from cobre.study.preparation.prepare import prepare

CASES = {
    "lead of two stages": ahead,
    "windows that end inside a stage": lambda: ahead(
        orders=[(MONTHS[0], "2024-01-11", 10.0), ("2024-01-11", MONTHS[2], 20.0)]
    ),
    "several decisions in one stage": lambda: ahead_hours(400.0, 2),
    "nothing decided ahead anywhere": lambda: ahead({"lead_time_hours": 100.0}, []),
    "uncertain, lead of one": lambda: ahead_random(1),
    "uncertain, lead of two": ahead_random,
    "uncertain, lead of three": lambda: ahead_random(3),
    "water under way": travelling,
    "water under way for four stages": lambda: travelling(2500.0),
    "longer under way than the study": lambda: travelling(5000.0, [("2023-01-01", "2024-01-01", 8.0)]),
    "uneven stages": lambda: travelling_uneven(350.0),
    "both": both,
    "uncertain, both": random_both,
    "uncertain, water for two stages": lambda: replace(
        travelling(1000.0), inflow={0: (10.0, 3.0), 1: (2.0, 0.5)}, openings=2, stages=4, iterations=60
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_bound_equals_optimum_of_tree(name, tmp_path):
    case = CASES[name]()
    folder = case.write(tmp_path)
    openings = prepare(load_case(folder)).problem.openings
    assert all((opening.realisations.inflow_m3s >= 0.0).all() for opening in openings)
    optimum = ScenarioTreeLp(case, [opening.realisations.inflow_m3s for opening in openings]).optimum()
    assert cobre.train(folder, threads=1).lower_bound == pytest.approx(optimum, rel=1e-8)


def test_ranks_and_threads_do_not_change_bits(tmp_path):
    folder = random_both().write(tmp_path)
    overrides = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 4}]}
    runs = [
        cobre.train(folder, threads=threads, num_workers=workers, config_overrides=overrides)
        for threads, workers in ((1, 1), (2, 1), (1, 2))
    ]
    assert len({run.digest for run in runs}) == 1


def test_policy_states_include_commitments_and_water_in_transit(tmp_path):
    result = cobre.train(both().write(tmp_path / "case"), threads=1)
    names = result.policy.state_names
    assert set(names) >= {
        "storage:0",
        "commitment1:1",
        "commitment2:1",
        "commitment3:2",
        "in_transit1:1",
        "in_transit2:1",
    }
    state = np.zeros(len(names))
    values = result.policy.commitment_values(2, state)
    assert values["commitment1:1"] > 0.0
    assert "storage:0" not in values


def test_saved_case_keeps_commitments_and_water_in_transit(tmp_path):
    case = load_case(both().write(tmp_path / "case"))
    cobre.save_case(case, tmp_path / "saved")
    again = load_case(tmp_path / "saved")
    assert again.initial_conditions == case.initial_conditions
    assert again.system.thermals == case.system.thermals
    assert again.post_study == case.post_study

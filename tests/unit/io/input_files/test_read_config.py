"""config.json: defaults, every setting, overrides, and what has no effect."""

import json
from dataclasses import replace

import pytest

from cobre.core.config import (
    CutSelectionConfig,
    DominationSelection,
    DynamicSelection,
    Level1Selection,
    OpeningsSource,
    SampledSimulation,
    ScenarioSource,
    SimulationConfig,
    YearRange,
)
from cobre.core.stopping import BoundStalling, IterationLimit, SimulationBased, TimeLimit
from cobre.io.decoding.json_documents import Document
from cobre.io.findings import Findings
from cobre.io.input_files.config import read_config
from cobre.io.input_files.config_overrides import with_overrides

LIMIT = {"type": "iteration_limit", "limit": 5}
LEAST = {"training": {"selection": {"method": "sampled", "forward_passes": 2}, "stopping_rules": [LIMIT]}}


def read(content, overrides=None):
    problems = Findings()
    return read_config(Document("config.json", content, json.dumps(content)), overrides, problems), problems


def with_training(**settings):
    return {"training": LEAST["training"] | settings}


def sound(content, overrides=None):
    config, problems = read(content, overrides)
    assert not list(problems), [str(problem) for problem in problems]
    return config


def warned(content):
    config, problems = read(content)
    assert config is not None
    return [problem.field for problem in problems.warnings]


def refused(content, overrides=None):
    config, problems = read(content, overrides)
    assert config is None
    return [str(problem) for problem in problems.errors]


def test_missing_settings_have_defaults():
    config = sound(LEAST)
    assert config.training.forward_passes == 2
    assert config.training.tree_seed == 42
    assert config.training.enabled
    assert config.training.stopping_rules == (IterationLimit(5),)
    assert config.training.cut_selection == CutSelectionConfig()
    assert config.simulation == SimulationConfig()
    assert config.modeling.cost_scale_factor == 1e6
    assert config.modeling.inflow_non_negativity.method == "penalty"
    assert config.policy.mode == "fresh"


def test_null_settings_have_defaults():
    content = with_training(tree_seed=None, scenario_source=None, cut_selection={"selection": None})
    content |= {
        "simulation": {"selection": None, "scenario_source": None, "solver": None},
        "modeling": {"cost_scale_factor": None},
        "policy": {"boundary": None, "checkpointing": {"enabled": None, "compress": None}},
        "upper_bound_evaluation": {"enabled": None, "lipschitz": {"mode": None}},
    }
    assert sound(content) == sound(LEAST)


def test_sign_of_seed_is_ignored():
    assert sound(with_training(tree_seed=-7)).training.tree_seed == 7


def test_stopping_rules_are_decoded():
    rules = [
        LIMIT,
        {"type": "time_limit", "seconds": 60},
        {"type": "bound_stalling", "iterations": 10, "tolerance": 1e-3},
        {"type": "simulation", "replications": 50, "period": 10},
    ]
    config = sound(with_training(stopping_rules=rules, stopping_mode="all"))
    assert config.training.stopping_rules == (
        IterationLimit(5),
        TimeLimit(60.0),
        BoundStalling(10, 1e-3),
        SimulationBased(50, 10),
    )
    assert config.training.stopping_mode == "all"


def test_missing_iteration_limit_is_reported():
    texts = refused(with_training(stopping_rules=[{"type": "time_limit", "seconds": 60}]))
    assert "there is no rule of type iteration_limit" in texts[0]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({"method": "level1"}, CutSelectionConfig(Level1Selection())),
        (
            {"method": "lml1", "check_frequency": 3, "tie_tolerance": 0},
            CutSelectionConfig(Level1Selection(3, 0.0, method="lml1")),
        ),
        (
            {"method": "domination", "domination_tolerance": 0.5},
            CutSelectionConfig(DominationSelection(domination_tolerance=0.5)),
        ),
        ({"method": "dynamic", "candidate_recency": 2}, CutSelectionConfig(DynamicSelection(candidate_recency=2))),
    ],
)
def test_cut_selection_is_decoded(selection, expected):
    assert sound(with_training(cut_selection={"selection": selection})).training.cut_selection == expected


def test_cut_selection_rejects_keys_of_other_methods():
    selection = {"method": "level1", "seed_window": 3}
    assert "seed_window" in refused(with_training(cut_selection={"selection": selection}))[0]


def test_scenario_sources_are_decoded():
    source = {
        "seed": 3,
        "historical_years": {"from": 1990, "to": 1992},
        "inflow": {"scheme": "historical"},
        "load": {"scheme": "out_of_sample"},
        "openings": {"source": "file"},
    }
    expected = ScenarioSource.of(
        "historical", "out_of_sample", seed=3, historical_years=YearRange(1990, 1992), openings=OpeningsSource("file")
    )
    drawn = {name: value for name, value in source.items() if name != "openings"}
    config = sound(with_training(scenario_source=source) | {"simulation": {"scenario_source": drawn}})
    assert config.training.scenario_source == expected
    assert config.simulation.scenario_source == replace(expected, openings=OpeningsSource("generated"))
    listed = source | {"historical_years": [1990, 1995]}
    assert sound(with_training(scenario_source=listed)).training.scenario_source.historical_years == (1990, 1995)


def test_years_in_wrong_order_are_reported():
    source = {"historical_years": {"from": 1992, "to": 1990}}
    assert "historical_years: goes from 1992 to 1990" in refused(with_training(scenario_source=source))[0]


@pytest.mark.parametrize("years", [{"from": 1990}, ["x"], 1990, {"from": 1990, "to": 1991, "by": 2}])
def test_malformed_years_are_reported(years):
    assert all(
        "historical_years" in text for text in refused(with_training(scenario_source={"historical_years": years}))
    )


def test_history_is_for_inflows_only():
    assert "load.scheme" in refused(with_training(scenario_source={"load": {"scheme": "historical"}}))[0]


def test_effective_solver_settings_are_decoded():
    profile = {"primal_feasibility_tolerance": 1e-8}
    solver = {"retry_max_attempts": 2, "forward": profile, "backward": profile}
    config = sound(with_training(solver=solver))
    assert config.training.solver.effective == (2, 1e-8, None)


def test_tighter_of_two_tolerances_is_used():
    solver = {"forward": {"dual_feasibility_tolerance": 1e-6}, "backward": {"dual_feasibility_tolerance": 1e-9}}
    config, problems = read(with_training(solver=solver))
    assert config.training.solver.dual_feasibility_tolerance == 1e-9
    assert len(problems.warnings) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dual_edge_weight", "steepest_edge"),
        ("price", "row"),
        ("presolve", "on"),
        ("scale", "off"),
        ("cost_perturbation", 0.0),
        ("factor_pivot_threshold", 0.1),
        ("refactor_error_tolerance", 1e-8),
        ("simplex_update_limit", 100),
        ("steepest_edge_devex_fallback_threshold", 10.0),
        ("use_warm_start", False),
    ],
)
def test_ineffective_solver_settings_are_reported(name, value):
    assert warned(with_training(solver={"backward": {name: value}})) == [f"training.solver.backward.{name}"]
    assert warned(LEAST | {"simulation": {"solver": {name: value}}}) == [f"simulation.solver.{name}"]


def test_other_ineffective_settings_are_reported():
    scheduler = {"backward_scheduler": {"method": "by_node", "block_size": 2}}
    assert warned(with_training(parallelism=scheduler)) == ["training.parallelism.backward_scheduler"]
    assert warned(LEAST | {"upper_bound_evaluation": {"enabled": True}}) == ["upper_bound_evaluation"]
    assert warned(LEAST | {"simulation": {"io_channel_capacity": 8}}) == ["simulation.io_channel_capacity"]
    openings = {"scenario_source": {"openings": {"source": "file"}}}
    assert warned(LEAST | {"simulation": openings}) == ["simulation.scenario_source.openings"]
    budget = "retry_time_budget_seconds"
    assert warned(with_training(solver={budget: 5.0})) == [f"training.solver.{budget}"]
    activity = {"row_activity_tolerance": 1e-6}
    assert warned(with_training(cut_selection=activity)) == ["training.cut_selection.row_activity_tolerance"]
    for setting in ({"compress": True}, {"store_basis": False}):
        (name,) = setting
        assert warned(LEAST | {"policy": {"checkpointing": setting}}) == [f"policy.checkpointing.{name}"]
    assert warned(LEAST | {"policy": {"checkpointing": {"compress": False, "store_basis": True}}}) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed_window", 3), ("max_added_per_round", 2), ("violation_tolerance", 1e-6), ("start_iteration", 5)],
)
def test_fixed_rules_of_dynamic_selection_are_reported(name, value):
    selection = {"method": "dynamic", name: value}
    place = f"training.cut_selection.selection.{name}"
    assert warned(with_training(cut_selection={"selection": selection})) == [place]


def test_start_iteration_affects_windowed_selection():
    selection = {"method": "dynamic", "start_iteration": 5, "candidate_recency": 3, "seed_window": 2}
    assert warned(with_training(cut_selection={"selection": selection})) == []


def test_overrides_are_merged_before_checking():
    overrides = {
        "training.tree_seed": 7,
        "training.selection.forward_passes": 9,
        "simulation": {"enabled": True},
        "policy.checkpointing.enabled": True,
        "training.stopping_rules": ({"type": "iteration_limit", "limit": 1},),
    }
    config = sound(LEAST | {"simulation": {"selection": {"method": "sampled", "num_scenarios": 3}}}, overrides)
    assert config.training.tree_seed == 7
    assert config.training.forward_passes == 9
    assert config.simulation == SimulationConfig(enabled=True, selection=SampledSimulation(3))
    assert config.policy.checkpointing.enabled
    assert config.training.stopping_rules == (IterationLimit(1),)


def test_overrides_do_not_change_the_given_config():
    content = with_training()
    read(content, {"training.selection.forward_passes": 9})
    assert content == with_training()


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ({"training.tree_sed": 1}, "did you mean `tree_seed`?"),
        ({"training.tree_seed.deep": 1}, "training.tree_seed: is an object"),
        ({"training.selection.method.deep": 1}, "override training.selection.method.deep: `method` is not an object"),
        ({"policy.path": object()}, "override policy.path: has a value of type object"),
        (
            {"training.tree_seed": "x"},
            "override training.tree_seed: is 'x' (expected a whole number)",
        ),
        (
            {"training.selection.method": "some"},
            "override training.selection.method: `method` is 'some'",
        ),
    ],
)
def test_invalid_overrides_are_reported(override, text):
    texts = refused(LEAST, override)
    assert any(text in line for line in texts), texts


def test_errors_of_the_file_do_not_blame_overrides():
    content = with_training()
    content["training"]["tree_seed"] = "x"
    [text] = refused(content, {"training.selection.forward_passes": 9})
    assert "training.tree_seed: is 'x' (expected a whole number)" in text


def test_override_with_another_method_replaces_the_object():
    merged = with_overrides(with_training(), {"training.selection": {"method": "enumerated"}}, Findings())
    assert merged["training"]["selection"] == {"method": "enumerated"}
    passes = with_overrides(with_training(), {"training.selection": {"forward_passes": 9}}, Findings())
    assert passes["training"]["selection"] == with_training()["training"]["selection"] | {"forward_passes": 9}

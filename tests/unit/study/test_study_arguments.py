"""Arguments of `train` and `simulate`: which are accepted, and how others are refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import cobre
from cobre.core.case import changed as with_fields
from cobre.study.arguments import checked_count, checked_seconds
from cobre.study.placement import WorldRequest, script_placement

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_reservoirs"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"iterations": 0}, "iterations: expected 1 to 10000000, got 0"),
        ({"iterations": 2.5}, "iterations: expected a whole number, got 2.5"),
        ({"threads": -1}, "threads: expected 1 to 1024, got -1"),
        ({"threads": 10**7}, "threads: expected 1 to 1024"),
        ({"threads": "2"}, "threads: expected a whole number, got '2'"),
        ({"checkpoint_every": 0}, "checkpoint_every: expected 1 or more"),
        ({"time_limit_s": float("nan")}, "time_limit_s: expected a number of seconds, 0 or more"),
        ({"time_limit_s": 10**400}, "time_limit_s: expected a number of seconds, 0 or more"),
        ({"iterations": True}, "iterations: expected a whole number, got True"),
        ({"iterations": np.float64(2)}, "iterations: expected a whole number"),
        ({"iterations": np.int64(0)}, "iterations: expected 1 to 10000000, got 0"),
        ({"checkpoint_every": None}, "checkpoint_every: expected a whole number, got None"),
        ({"time_limit_s": "x"}, "time_limit_s: expected a number of seconds, got 'x'"),
        ({"warm_start": 5}, "warm_start: expected a policy or the path of one, got 5"),
    ],
)
def test_train_rejects_invalid_arguments(arguments, words):
    with pytest.raises((TypeError, ValueError), match="^" + words.replace(".", r"\.")):
        cobre.train(EXAMPLE, **arguments)


@pytest.mark.parametrize(
    ("policy", "arguments", "words"),
    [
        ("somewhere", {"scenarios": 0}, "scenarios: expected 1 to 10000000"),
        (None, {}, "policy: expected a policy or the path"),
    ],
)
def test_simulate_rejects_invalid_arguments(policy, arguments, words):
    with pytest.raises((TypeError, ValueError), match=words):
        cobre.simulate(EXAMPLE, policy, **arguments)


def test_numpy_numbers_are_accepted():
    result = cobre.train(
        EXAMPLE, iterations=np.int64(2), threads=np.int8(1), num_workers=np.uint16(1), time_limit_s=np.float32(3600)
    )
    assert result.digest == cobre.train(EXAMPLE, iterations=2, threads=1).digest
    simulated = cobre.simulate(EXAMPLE, result.policy, scenarios=np.int32(3), threads=np.array(1))
    assert len(simulated.scenario_costs) == 3


def test_checked_numbers_are_plain_python_numbers():
    assert [type(checked_count("n", number)) for number in (np.int64(3), np.array(3), 3)] == [int] * 3
    assert [type(checked_seconds("s", number)) for number in (np.float32(3), np.int64(3), 3)] == [float] * 3
    assert type(script_placement(WorldRequest("auto", np.int64(2))).size) is int
    assert (checked_count("n", None), checked_seconds("s", None)) == (None, None)


@pytest.fixture(scope="module")
def case():
    return cobre.load_case(EXAMPLE)


WRONG = {
    "forward_passes": (
        {"config.training.selection.forward_passes": 0},
        r"forward_passes: is 0 \(expected at least 1\)",
    ),
    "no bus": ({"system.thermals[0].bus_id": 77}, "there is no bus 77"),
    "no number": ({"system.hydros[0].reservoir.max_storage_hm3": float("nan")}, "max_storage_hm3: is nan"),
    "negative maximum": (
        {"system.hydros[0].reservoir.max_storage_hm3": -1.0},
        r"max_storage_hm3: is -1 \(expected at least 0\)",
    ),
    "no rule": ({"config.simulation.selection.num_scenarios": -1}, "num_scenarios: is -1"),
    "no record": ({"config.policy": None}, "a wrong type"),
}


@pytest.mark.parametrize(("values", "words"), WRONG.values(), ids=WRONG)
def test_case_object_is_validated_like_files(case, values, words, tmp_path):
    broken = with_fields(case, values)
    for use in (
        lambda: cobre.train(broken, iterations=1),
        lambda: cobre.simulate(broken, tmp_path / "policy"),
        lambda: cobre.save_case(broken, tmp_path / "saved"),
    ):
        with pytest.raises(cobre.InvalidCaseError, match=words):
            use()
    assert not list(tmp_path.iterdir())


def test_case_without_stopping_rule_raises(case):
    without_rules = {"config.training.stopping_rules": ()}
    with pytest.raises(cobre.InvalidCaseError, match="no rule of type iteration_limit"):
        cobre.changed(case, without_rules)
    with pytest.raises(cobre.InvalidCaseError, match="no rule of type iteration_limit"):
        cobre.train(with_fields(case, without_rules))


def test_order_of_entities_of_a_changed_case_does_not_matter(case):
    turned = cobre.changed(case, {"system.hydros": case.system.hydros[::-1]})
    assert cobre.train(turned, iterations=1).digest == cobre.train(case, iterations=1).digest


def tables(stats):
    mean = stats["mean_m3s"]
    return {
        "missing": ({name: values for name, values in stats.items() if name != "mean_m3s"}, "mean_m3s: the column is"),
        "not finite": ({**stats, "mean_m3s": np.where(np.arange(mean.size) == 3, np.inf, mean)}, "is inf in row 3"),
        "short": ({**stats, "mean_m3s": mean[1:]}, "columns of several lengths"),
        "whole": ({**stats, "mean_m3s": mean.astype(np.int64)}, "mean_m3s: expected floating-point numbers, got int64"),
        "large id": (
            {**stats, "hydro_id": stats["hydro_id"].astype(np.int64) + 2**40},
            "hydro_id: is 1099511627776 in row 0",
        ),
    }


@pytest.mark.parametrize("kind", ["missing", "not finite", "short", "whole", "large id"])
def test_tables_of_a_changed_case_are_checked(case, kind):
    table, words = tables(case.scenarios.inflow_seasonal_stats)[kind]
    with pytest.raises(cobre.InvalidCaseError, match=words):
        cobre.train(cobre.changed(case, {"scenarios.inflow_seasonal_stats": table}), iterations=1)


def test_overrides_of_loaded_case_raise(case):
    with pytest.raises(ValueError, match="config_overrides apply when a case is read"):
        cobre.train(case, config_overrides={"training.tree_seed": 1})


@pytest.fixture(scope="module")
def train_case(case):
    return cobre.train(case, iterations=1)


@pytest.mark.parametrize("ask", ["water_values", "evaluate", "cost_to_go"])
def test_infinite_state_raises(train_case, ask):
    state = [300.0] * train_case.policy.dimension
    state[1] = float("nan")
    with pytest.raises(ValueError, match=f"state entries must be finite: {train_case.policy.state_names[1]} is nan"):
        getattr(train_case.policy, ask)(0, state)


def test_state_of_wrong_length_raises(train_case):
    state = [float("inf")] * train_case.policy.dimension
    with pytest.raises(ValueError, match=f"{train_case.policy.state_names[0]} is inf"):
        train_case.water_values(state)
    with pytest.raises(ValueError, match=train_case.policy.state_names[0]):
        train_case.water_values(state[1:])


def test_out_of_range_numbers_raise(tmp_path):
    case = shutil.copytree(EXAMPLE, tmp_path / "case")
    file = case / "penalties.json"
    content = json.loads(file.read_text())
    content["bus"]["excess_cost"] = 1e308
    file.write_text(json.dumps(content))
    [problem] = cobre.validate(case).errors
    assert (problem.file, problem.field) == ("penalties.json", "bus.excess_cost")
    assert "1e+308" in str(problem)
    assert "between -1e+20 and 1e+20" in str(problem)


def test_huge_counts_raise(tmp_path):
    case = shutil.copytree(EXAMPLE, tmp_path / "case")
    report = cobre.validate(case, {"training.selection": {"method": "sampled", "forward_passes": 2**63}})
    assert "forward_passes" in str(report.errors[0])

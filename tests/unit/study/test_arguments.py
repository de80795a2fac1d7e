import json
import shutil
from pathlib import Path

import pytest

import cobre

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_reservoirs"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"iterations": 0}, "iterations must be 1 or more, not 0"),
        ({"iterations": 2.5}, "iterations must be a whole number, not 2.5"),
        ({"threads": -1}, "threads must be 1 to 1024, not -1"),
        ({"threads": 10**7}, "threads must be 1 to 1024"),
        ({"threads": "2"}, "threads must be a whole number, not '2'"),
        ({"checkpoint_every": 0}, "checkpoint_every must be 1 or more"),
        ({"time_limit_s": float("nan")}, "time_limit_s must be a number of seconds from 0 on"),
        ({"time_limit_s": "x"}, "time_limit_s must be a number of seconds, not 'x'"),
        ({"warm_start": 5}, "warm_start must be a policy or the path of one, not 5"),
    ],
)
def test_what_train_refuses(arguments, words):
    with pytest.raises((TypeError, ValueError), match="^" + words.replace(".", r"\.")):
        cobre.train(EXAMPLE, **arguments)


@pytest.mark.parametrize(
    ("policy", "arguments", "words"),
    [("somewhere", {"scenarios": 0}, "scenarios must be 1 or more"), (None, {}, "policy must be a policy or the path")],
)
def test_what_simulate_refuses(policy, arguments, words):
    with pytest.raises((TypeError, ValueError), match=words):
        cobre.simulate(EXAMPLE, policy, **arguments)


def test_numbers_that_mean_nothing_are_refused(tmp_path):
    case = shutil.copytree(EXAMPLE, tmp_path / "case")
    file = case / "penalties.json"
    content = json.loads(file.read_text())
    content["bus"]["excess_cost"] = 1e308
    file.write_text(json.dumps(content))
    [problem] = cobre.validate(case).errors
    assert (problem.file, problem.field) == ("penalties.json", "bus.excess_cost")
    assert "1e+308" in str(problem)
    assert "at most 1e+20" in str(problem)


def test_counts_that_no_memory_holds_are_refused(tmp_path):
    case = shutil.copytree(EXAMPLE, tmp_path / "case")
    report = cobre.validate(case, {"training.selection": {"method": "sampled", "forward_passes": 2**63}})
    assert "forward_passes" in str(report.errors[0])

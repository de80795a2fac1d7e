"""Rules of format 0.19 on small cases: what novomodelo 0.19.1 found (and cobre-python 0.18.0 for 0.18), and finds."""

import json
import subprocess
from dataclasses import replace

import pytest
from format_019_cases import AT_REST, CONSTRAINED, EVERYTHING, STARTING, TRUNCATED, PlantCase
from peer import TIMEOUT_S, novomodelo_python

import cobre

# Lower bounds in $ after four iterations, as the programs printed them.
OF_TRUNCATION = {
    ("0.19", "truncation_with_penalty", 1.0): 22621523.094324686,
    ("0.19", "truncation_with_penalty", 1e5): 25487592.689531717,
    ("0.19", "truncation", 1.0): 22563031.878095973,
    ("0.18", "truncation_with_penalty", 1.0): 5798510.637561917,
    ("0.18", "truncation_with_penalty", 1e5): 21650531.878095973,
    ("0.18", "truncation", 1.0): 21650531.87809598,
}
OF_PLANTS_AT_REST = {
    "outflow": 56468958.333333336,
    "turbined": 49168958.333333336,
    "generation": 49168958.333333336,
    "filling": 52558124.99999999,
}
OF_CONSTRAINTS = {
    "volume by hour": 33876918.33333332,
    "volume once": 18712260.33333333,
    "flow by hour": 51603124.99999999,
    "flow once": 18736542.808219172,
    "arithmetic": 18712260.33333333,
    "expression": 18712260.33333333,
}
OF_FIRST_VOLUMES = {
    ("0.19", "above"): 18691458.33333333,
    ("0.19", "below"): 23585624.99999999,
    ("0.18", "above"): 19385902.777777776,
    ("0.18", "below"): 20080347.222222224,
}
PROGRAM = """
import json, sys, novomodelo.run
runs = [novomodelo.run.run(case, output_dir=case + "_output", threads=1) for case in sys.argv[1:]]
print(json.dumps([run["lower_bound"] for run in runs]))
"""


def bound(case: PlantCase, folder) -> float:
    return cobre.train(case.write(folder)).lower_bound


@pytest.mark.parametrize("key", OF_TRUNCATION, ids=str)
def test_negative_inflows_are_those_of_the_format(tmp_path, key):
    assert bound(TRUNCATED[key], tmp_path) == pytest.approx(OF_TRUNCATION[key], rel=1e-9)


@pytest.mark.parametrize("name", OF_PLANTS_AT_REST)
def test_minimums_cost_before_a_plant_is_in_service(tmp_path, name):
    """By the rules of 0.19; in cases of 0.18 they cost nothing, by intention, though cobre-python charges for them."""
    assert bound(AT_REST[name], tmp_path / "new") == pytest.approx(OF_PLANTS_AT_REST[name], rel=1e-9)
    units = {"outflow": 5.0}.get(name, 4.0)
    old = bound(replace(AT_REST[name], version="0.18"), tmp_path / "old")
    assert old == pytest.approx(OF_PLANTS_AT_REST[name] - units * 730.0 * 10_000.0, rel=1e-9)


@pytest.mark.parametrize("name", OF_CONSTRAINTS)
def test_constraints_are_those_of_format_019(tmp_path, name):
    assert bound(CONSTRAINED[name], tmp_path) == pytest.approx(OF_CONSTRAINTS[name], rel=1e-9)


@pytest.mark.parametrize("key", OF_FIRST_VOLUMES, ids=str)
def test_first_volumes_outside_the_limits_of_the_first_stage(tmp_path, key):
    """0.19 starts from the volume that is given; 0.18 moves it to the nearest limit of the stage."""
    assert bound(STARTING[key], tmp_path) == pytest.approx(OF_FIRST_VOLUMES[key], rel=1e-9)


def test_novomodelo_finds_the_same_today(tmp_path):
    python = novomodelo_python()
    folders = [case.write(tmp_path / str(number)) for number, case in enumerate(EVERYTHING.values())]
    done = subprocess.run(
        [python, "-I", "-c", PROGRAM, *folders], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = [cobre.train(folder).lower_bound for folder in folders]
    assert ours == pytest.approx(theirs, rel=1e-9)

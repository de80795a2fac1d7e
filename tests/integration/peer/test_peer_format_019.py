"""Rules of format 0.19 on small cases, with the results of novomodelo 0.19.1 (and of cobre-python 0.18.0 for 0.18)."""

import json
import subprocess
from dataclasses import replace

import pytest
from format_019_cases import AT_REST, CONSTRAINED, EVERYTHING, PASSING, REACHED, STARTING, TRUNCATED, PlantCase
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
OF_PASSING_INFLOWS = {
    ("0.19", "truncation_with_penalty", "dear"): 20072840.87048501,
    ("0.19", "truncation_with_penalty", "cheap"): 17269024.70567853,
    ("0.19", "truncation_with_penalty", "dry"): 96425625.5970497,
    ("0.19", "truncation", "dear"): 17211803.967621256,
    ("0.19", "penalty", "cheap"): 3918884.61106682,
    ("0.18", "truncation_with_penalty", "dear"): 15041458.33333333,
    ("0.18", "truncation_with_penalty", "cheap"): 10389077.08333333,
    ("0.18", "truncation_with_penalty", "dry"): 18930347.22222222,
    ("0.18", "truncation", "dear"): 15041458.33333333,
    ("0.18", "penalty", "cheap"): 14175192.44253997,
}
OF_REACHED_MINIMUMS = 21469236.11111111  # one number: water may be used in any stage, and has the same value in all
PROGRAM = """
import json, sys, novomodelo.run
runs = [novomodelo.run.run(case, output_dir=case + "_output", threads=1) for case in sys.argv[1:]]
print(json.dumps([run["lower_bound"] for run in runs]))
"""


def bound(case: PlantCase, folder) -> float:
    return cobre.train(case.write(folder)).lower_bound


@pytest.mark.parametrize("key", OF_TRUNCATION, ids=str)
def test_negative_inflows_follow_format(tmp_path, key):
    assert bound(TRUNCATED[key], tmp_path) == pytest.approx(OF_TRUNCATION[key], rel=1e-9)


@pytest.mark.parametrize("name", OF_PLANTS_AT_REST)
def test_minimums_cost_before_a_plant_is_in_service(tmp_path, name):
    """Minimums are charged in cases of 0.19. In those of 0.18 they cost nothing, on purpose; cobre-python charges."""
    assert bound(AT_REST[name], tmp_path / "new") == pytest.approx(OF_PLANTS_AT_REST[name], rel=1e-9)
    units = {"outflow": 5.0}.get(name, 4.0)
    old = bound(replace(AT_REST[name], version="0.18"), tmp_path / "old")
    assert old == pytest.approx(OF_PLANTS_AT_REST[name] - units * 730.0 * 10_000.0, rel=1e-9)


@pytest.mark.parametrize("name", OF_CONSTRAINTS)
def test_constraints_follow_format_019(tmp_path, name):
    assert bound(CONSTRAINED[name], tmp_path) == pytest.approx(OF_CONSTRAINTS[name], rel=1e-9)


@pytest.mark.parametrize("key", OF_FIRST_VOLUMES, ids=str)
def test_initial_storage_outside_first_stage_limits(tmp_path, key):
    """0.19 starts from the volume that is given; 0.18 moves it to the nearest limit of the stage."""
    assert bound(STARTING[key], tmp_path) == pytest.approx(OF_FIRST_VOLUMES[key], rel=1e-9)


@pytest.mark.parametrize("key", OF_PASSING_INFLOWS, ids=str)
def test_negative_inflows_at_plants_out_of_service(tmp_path, key):
    """0.19 corrects them at the plant's own price; 0.18 takes them from the next plant downstream."""
    assert bound(PASSING[key], tmp_path) == pytest.approx(OF_PASSING_INFLOWS[key], rel=1e-9)


@pytest.mark.parametrize("key", REACHED, ids=str)
def test_reachable_minimum_storage_is_hard(tmp_path, key):
    folder = REACHED[key].write(tmp_path)
    assert cobre.train(folder).lower_bound == pytest.approx(OF_REACHED_MINIMUMS, rel=1e-9)
    assert "may be violated" not in str(cobre.validate(folder).warnings)


@pytest.mark.parametrize(("blocks", "limit", "short_hm3"), [(1, 200.0, 8.02), (2, 180.0, 34.01), (2, 200.0, 54.01)])
def test_unreachable_minimum_storage_has_a_price(tmp_path, blocks, limit, short_hm3):
    """Novomodelo 0.19.1 stops with an infeasible first stage; the shortfall costs 10,000 $/hm3 here."""
    case = replace(REACHED[1, 180.0], blocks=blocks, limits_hm3=(limit, 1000.0))
    assert bound(case, tmp_path) == pytest.approx(OF_REACHED_MINIMUMS + short_hm3 * 10_000.0, rel=1e-9)


def test_rising_minimum_storage_is_met_as_far_as_it_pays(tmp_path):
    """All water but 500 hm3 is turbined: 300 hm3, and 35, 42.5 and 46.25 m3/s in months of 730 hours.

    A forward pass without cuts empties the reservoir first, which ends Novomodelo's training with an infeasible stage.
    """
    case = PlantCase(method="truncation_with_penalty", limits_hm3=(500.0, 1000.0), limited=2, storage_price=1e6)
    hm3_per_m3s = 0.0036 * 730.0
    turbined_m3s = (300.0 - 500.0) / hm3_per_m3s + 35.0 + 42.5 + 46.25
    assert bound(case, tmp_path) == pytest.approx(50.0 * 730.0 * (750.0 - turbined_m3s), rel=1e-9)


def test_validation_names_minimums_out_of_reach(tmp_path):
    case = replace(REACHED[1, 180.0], limits_hm3=(200.0, 1000.0))
    found = [str(warning) for warning in cobre.validate(case.write(tmp_path)).warnings if "violated" in str(warning)]
    assert len(found) == 1
    for part in (
        "hydro_bounds.parquet",
        "hydro 0 (H0)",
        "with 100 hm3",
        "stage 0 with 200 hm3",
        "191.98",
        "10,000 $/hm3",
    ):
        assert part in found[0]


def test_installed_novomodelo_agrees(tmp_path):
    python = novomodelo_python()
    folders = [case.write(tmp_path / str(number)) for number, case in enumerate(EVERYTHING.values())]
    done = subprocess.run(
        [python, "-I", "-c", PROGRAM, *folders], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = [cobre.train(folder).lower_bound for folder in folders]
    assert ours == pytest.approx(theirs, rel=1e-9)

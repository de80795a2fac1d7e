"""Families of tailrace curves that make no sense, or have no effect."""

import pytest
from validation_case import findings_after

FILE = "system/tailrace_curves.parquet"
SOUND = {
    "hydro_id": [2, 2],
    "family_id": [1, 1],
    "segment_id": [1, 2],
    "downstream_reference_level_m": [5.0, 5.0],
    "outflow_min_m3s": [0.0, 50.0],
    "outflow_max_m3s": [50.0, 100.0],
    "coefficient_0": [1.0, 1.0],
    "coefficient_1": [0.0, 0.0],
    "coefficient_2": [0.0, 0.0],
    "coefficient_3": [0.0, 0.0],
    "coefficient_4": [0.0, 0.0],
}


def curves(**changed):
    def corrupt(documents, tables):
        tables[FILE] = SOUND | changed

    return corrupt


WRONG = {
    "gap": ({"outflow_min_m3s": [0.0, 60.0]}, "hydro 2, family 1, outflow_min_m3s: there is a gap between 50 and 60"),
    "overlap": ({"outflow_min_m3s": [0.0, 40.0]}, "outflow_min_m3s: there is an overlap between 50 and 40"),
    "step": ({"coefficient_0": [1.0, 1.005]}, "coefficient_0: the level jumps from 1 to 1.005 m at 50 m3/s"),
    "backwards": (
        {"outflow_max_m3s": [50.0, 40.0]},
        "family 1, segment 2, outflow_max_m3s: is 40 (expected at least outflow_min",
    ),
    "negative": ({"outflow_min_m3s": [-5.0, 50.0]}, "segment 1, outflow_min_m3s: is -5 (expected at least 0)"),
    "level": (
        {"downstream_reference_level_m": [-1.0, -1.0]},
        "downstream_reference_level_m: is -1 (expected at least 0)",
    ),
    "two levels": ({"downstream_reference_level_m": [5.0, 6.0]}, "differs from segment to segment"),
    "same level": (
        {"family_id": [1, 2]},
        "hydro 2, downstream_reference_level_m: families 1, 2 have the same level, 5",
    ),
    "twice": ({"segment_id": [1, 1]}, "hydro 2, family 1, segment 1: appears 2 times"),
    "nobody": ({"hydro_id": [7, 7]}, "there is no hydro 7"),
    "not a number": ({"coefficient_3": [float("nan"), 0.0]}, "coefficient_3: is not a finite number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_tailrace_curves_are_reported(tmp_path, name):
    changed, message = WRONG[name]
    found = findings_after(tmp_path / "case", curves(**changed))
    assert any(message in str(problem) and FILE in str(problem) for problem in found.errors), list(map(str, found))


def test_millimetre_steps_are_accepted(tmp_path):
    assert not findings_after(tmp_path / "case", curves(coefficient_0=[1.0, 1.001])).errors


def test_unused_curves_give_warning(tmp_path):
    found = findings_after(tmp_path / "case", curves(hydro_id=[0, 0]))
    assert not found.errors
    assert any("its curves are not used: no stage uses computed planes" in str(one) for one in found.warnings)

"""Two of four stages, valued at their end by the policy of all four, cost as much as the four."""

import json

import pytest
from ahead_cases import LOADS, travelling
from boundary_cases import AFTER, FIRST, WHOLE, water, water_and_power, with_boundary

import cobre
import cobre.run
from cobre.errors import CobreError
from cobre.io.case import load_case
from cobre.study.preparation.prepare import prepare

RANDOM = {"inflow": {0: (10.0, 4.0), 1: (2.0, 1.0)}, "openings": 3, "iterations": 60, "forward_passes": 2}


def trained_whole(case, folder):
    cobre.run.run(case.write(folder / "whole"), folder / "out", threads=1)
    return json.loads((folder / "out" / "summary.json").read_text())["lower_bound"]


def first_stages(case, folder, **settings):
    return with_boundary(case.write(folder / "first"), folder / "out" / "policy", **settings)


@pytest.mark.parametrize(
    ("delay", "after"),
    [(400.0, "none"), (1000.0, "alike"), (1000.0, "halves"), (1000.0, "one of two"), (1600.0, "none")],
)
def test_water_in_transit_at_horizon_end_is_valued(tmp_path, delay, after):
    """Water released before the study that arrives after it is valued with and without post_study_stages.json."""
    cost = trained_whole(water(WHOLE, delay), tmp_path)
    first = cobre.train(first_stages(water(FIRST, delay, AFTER[after]), tmp_path), threads=1)
    assert first.lower_bound == pytest.approx(cost, rel=1e-9)
    assert first.upper_bound == pytest.approx(cost, rel=1e-9)
    without = cobre.train(water(FIRST, delay).write(tmp_path / "without"), threads=1)
    assert without.lower_bound < 0.9 * cost


def test_water_travels_by_block_hours_not_dates(tmp_path):
    """The policy knows the block hours of its stages: water travels by them, not by the calendar."""
    whole = travelling(stages=WHOLE, load={0: list(LOADS[:WHOLE])})  # 730 hours in each month
    first = travelling(stages=FIRST, load={0: list(LOADS[:FIRST])})
    cost = trained_whole(whole, tmp_path)
    assert cobre.train(first_stages(first, tmp_path), threads=1).lower_bound == pytest.approx(cost, rel=1e-9)


def test_commitments_and_transit_under_uncertain_inflow(tmp_path):
    cost = trained_whole(water_and_power(WHOLE, **RANDOM), tmp_path)
    case = first_stages(water_and_power(FIRST, AFTER["alike"], **RANDOM), tmp_path)
    assert cobre.train(case, threads=1).lower_bound == pytest.approx(cost, rel=1e-6)
    assert notes_of(case) == []


def test_unmatched_states_are_named(tmp_path):
    trained_whole(water_and_power(WHOLE), tmp_path)
    case = first_stages(water_and_power(FIRST, AFTER["one of two"]), tmp_path)
    [note] = notes_of(case)
    assert "does not have; they count as zero: commitment2:1, commitment2:2" in note
    assert "post_study_stages.json" in note
    with pytest.raises(CobreError, match="commitment2:1, commitment2:2"):
        cobre.train(with_boundary(case, tmp_path / "out" / "policy", strict=True), threads=1)


def test_water_unknown_to_policy_is_reported(tmp_path):
    trained_whole(water(WHOLE, None, windows=[]), tmp_path)
    [note] = notes_of(first_stages(water(FIRST), tmp_path))
    assert "what is on its way to hydro 1 then counts as zero" in note


def test_deliveries_unknown_to_policy_are_reported(tmp_path):
    trained_whole(water(WHOLE), tmp_path)
    case = first_stages(water_and_power(FIRST, AFTER["alike"]), tmp_path)
    [note] = notes_of(case)
    assert "this study has state variables that the policy does not value" in note
    assert note.endswith("count as zero: commitment2:1, commitment1:1, commitment1:2, commitment2:2")


def notes_of(case):
    """Return the notes about the boundary policy that a run begins with."""
    return [note for note in prepare(load_case(case)).notes if note.startswith("policy.boundary")]

"""Facts that a case states twice: validation reports differences."""

import pytest
from validation_case import assert_semantic_error, findings_after, put, put_columns

GAP = {"type": "gap", "tolerance": 1.0}
BLOCK = "stages.json:stages.1.blocks.0.hours"


def warnings_after(folder, corrupt):
    found = findings_after(folder, corrupt)
    assert not found.errors, [str(problem) for problem in found.errors]
    return [str(problem) for problem in found.warnings]


@pytest.mark.parametrize("hours", [7300.0, 7e14, 1500.0])
def test_hours_beyond_stage_dates_are_reported(tmp_path, hours):
    assert_semantic_error(tmp_path, put(BLOCK, hours), "but 2024-02-01 to 2024-03-01 has 696")


@pytest.mark.parametrize(("hours", "is_named"), [(366.0, False), (400.0, False), (430.0, True), (300.0, True)])
def test_slightly_different_hours_are_a_warning(tmp_path, hours, is_named):
    """The calendar and the average month of 730 hours are common; other differences are warnings."""
    found = [text for text in warnings_after(tmp_path, put(BLOCK, hours)) if "blocks.hours" in text]
    assert [("stage 1" in text and "has 696" in text) for text in found] == [True] * is_named


def test_season_far_from_dates_is_a_warning(tmp_path):
    found = warnings_after(tmp_path, put("stages.json:stages.1.season_id", 7))
    assert any("stage 1, season_id: is 7 (month 8), but 2024-02-01 to 2024-03-01 is" in text for text in found)
    assert not any("season_id" in text for text in warnings_after(tmp_path, put("stages.json:stages.1.season_id", 2)))


def test_load_factors_with_mean_other_than_one_are_a_warning(tmp_path):
    corrupt = put("scenarios/load_factors.json:load_factors.0.block_factors.0.factor", 2.0)
    found = warnings_after(tmp_path, corrupt)
    assert any("bus 0, stage 0, block_factors: the mean over the hours" in text for text in found)


def test_bound_far_above_capacity_is_a_warning(tmp_path):
    found = warnings_after(tmp_path, put_columns("thermal_bounds", max_generation_mw=[7000.0, 50.0]))
    assert any("thermal 0, stage 0, max_generation_mw: is 7000, and thermal 0 declares 60" in text for text in found)


@pytest.mark.parametrize("field", ["tolerance", "relative_tolerance"])
def test_negative_gaps_are_reported(tmp_path, field):
    rules = [GAP | {field: -5.0}, {"type": "iteration_limit", "limit": 3}]
    found = findings_after(tmp_path, put("config.json:training.stopping_rules", rules))
    assert any(field in str(error) and "-5" in str(error) for error in found.errors)

"""Warnings about unusual values, and unusual values without a warning."""

from datetime import date

import pytest
from validation_case import apply_all, drop, findings_after, put, put_columns

STAGES = "stages.json:stages"
HYDROS = "system/hydros.json:hydros"
PENALTIES = "penalties.json"
MODELS = "system/hydro_production_models.json:production_models"
SOURCE = "config.json:training.scenario_source"
INITIAL = "initial_conditions.json"
GROUP = "scenarios/correlation.json:profiles.default.correlation_groups.0"


def no_lags(documents, tables):
    del tables["scenarios/inflow_ar_coefficients.parquet"]
    del tables["scenarios/inflow_history.parquet"]


def filling(rate=40.0, start=0, entry=1):
    """Describe a plant that must gather 10 hm3 in 700 hours."""
    return apply_all(
        put(f"{HYDROS}.0.filling", {"start_stage_id": start, "filling_min_rate_m3s": rate}),
        put(f"{HYDROS}.0.entry_stage_id", entry),
        put(f"{INITIAL}:storage", [{"hydro_id": 1, "value_hm3": 50.0}, {"hydro_id": 2, "value_hm3": 50.0}]),
        put(f"{INITIAL}:filling_storage", [{"hydro_id": 0, "value_hm3": 0.0}]),
    )


WARNINGS = {
    "own price": (
        put(f"{HYDROS}.0.penalties.spillage_cost", 0.0),
        "penalties.spillage_cost: is 0: the optimal decision",
    ),
    "productivity": (
        put(f"{MODELS}.0.stage_ranges.0.productivity_mw_per_m3s", 0.0),
        "hydro 0 (H0), productivity_mw_per_m3s: is 0 in stages 0, 1, 2: the plant generates nothing there",
    ),
    "limit of a diversion that is not there": (
        put_columns("hydro_bounds", hydro_id=[1, 1], min_diversion_m3s=[0.0, 0.0], max_diversion_m3s=[0.0, 5.0]),
        "block 0, max_diversion_m3s: is 5, but the plant has no `diversion`: water that it diverts leaves the system",
    ),
    "power of machines at two buses": (
        put_columns("hydro_bounds", max_generation_mw=[None, 9.0]),
        "hydro 0 (H0), max_generation_mw: limits the machines at its 2 buses together",
    ),
    "geometry of one point": (
        put_columns("hydro_geometry", hydro_id=[2], volume_hm3=[50.0], height_m=[10.0], area_km2=[1.0]),
        "hydro 2 (H2): has 1 row although the storage varies",
    ),
    "gap": (
        apply_all(no_lags, put(f"{STAGES}.1.start_date", "2024-02-10")),
        "stage 1, start_date: is 2024-02-10, but stage 0 ends on 2024-02-01",
    ),
    "sobol": (
        apply_all(put(f"{STAGES}.0.sampling_method", "qmc_sobol"), put(f"{STAGES}.0.num_openings", 3)),
        "num_openings: is 3: Sobol",
    ),
    "lags": (
        put(f"{STAGES}.1.state_variables", {"storage": True, "inflow_lags": False}),
        "inflow_lags: is false in stage 1, but inflows depend on lags: lags are in the state anyway",
    ),
    "high storage": (
        put(f"{INITIAL}:storage.1.value_hm3", 150.0),
        "hydro 1 (H1), storage.value_hm3: is 150, outside the limits 10 to 100: the study starts from 100",
    ),
    "low storage": (
        put(f"{INITIAL}:storage.1.value_hm3", 5.0),
        "storage.value_hm3: is 5, outside the limits 10 to 100: the study starts from 10",
    ),
    "no storage": (
        put(f"{INITIAL}:storage", [{"hydro_id": 0, "value_hm3": 50.0}, {"hydro_id": 1, "value_hm3": 50.0}]),
        "hydro 2 (H2), storage.value_hm3: is missing, so it is taken as 0",
    ),
    "spillage": (
        put(f"{PENALTIES}:hydro.spillage_cost", 900.0),
        "outflow_violation_below_cost: is 500, not above the most expensive spillage or diversion, 900",
    ),
    "generation": (
        apply_all(
            put(f"{HYDROS}.0.generation.min_generation_mw", 1.0),
            put(f"{HYDROS}.0.unit_groups.0.min_generation_mw", 1.0),
            put(f"{PENALTIES}:hydro.generation_violation_below_cost", 1000.0),
        ),
        "hydro 0 (H0), generation_violation_below_cost: is 1000, not below the most expensive deficit, 1000",
    ),
    "ranges": (
        put(
            f"{MODELS}.0.stage_ranges",
            [{"start_stage_id": 0, "model": "constant_productivity", "productivity_mw_per_m3s": p} for p in (1.0, 2.0)],
        ),
        "stage_ranges[1]: stages 0, 1, 2: an earlier range",
    ),
    "planes": (
        put(f"{MODELS}.1.stage_ranges.0", {"start_stage_id": 0, "model": "constant_productivity"}),
        "hydro 1: its planes are not used",
    ),
    "years": (put(f"{SOURCE}.historical_years", [2019]), "historical_years: has no effect"),
    "negative inflow": (
        put(f"{INITIAL}:recent_observations.0.value_m3s", -3.0),
        "value_m3s: is -3: taken as incremental inflow",
    ),
    "negative load": (
        put_columns("load_seasonal_stats", mean_mw=[40.0] * 5 + [-1.0]),
        "bus 1, mean_mw: is negative in some row",
    ),
    "few years": (
        apply_all(
            drop("scenarios/inflow_ar_coefficients.parquet"),
            put_columns(
                "inflow_history",
                hydro_id=[0, 1, 2],
                start_date=[date(2020, 1, 1)] * 3,
                end_date=[date(2020, 2, 1)] * 3,
                value_m3s=[1.0] * 3,
            ),
        ),
        "hydro 0: some months have only 0 observations; 30 are recommended",
    ),
    "constraint": (
        put_columns(
            "generic_constraint_bounds",
            constraint_id=[0],
            stage_id=[0],
            block_id=[None],
            bound_lower=[None],
            bound_upper=[None],
        ),
        "constraint 1 (band): has no row",
    ),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_unusual_values_are_warned_about(tmp_path, name):
    corrupt, words = WARNINGS[name]
    problems = findings_after(tmp_path, corrupt)
    assert [str(problem) for problem in problems.errors] == []
    texts = [str(problem) for problem in problems.warnings]
    assert any(words in text for text in texts), texts


SOUND = {
    "filling": filling(),
    "filling by a row": apply_all(
        filling(rate=1.0),
        put_columns("hydro_bounds", stage_id=[0, 1], filling_min_rate_m3s=[40.0, None], block_id=[None, 1]),
    ),
    "no lags, no seasons": apply_all(no_lags, drop("stages.json:season_definitions")),
    "window of one volume": put(
        f"{MODELS}.2.stage_ranges.0.fpha_config",
        {"source": "computed", "fitting_window": {"volume_min_hm3": 50.0, "volume_max_hm3": 50.0}},
    ),
    "no flow in a diversion that is not there": put_columns(
        "hydro_bounds", hydro_id=[1, 1], min_diversion_m3s=[0.0, 0.0], max_diversion_m3s=[0.0, 0.0]
    ),
    "nearly singular": put(f"{GROUP}.matrix", [[1.0] * 3] * 3),
    "seasonal models": put(
        f"{MODELS}.0",
        {
            "hydro_id": 0,
            "selection_mode": "seasonal",
            "default_model": "constant_productivity",
            "seasons": [
                {"season_id": s, "model": "constant_productivity", "productivity_mw_per_m3s": 0.5} for s in range(3)
            ],
        },
    ),
    "productivity from the table": apply_all(
        put(f"{MODELS}.0.stage_ranges.0.productivity_mw_per_m3s", None),
        put_columns("hydro_energy_productivity", hydro_id=[0]),
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_valid_variants_have_no_problems(tmp_path, name):
    assert [str(problem) for problem in findings_after(tmp_path, SOUND[name])] == []

"""Conditions of a study beyond single files: the past, existing plants, rules and policies that fit."""

from datetime import date

import numpy as np
import pytest
from validation_case import apply_all, by_entity_and_stage, drop, findings_after, put, put_columns

from cobre.io.policies.policy_file import PolicyData, PolicyMetadata, StageCuts, write_policy

HYDROS = "system/hydros.json:hydros"
STATION = "system/pumping_stations.json:pumping_stations.0"
INITIAL = "initial_conditions.json"
RULES = "config.json:training.stopping_rules"
LIMIT = {"type": "iteration_limit", "limit": 3}
SIMULATION = {"type": "simulation", "replications": 10, "period": 2}


def observed(*windows, hydros=(0,)):
    return put(
        f"{INITIAL}:recent_observations",
        [
            {"hydro_id": id_, "start_date": start, "end_date": end, "value_m3s": 20.0}
            for id_ in hydros
            for start, end in windows
        ],
    )


def lags(*rows):
    """Return rows of (hydro, stage, lag) with a coefficient."""

    def corrupt(documents, tables):
        tables["scenarios/inflow_ar_coefficients.parquet"] = {
            "hydro_id": [row[0] for row in rows],
            "stage_id": [row[1] for row in rows],
            "lag": [row[2] for row in rows],
            "coefficient": [0.2] * len(rows),
        }
        # Seasons before the study count only if they have statistics.
        statistics = by_entity_and_stage("hydro_id", range(3), range(-3, 3), mean_m3s=20.0, std_m3s=4.0)
        tables["scenarios/inflow_seasonal_stats.parquet"] = statistics

    return corrupt


def pre_study(documents, tables):
    """Return three months before the study."""
    days = ("2023-10-01", "2023-11-01", "2023-12-01", "2024-01-01")
    documents["stages.json"]["pre_study_stages"] = [
        {"id": n - 3, "start_date": days[n], "end_date": days[n + 1], "season_id": 9 + n} for n in range(3)
    ]


def yearly(documents, tables):
    tables["scenarios/inflow_annual_component.parquet"] = by_entity_and_stage(
        "hydro_id", [1], annual_coefficient=0.1, annual_mean_m3s=20.0, annual_std_m3s=3.0
    )


DECEMBER = ("2023-12-01", "2024-01-01")
ERRORS = {
    "nothing observed": (
        observed(),
        "the first stages need lag 1, but not every day from 2023-12-01 to 2024-01-01 (exclusive) is covered",
    ),
    "a day is missing": (
        observed(("2023-12-01", "2023-12-15"), ("2023-12-16", "2024-01-01")),
        "the first stages need lag 1",
    ),
    "the second month": (
        apply_all(lags((0, 0, 1), (0, 0, 2)), pre_study, observed(DECEMBER)),
        "the first stages need lag 2, but not every day from 2023-11-01 to 2023-12-01",
    ),
    "a later stage looks back": (
        apply_all(lags((0, 1, 1), (0, 1, 2), (0, 1, 3)), pre_study, observed(DECEMBER)),
        "the first stages need lag 2",
    ),
    "a year": (
        apply_all(yearly, observed(DECEMBER, hydros=(0, 1))),
        "hydro 1 (H1), recent_observations: the first stages need lags 10, 11, 12",
    ),
    "pump from a plant that is not there yet": (
        put(f"{HYDROS}.2.entry_stage_id", 1),
        "pumping station 0 (P), source_hydro_id: hydro 2 (H2) does not exist in stage 0",
    ),
    "pump into a plant that is gone": (
        put(f"{HYDROS}.1.exit_stage_id", 1),
        "pumping station 0 (P), destination_hydro_id: hydro 1 (H1) does not exist in stages 1, 2",
    ),
    "a dead volume that is larger at the end of filling": (
        apply_all(
            put(f"{HYDROS}.0.filling", {"start_stage_id": 0, "filling_min_rate_m3s": 5.0}),
            put(f"{HYDROS}.0.entry_stage_id", 1),
            put(f"{INITIAL}:storage", [{"hydro_id": 1, "value_hm3": 50.0}, {"hydro_id": 2, "value_hm3": 50.0}]),
            put(f"{INITIAL}:filling_storage", [{"hydro_id": 0, "value_hm3": 0.0}]),
            put_columns("hydro_bounds", stage_id=[0, 1], block_id=[None, None], min_storage_hm3=[30.0, None]),
        ),
        "filling.filling_min_rate_m3s: is too low: 13.14 hm3 are reached before stage 1, and the dead volume is 30 hm3",
    ),
    "a mean with a risk measure": (
        apply_all(
            put(RULES, [LIMIT, SIMULATION]),
            put("stages.json:stages.1.risk_measure", {"cvar": {"alpha": 0.5, "lambda": 0.3}}),
        ),
        "the rule `simulation` compares means, but the risk measure is not the expectation in stage 1",
    ),
    "a boundary that is not there": (
        put("config.json:policy", {"boundary": {"path": "nowhere"}}),
        "policy.boundary.path: ",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(tmp_path, name):
    corrupt, words = ERRORS[name]
    texts = [str(problem) for problem in findings_after(tmp_path, corrupt).errors]
    assert len(texts) == 1, texts
    assert words in texts[0]


def seasons_without_statistics(documents, tables):
    """Give statistics to the study's own months only: December is never used."""
    statistics = by_entity_and_stage("hydro_id", range(3), range(3), mean_m3s=20.0, std_m3s=4.0)
    tables["scenarios/inflow_seasonal_stats.parquet"] = statistics
    del tables["scenarios/inflow_history.parquet"]


SOUND = {
    "two windows": observed(("2023-12-01", "2023-12-16"), ("2023-12-16", "2024-01-01")),
    "from history": apply_all(
        observed(),
        put_columns(
            "inflow_history",
            hydro_id=[0, 0],
            start_date=[date(2020, 1, 1), date(2023, 11, 1)],
            end_date=[date(2020, 2, 1), date(2024, 1, 1)],
            value_m3s=[10.0, 11.0],
        ),
    ),
    "lags inside the study": apply_all(lags((0, 1, 1), (0, 2, 1), (0, 2, 2)), pre_study, observed()),
    "no statistics": apply_all(seasons_without_statistics, observed(), drop("stages.json:pre_study_stages")),
    "a pump that waits": apply_all(put(f"{HYDROS}.2.entry_stage_id", 1), put(f"{STATION}.entry_stage_id", 1)),
    "a pump without a flow": apply_all(
        put(f"{HYDROS}.2.entry_stage_id", 1),
        put_columns("pumping_bounds", stage_id=[0], block_id=[None], max_m3s=[0.0]),
    ),
    "a rule that simulates": put(RULES, [LIMIT, SIMULATION]),
}


@pytest.mark.parametrize("name", SOUND)
def test_valid_variants_have_no_problems(tmp_path, name):
    assert [str(problem) for problem in findings_after(tmp_path, SOUND[name])] == []


WARNINGS = {
    "empty without a word": (
        apply_all(
            put(f"{HYDROS}.2.reservoir.min_storage_hm3", 0.0),
            put(f"{INITIAL}:storage", [{"hydro_id": 0, "value_hm3": 50.0}, {"hydro_id": 1, "value_hm3": 50.0}]),
        ),
        "hydro 2 (H2), storage.value_hm3: is missing: the study starts with an empty reservoir",
    ),
    "filling from nothing": (
        apply_all(
            put(f"{HYDROS}.0.filling", {"start_stage_id": 0, "filling_min_rate_m3s": 40.0}),
            put(f"{HYDROS}.0.entry_stage_id", 1),
            put(f"{INITIAL}:storage", [{"hydro_id": 1, "value_hm3": 50.0}, {"hydro_id": 2, "value_hm3": 50.0}]),
        ),
        "hydro 0 (H0), filling_storage.value_hm3: is missing: filling starts from empty",
    ),
    "ratios": (
        put_columns("inflow_ar_coefficients", residual_std_ratio=[0.8, 0.8, 0.8]),
        "residual_std_ratio: has no effect",
    ),
    "other noise": (
        apply_all(
            put(RULES, [LIMIT, SIMULATION]),
            put("config.json:training.scenario_source.load", {"scheme": "out_of_sample"}),
        ),
        "training.stopping_rules: the rule `simulation` simulates load of other scenarios than the openings",
    ),
    "planes": (
        put(
            "system/hydro_production_models.json:production_models.2.stage_ranges.0.fpha_config.max_planes_per_hydro", 4
        ),
        "production model of hydro 2, fpha_config.max_planes_per_hydro: has no effect",
    ),
    "spillage": (
        put(
            "system/hydro_production_models.json:production_models.2.stage_ranges.0.fpha_config."
            "spillage_discretization_points",
            4,
        ),
        "fpha_config.spillage_discretization_points: has no effect",
    ),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings(tmp_path, name):
    corrupt, words = WARNINGS[name]
    problems = findings_after(tmp_path, corrupt)
    assert [str(problem) for problem in problems.errors] == []
    (text,) = [str(problem) for problem in problems.warnings]
    assert words in text


def stored_policy(path, end, hydros):
    """Return a policy of two stages without cuts."""
    nothing = StageCuts(
        np.zeros(0),
        np.zeros((0, len(hydros))),
        np.zeros(0, np.int32),
        np.zeros(0, np.int32),
        np.zeros(0, np.uint8),
    )
    metadata = PolicyMetadata(
        state_names=tuple(f"storage:{id_}" for id_ in hydros),
        stage_ids=(0, 1),
        stage_start_dates=("2024-01-01", end),
        stage_end_dates=(end, "2030-01-01"),
        entity_ids={"hydros": tuple(hydros)},
        iterations=1,
        seeds={},
        cost_scale=1.0,
    )
    write_policy(path, PolicyData(metadata, (nothing, nothing)))


@pytest.mark.parametrize(
    ("end", "hydros", "words"),
    [
        ("2024-04-01", (0, 1, 2), None),
        (
            "2024-05-01",
            (0, 1, 2),
            "has no cost-to-go on 2024-04-01, where this study ends (its stages end on 2024-05-01",
        ),
        ("2024-04-01", (0, 1), "does not price the water of hydro 2 (H2)"),
    ],
)
def test_boundary_policies_are_validated(tmp_path, end, hydros, words):
    stored_policy(tmp_path / "other.bin", end, hydros)
    texts = [
        str(problem)
        for problem in findings_after(
            tmp_path / "case", put("config.json:policy", {"boundary": {"path": "../other.bin"}})
        )
    ]
    assert texts == [] if words is None else words in texts[0]

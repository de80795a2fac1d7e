"""Numbers of models, scenarios, storage and constraints that make no sense."""

import pytest
from validation_case import apply_all, assert_semantic_error, drop, put, put_columns

STAGES = "stages.json:stages"
HYDROS = "system/hydros.json:hydros"
MODELS = "system/hydro_production_models.json:production_models"
SOURCE = "config.json:training.scenario_source"
INITIAL = "initial_conditions.json"
GROUP = "scenarios/correlation.json:profiles.default.correlation_groups.0"


def filling(rate=40.0, start=0, entry=1):
    """Describe a plant that must gather 10 hm3 in 700 hours."""
    return apply_all(
        put(f"{HYDROS}.0.filling", {"start_stage_id": start, "filling_min_rate_m3s": rate}),
        put(f"{HYDROS}.0.entry_stage_id", entry),
        put(f"{INITIAL}:storage", [{"hydro_id": 1, "value_hm3": 50.0}, {"hydro_id": 2, "value_hm3": 50.0}]),
    )


PRODUCTION = {
    "twice": (
        put_columns("hydro_energy_productivity", hydro_id=[0]),
        "is given here and in system/hydro_production_models.json for stages 0, 1, 2",
    ),
    "never": (
        put(f"{MODELS}.0.stage_ranges.0.end_stage_id", 1),
        "hydro 0 (H0), productivity_mw_per_m3s: there is no value for stage 2",
    ),
    "negative": (
        put(f"{MODELS}.0.stage_ranges.0.productivity_mw_per_m3s", -1.0),
        "productivity_mw_per_m3s: is -1 (expected at least 0)",
    ),
    "fpha": (
        put(f"{MODELS}.1.stage_ranges.0.productivity_mw_per_m3s", 1.0),
        "a plant with a plane model has no single productivity",
    ),
    "range": (
        apply_all(
            put(f"{MODELS}.0.stage_ranges.0.start_stage_id", 2),
            put(f"{MODELS}.0.stage_ranges.0.end_stage_id", 1),
        ),
        "stage_ranges[0].end_stage_id: is 1, before start_stage_id",
    ),
    "no config": (
        put(f"{MODELS}.1.stage_ranges.0.fpha_config", None),
        "hydro 1 (H1), fpha_config: the model is fpha in stages 0, 1, 2",
    ),
    "no planes": (
        put_columns("fpha_hyperplanes", stage_id=[0, 1]),
        "fpha_hyperplanes.parquet, hydro 1 (H1): there are no planes for stage 2",
    ),
    "no geometry": (
        put(f"{MODELS}.1.stage_ranges.0.fpha_config", {"source": "computed"}),
        "hydro 1 (H1): planes are computed from geometry, which has no row",
    ),
    "sign of v": (
        put_columns("fpha_hyperplanes", gamma_v=[-0.1, 0.0]),
        "hydro 1, plane 0, gamma_v: is -0.1 (expected at least 0)",
    ),
    "sign of s": (
        put_columns("fpha_hyperplanes", gamma_s=[0.1, 0.0]),
        "hydro 1, plane 0, gamma_s: is 0.1 (expected at most 0)",
    ),
    "heights": (put_columns("hydro_geometry", height_m=[10.0, 9.0, 12.0]), "hydro 2, height_m: does not increase"),
    "volumes": (put_columns("hydro_geometry", volume_hm3=[0.0, 0.0, 12.0]), "hydro 2, volume_hm3: is given twice"),
    "window": (
        put(
            f"{MODELS}.2.stage_ranges.0.fpha_config",
            {"source": "computed", "fitting_window": {"volume_min_hm3": 5.0, "volume_max_hm3": 4.0}},
        ),
        "fitting_window.volume_min_hm3: is 5.0, above the maximum, which is 4.0",
    ),
    "reference": (
        put(f"{MODELS}.0.stage_ranges.0.reference_volume", {"volume_hm3": 5.0, "percentile": 0.5}),
        "reference_volume: must have one of",
    ),
}


INFLOWS = {
    "deviation": (put_columns("load_seasonal_stats", std_mw=[1.0] * 5 + [-1.0]), "bus 1, stage 2, std_mw: is -1"),
    "availability": (
        put_columns("non_controllable_stats", mean=[0.1, 1.5, 0.2]),
        "ncs 0, stage 1, mean: is 1.5 (expected between 0 and 1)",
    ),
    "factor": (
        put("scenarios/load_factors.json:load_factors.0.block_factors.1.factor", 0.0),
        "block_factors (block 1).factor: is 0",
    ),
    "no seasons": (
        apply_all(drop("stages.json:season_definitions"), drop("scenarios/inflow_history.parquet")),
        "season_definitions: is missing, but the inflow model has lags",
    ),
    "no season": (  # of a calendar of one's own: that of a month follows from its dates
        apply_all(put(f"{STAGES}.1.season_id", None), put("stages.json:season_definitions.cycle_type", "custom")),
        "stages.season_id: is missing in stage 1, but the inflow model has lags",
    ),
    "window": (
        put(f"{INITIAL}:recent_observations.0.end_date", "2023-11-01"),
        "hydro 0, end_date: is 2023-11-01, not after",
    ),
    "future": (
        put(f"{INITIAL}:recent_observations.0.end_date", "2024-01-02"),
        "recent_observations.end_date: is 2024-01-02, after the study starts",
    ),
    "asymmetric": (put(f"{GROUP}.matrix.0.1", 0.4), "group all, matrix: is not symmetric"),
    "diagonal": (put(f"{GROUP}.matrix.0.0", 0.9), "matrix: has diagonal entries other than 1"),
    "beyond one": (
        apply_all(put(f"{GROUP}.matrix.0.1", 1.5), put(f"{GROUP}.matrix.1.0", 1.5)),
        "matrix: has an entry of 1.5",
    ),
    "classes": (
        put(f"{GROUP}.entities.2", {"type": "load", "id": 0}),
        "entities: has entities of the classes inflow, load",
    ),
    "twice": (put(f"{GROUP}.entities.2.id", 1), "inflow 1 appears more than once"),
    "seed": (
        put(SOURCE, {"load": {"scheme": "out_of_sample"}}),
        "scenario_source.seed: is missing, but the scheme of load",
    ),
    "no history": (
        apply_all(put(f"{SOURCE}.inflow", {"scheme": "historical"}), drop("scenarios/inflow_history.parquet")),
        "scenario_source.inflow.scheme: is historical, but there is no history",
    ),
    "years": (
        apply_all(
            put(f"{SOURCE}.inflow", {"scheme": "historical"}),
            put(f"{SOURCE}.historical_years", [2019, 2020]),
        ),
        "historical_years: the history has no year 2019 (expected years from 2020 to 2020)",
    ),
    "residuals": (
        apply_all(put(f"{STAGES}.1.sampling_method", "historical_residuals"), drop("scenarios/inflow_history.parquet")),
        "sampling_method: is historical_residuals in stage 1",
    ),
    "estimation": (
        drop("scenarios/inflow_seasonal_stats.parquet"),
        "hydro 1 (H1): has no rows, but its inflow model is to be estimated",
    ),
}


STORAGE = {
    "negative": (put(f"{INITIAL}:storage.0.value_hm3", -1.0), "hydro 0, storage.value_hm3: is -1"),
    "not to be filled": (
        put(f"{INITIAL}:filling_storage", [{"hydro_id": 0, "value_hm3": 1.0}]),
        "the plant has no `filling`",
    ),
    "to be filled": (
        apply_all(filling(), put(f"{INITIAL}:storage", [{"hydro_id": 0, "value_hm3": 1.0}])),
        "storage.hydro_id: the plant is being filled",
    ),
    "too slow": (filling(rate=3.0), "is too low: 7.884 hm3 are reached before stage 1, and the dead volume is 10 hm3"),
    "start": (filling(start=-3), "filling.start_stage_id: is -3, not a stage of the study"),
    "no entry": (apply_all(filling(), put(f"{HYDROS}.0.entry_stage_id", None)), "entry_stage_id: is missing"),
    "late entry": (filling(entry=7), "entry_stage_id: is 7, not a stage of the study"),
    "entry first": (filling(start=1, entry=1), "entry_stage_id: is 1, not after the start of filling"),
    "exit": (
        apply_all(filling(), put(f"{HYDROS}.0.exit_stage_id", 2)),
        "exit_stage_id: is given for a plant that is being filled",
    ),
}


CONSTRAINTS = {
    "crossed": (
        put_columns("generic_constraint_bounds", bound_lower=[12.0, 20.0], bound_upper=[2.0, 90.0]),
        "constraint 0, stage 0, bound_lower: is 12, above the bound of the expression with what the table adds, 11",
    ),
    "no bound": (
        put_columns("generic_constraint_bounds", bound_lower=[None, None], bound_upper=[None, None]),
        "constraint 1, stage 0, bound_lower, bound_upper: both are null",
    ),
    "upside down": (
        put_columns("generic_constraint_bounds", bound_upper=[None, 3.0]),
        "constraint 1, stage 0, bound_lower: is 20, above",
    ),
    "nowhere": (
        put_columns(
            "generic_constraint_bounds",
            constraint_id=[1, 1],
            stage_id=[0, 1],
            bound_upper=[3.0, 90.0],
            bound_lower=[1.0, 1.0],
        ),
        "constraint 0 (cap), expression: has no row",
    ),
}

CORRUPTED = {
    f"{group}: {name}": corrupted
    for group, members in {
        "production": PRODUCTION,
        "inflows": INFLOWS,
        "storage": STORAGE,
        "constraints": CONSTRAINTS,
    }.items()
    for name, corrupted in members.items()
}


@pytest.mark.parametrize("name", CORRUPTED)
def test_invalid_system_values_are_reported(tmp_path, name):
    assert_semantic_error(tmp_path, *CORRUPTED[name])

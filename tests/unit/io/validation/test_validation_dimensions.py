"""Counts in different files agree."""

import pytest
from validation_case import apply_all, drop, findings_after, put, put_columns

from cobre.io.findings import Layer

STAGES = "stages.json:stages"
HYDROS = "system/hydros.json:hydros"
SOURCE = "config.json:training.scenario_source"
PARAMETER = "constraints/generic_parameters.json:scalar_parameters.0"
# 3 hydros, 2 buses with random load, 1 source
DIMENSION = 6


def openings(stages=3, count=2, dimension=DIMENSION):
    keys = [(s, o, e) for s in range(stages) for o in range(count) for e in range(dimension)]
    table = put_columns(
        "noise_openings",
        stage_id=[key[0] for key in keys],
        opening_index=[key[1] for key in keys],
        entity_index=[key[2] for key in keys],
        value=[0.5] * len(keys),
    )
    return apply_all(put(f"{SOURCE}.openings", {"source": "file"}), table)


def external(scenarios=3, hydros=3, stages=3, scheme="external"):
    keys = [(t, w, h) for t in range(stages) for w in range(scenarios) for h in range(hydros)]
    table = put_columns(
        "external_inflow_scenarios",
        stage_id=[key[0] for key in keys],
        scenario_id=[key[1] for key in keys],
        hydro_id=[key[2] for key in keys],
        value_m3s=[0.5] * len(keys),
    )
    return apply_all(put(f"{SOURCE}.inflow", {"scheme": scheme}), table)


def one_stage(documents, tables):
    del documents["stages.json"]["stages"][1:]
    documents["stages.json"]["policy_graph"]["transitions"] = []
    documents["scenarios/correlation.json"]["schedule"] = []
    del documents["scenarios/non_controllable_factors.json"]
    for name in list(tables):
        if name.startswith("constraints/"):
            del tables[name]
    del documents["constraints/generic_constraints.json"]
    del documents["constraints/generic_parameters.json"]


CORRUPTED = {
    "one stage": (one_stage, "stages.json, stages: there are 1 (expected at least 2)"),
    "gap in blocks": (
        put(f"{STAGES}.1.blocks.1.id", 2),
        "stage 1, blocks: their ids are 0, 2 (expected 0, 1, 2, ... without a gap)",
    ),
    "no blocks": (put(f"{STAGES}.1.blocks", []), "stage 1, blocks: there is none"),
    "no hours": (put(f"{STAGES}.1.blocks.0.hours", 0), "stage 1, blocks (id 0).hours: is 0"),
    "zero openings": (put(f"{STAGES}.1.num_openings", 0), "stage 1, num_openings: is 0 (expected at least 1)"),
    "no openings": (put(f"{STAGES}.1.num_openings", None), "stage 1, num_openings: is missing"),
    "pre-study id": (put("stages.json:pre_study_stages.0.id", 7), "pre-study stage 7, id: is not negative"),
    "load factors": (
        put("scenarios/load_factors.json:load_factors.0.block_factors", [{"block_id": 0, "factor": 1.0}]),
        "bus 0, stage 0, block_factors: there are 1 factors, but the stage has 2 blocks",
    ),
    "evaporation": (
        put(f"{HYDROS}.2.evaporation.coefficients_mm", [1.0] * 11),
        "evaporation.coefficients_mm: has 11 numbers (expected 12",
    ),
    "reference volumes": (
        put(f"{HYDROS}.2.evaporation.reference_volumes_hm3", [1.0]),
        "reference_volumes_hm3: has 1 numbers",
    ),
    "evaporation without geometry": (
        put(f"{HYDROS}.0.evaporation", {"coefficients_mm": [1.0] * 12}),
        "hydro 0 (H0): has evaporation, but no geometry",
    ),
    "statistics twice": (
        put_columns("load_seasonal_stats", stage_id=[0, 1, 2, 0, 1, 1]),
        "bus 1, stage 1: appears 2 times",
    ),
    "statistics missing": (
        put_columns("load_seasonal_stats", stage_id=[0, 1, 2, 0, 1, 1]),
        "bus 1, stage_id: there is no row for stage 2",
    ),
    "lags": (
        put_columns("inflow_ar_coefficients", lag=[1, 2, 1]),
        "hydro 0, stage 1, lag: the lags are 2 (expected 1, 2, ...",
    ),
    "override twice": (
        put_columns("thermal_bounds", stage_id=[0, 0], block_id=[None, None]),
        "thermal 0, stage 0, max_generation_mw: appears 2 times",
    ),
    "override block": (
        put_columns("thermal_bounds", block_id=[None, 5]),
        "rows of stage 1, block_id: stage 1 has no block 5",
    ),
    "generic block": (put_columns("generic_constraint_bounds", block_id=[2, None]), "block_id: stage 0 has no block 2"),
    "plane twice": (put_columns("fpha_hyperplanes", plane_id=[0, 0]), "hydro 1, plane 0: appears 2 times"),
    "openings file missing": (
        put(f"{SOURCE}.openings", {"source": "file"}),
        "openings are read from a file, but there is none",
    ),
    "openings stage": (openings(stages=2), "stage 2, opening_index: there are 0 different ones, and 2 are needed"),
    "openings count": (openings(count=3), "stage 0, opening_index: there are 3 different ones, and 2 are needed"),
    "openings dimension": (
        openings(dimension=5),
        "stage 0, entity_index: there are 5 different ones, and 6 are needed",
    ),
    "external file missing": (
        apply_all(external(), drop("scenarios/external_inflow_scenarios.parquet")),
        "training.scenario_source.inflow.scheme: the scheme is external, but there are no such scenarios",
    ),
    "external plant": (external(hydros=2), "hydro 2, stage 0, scenario_id: there are 0 of 3 scenarios"),
    "external stage": (external(stages=2), "stage 2, scenario_id: there is no scenario"),
    "parameter stages": (
        put(f"{PARAMETER}.values", [[0, 1.0]]),
        "parameter 0 (k), values: there is no value for stages 1, 2",
    ),
    "parameter other stages": (put(f"{PARAMETER}.values", [[i, 1.0] for i in range(4)]), "there is no stage 3"),
    "parameter seasons": (
        apply_all(put(f"{PARAMETER}.kind", "seasonal"), put(f"{PARAMETER}.values", [[0, 1.0], [2, 1.0]])),
        "there is no value for season 1",
    ),
    "parameter blocks": (
        put(
            "constraints/generic_parameters.json:scalar_parameters.0",
            {"id": 0, "name": "k", "kind": "per_stage_block", "block_values": [[0, 0, 1.0]]},
        ),
        "block_values: there is no value for stage 0, block 1",
    ),
    "term block": (
        put("constraints/generic_constraints.json:constraints.0.expression", "hydro_turbined(0, 2) <= 3"),
        "hydro_turbined(0, 2): stage 0, in which it acts, has no block 2",
    ),
    "storage between parallel blocks": (
        put("constraints/generic_constraints.json:constraints.0.expression", "hydro_storage_final(0, 0) <= 3"),
        "the blocks of stage 0 are parallel: there is no storage between them",
    ),
}


@pytest.mark.parametrize("name", CORRUPTED)
def test_wrong_counts_are_reported(tmp_path, name):
    corrupt, words = CORRUPTED[name]
    problems = findings_after(tmp_path, corrupt)
    texts = [str(problem) for problem in problems.errors]
    assert any(words in text for text in texts), texts
    assert {problem.layer for problem in problems.errors} == {Layer.DIMENSIONS}


SOUND = {
    "openings": openings(),
    "external": external(),
    "storage at the end": put(
        "constraints/generic_constraints.json:constraints.0.expression", "hydro_storage_final(0, 1) <= 3"
    ),
    "storage between blocks": apply_all(
        put("constraints/generic_constraints.json:constraints.0.expression", "hydro_storage_final(0, 0) <= 3"),
        put(f"{STAGES}.0.block_mode", "chronological"),
    ),
    "empty table": put_columns("inflow_ar_coefficients", hydro_id=[], stage_id=[], lag=[], coefficient=[]),
}


@pytest.mark.parametrize("name", SOUND)
def test_valid_variants_have_no_problems(tmp_path, name):
    assert [str(problem) for problem in findings_after(tmp_path, SOUND[name])] == []


UNUSED = {
    "openings": (
        apply_all(openings(), put(f"{SOURCE}.openings", {"source": "generated"})),
        "noise_openings.parquet: is not used",
    ),
    "external": (external(scheme="in_sample"), "external_inflow_scenarios.parquet: is not used"),
    "inflow": (
        apply_all(
            put_columns(
                "inflow_seasonal_stats",
                hydro_id=[0, 0, 0, 0],
                stage_id=[-1, 0, 1, 2],
                mean_m3s=[1.0] * 4,
                std_m3s=[1.0] * 4,
            ),
            drop("scenarios/inflow_history.parquet"),
        ),
        "hydro 1 (H1): has no rows: its natural inflow is 0",
    ),
}


@pytest.mark.parametrize("name", UNUSED)
def test_unused_settings_give_warnings(tmp_path, name):
    corrupt, words = UNUSED[name]
    problems = findings_after(tmp_path, corrupt)
    assert not problems.errors
    assert any(words in str(problem) for problem in problems.warnings)

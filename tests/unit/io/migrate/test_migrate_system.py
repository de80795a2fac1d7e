"""Cases of format version 0.5 become cases of the current one: plants, prices, constraints, tables."""

import pyarrow as pa
import pytest
from old_case_files import Old, fpha_planes, hydro, texts

from cobre.io.migrate import NoteKind


@pytest.fixture
def old(tmp_path):
    return Old(tmp_path)


def models(old, *ranges, **fields):
    old.documents["system/hydro_production_models.json"] = {
        "production_models": [{"hydro_id": 0, "selection_mode": "stage_ranges", "stage_ranges": list(ranges), **fields}]
    }


def choices(old, hydro_id):
    spans = old.case.production.by_hydro[hydro_id].stage_ranges
    return [
        (span.start_stage_id, span.end_stage_id, span.choice.model, span.choice.productivity_mw_per_m3s)
        for span in spans
    ]


def test_overrides_of_productivity_become_ranges(old):
    models(
        old, {"start_stage_id": 1, "end_stage_id": 1, "model": "constant_productivity", "productivity_override": 1.5}
    )
    old.migrate()
    constant = "constant_productivity"
    assert choices(old, 0) == [(0, 0, constant, 0.9), (1, 1, constant, 1.5), (2, None, constant, 0.9)]
    assert choices(old, 1) == [(0, None, constant, 0.9)]


def test_models_by_season_become_ranges(old):
    for each in old.documents["stages.json"]["stages"]:
        each["season_id"] = each["id"]
    models(
        old,
        selection_mode="seasonal",
        default_model="constant_productivity",
        seasons=[{"season_id": 2, "model": "linearized_head", "productivity_override": 0.7}],
    )
    old.migrate()
    assert choices(old, 0) == [(0, 1, "constant_productivity", 0.9), (2, None, "linearized_head", 0.7)]


def test_plants_with_planes_pay_for_turbining_and_others_do_not(old):
    old.documents["system/hydros.json"]["hydros"] = [
        hydro(0, 1, "fpha", penalties={"fpha_turbined_cost": 0.2}),
        hydro(1),
    ]
    config = {"source": "precomputed"}
    models(
        old,
        {"start_stage_id": 0, "end_stage_id": 1, "model": "fpha", "fpha_config": config},
        {"start_stage_id": 2, "end_stage_id": None, "model": "constant_productivity", "productivity_override": 1.0},
    )
    old.tables["system/fpha_hyperplanes.parquet"] = fpha_planes(0)
    report = old.migrate()
    case = old.case
    assert [plant.penalties.turbined_cost for plant in case.system.hydros] == [0.2, 0.0]
    table = case.overrides.penalty_overrides_hydro
    assert (table["hydro_id"].tolist(), table["stage_id"].tolist(), table["turbined_cost"].tolist()) == (
        [0],
        [2],
        [0.0],
    )
    rows = old.new("system/hydro_energy_productivity.parquet").to_pylist()
    assert [(row["hydro_id"], row["stage_id"], row["equivalent_productivity_mw_per_m3s"]) for row in rows] == [
        (0, 0, 0.9),
        (0, 1, 0.9),
    ]
    assert "columns that the format has not: valid_from" in texts(report, NoteKind.DROPPED)


def test_overrides_of_turbined_cost(old):
    old.documents["system/hydros.json"]["hydros"] = [hydro(0, 1, "fpha"), hydro(1)]
    models(old, {"start_stage_id": 0, "model": "fpha", "fpha_config": {"source": "precomputed"}})
    old.tables["system/fpha_hyperplanes.parquet"] = fpha_planes(0)
    old.tables["constraints/penalty_overrides_hydro.parquet"] = {
        "hydro_id": pa.array([0, 1], pa.int32()),
        "stage_id": pa.array([1, 1], pa.int32()),
        "fpha_turbined_cost": pa.array([0.7, 0.8], pa.float64()),
        "spillage_cost": pa.array([None, 0.9], pa.float64()),
    }
    old.migrate()
    rows = old.new("constraints/penalty_overrides_hydro.parquet").to_pylist()
    assert [(row["hydro_id"], row["turbined_cost"], row["spillage_cost"]) for row in rows] == [
        (0, 0.7, None),
        (1, None, 0.9),
    ]


def test_constraints_lose_their_sense(old):
    constraints = [
        {
            "id": id_,
            "name": sense,
            "description": "d",
            "expression": "thermal_generation(0)",
            "sense": sense,
            "slack": {"enabled": True, "penalty": 9.0},
        }
        for id_, sense in enumerate(("<=", ">=", "=="))
    ]
    old.documents["constraints/generic_constraints.json"] = {"constraints": constraints}
    old.tables["constraints/generic_constraint_bounds.parquet"] = {
        "constraint_id": pa.array([0, 1, 2], pa.int32()),
        "stage_id": pa.array([0, 0, 0], pa.int32()),
        "block_id": pa.array([None, 1, None], pa.int32()),
        "bound": pa.array([5.0, 6.0, 7.0], pa.float64()),
    }
    old.migrate()
    rows = old.new("constraints/generic_constraint_bounds.parquet").to_pylist()
    assert [(row["bound_lower"], row["bound_upper"]) for row in rows] == [(None, 5.0), (6.0, None), (7.0, 7.0)]
    assert [constraint.relation for constraint in old.case.generic_constraints.constraints] == [None] * 3


def test_exchange_factors_become_bounds(old):
    block_factors = [
        {"block_id": 0, "direct_factor": 0.5, "reverse_factor": 1.0},
        {"block_id": 1, "direct_factor": 1.5, "reverse_factor": 0.1},
    ]
    old.documents["constraints/exchange_factors.json"] = {
        "exchange_factors": [
            {"line_id": 4, "stage_id": stage_id, "block_factors": block_factors} for stage_id in (0, 1)
        ]
    }
    old.tables["constraints/line_bounds.parquet"] = {
        "line_id": pa.array([4], pa.int32()),
        "stage_id": pa.array([1], pa.int32()),
        "direct_mw": pa.array([8.0], pa.float64()),
    }
    old.migrate()
    rows = old.new("constraints/line_bounds.parquet").to_pylist()
    found = {(row["stage_id"], row["block_id"]): (row["direct_mw"], row["reverse_mw"]) for row in rows}
    assert found == {
        (0, 0): (5.0, 20.0),
        (0, 1): (15.0, 2.0),
        (1, None): (8.0, None),
        (1, 0): (4.0, 20.0),
        (1, 1): (12.0, 2.0),
    }
    assert not (old.folder / "new/constraints/exchange_factors.json").exists()


def test_types_are_made_strict(old):
    stats = old.tables["scenarios/inflow_seasonal_stats.parquet"]
    old.tables["scenarios/inflow_seasonal_stats.parquet"] = {
        name: values.cast(pa.int64() if name.endswith("_id") else pa.float32()) for name, values in stats.items()
    }
    report = old.migrate()
    assert "types of the columns hydro_id, stage_id, mean_m3s, std_m3s" in texts(report, NoteKind.CONVERTED)


def test_renamed_columns(old):
    old.documents["system/pumping_stations.json"] = {
        "pumping_stations": [
            {
                "id": 0,
                "name": "P",
                "bus_id": 0,
                "source_hydro_id": 1,
                "destination_hydro_id": 0,
                "consumption_mw_per_m3s": 1.0,
                "flow": {"min_m3s": 0.0, "max_m3s": 2.0},
            }
        ]
    }
    old.tables["constraints/pumping_bounds.parquet"] = {
        "station_id": pa.array([0], pa.int32()),
        "stage_id": pa.array([0], pa.int32()),
        "max_m3s": pa.array([1.0], pa.float64()),
    }
    report = old.migrate()
    assert old.case.overrides.pumping_bounds["pumping_station_id"].tolist() == [0]
    acts = texts(report, NoteKind.NOW_EFFECTIVE)
    assert "pumping stations" in acts
    assert "constraints/pumping_bounds.parquet: max_m3s" in acts


def test_features_that_take_effect_now_are_noted(old):
    old.documents["stages.json"]["stages"][0]["block_mode"] = "chronological"
    old.documents["system/thermals.json"]["thermals"][0] |= {"entry_stage_id": 1, "gnl_config": {"lag_stages": 1}}
    old.documents["system/lines.json"]["lines"][0]["losses_percent"] = 2.0
    filled = hydro(0, 1, entry_stage_id=1, filling={"start_stage_id": 0, "filling_inflow_m3s": 5.0})
    old.documents["system/hydros.json"]["hydros"][0] = filled
    old.documents["initial_conditions.json"]["storage"] = [{"hydro_id": 1, "value_hm3": 30.0}]
    report = old.migrate()
    acts = texts(report, NoteKind.NOW_EFFECTIVE)
    for words in ("chronological", "entry_stage_id and exit_stage_id of 0", "losses_percent", "filling"):
        assert words in acts
    assert "gnl_config" in texts(report, NoteKind.DROPPED)
    assert old.case.system.hydros[0].filling.filling_min_rate_m3s == 5.0


def test_openings_of_a_file_are_asked_for(old):
    keys = [(t, w, e) for t in range(3) for w in range(3) for e in range(2)]
    old.tables["scenarios/noise_openings.parquet"] = {
        "stage_id": pa.array([key[0] for key in keys], pa.int32()),
        "opening_index": pa.array([key[1] for key in keys], pa.uint32()),
        "entity_index": pa.array([key[2] for key in keys], pa.uint32()),
        "value": pa.array([0.1] * len(keys), pa.float64()),
    }
    old.migrate()
    assert old.case.config.training.scenario_source.has_openings_file

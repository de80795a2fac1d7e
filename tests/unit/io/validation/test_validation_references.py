"""Every id that is used must be declared somewhere."""

import pytest
from validation_case import findings_after, put, put_columns

from cobre.io.findings import Layer

HYDROS = "system/hydros.json:hydros"
GENERIC = "constraints/generic_constraints.json:constraints"

CORRUPTED = {
    "line source": (
        put("system/lines.json:lines.0.source_bus_id", 9),
        "line 0 (AB), source_bus_id: there is no bus 9 (declared: 0, 1)",
    ),
    "line target": (put("system/lines.json:lines.0.target_bus_id", 9), "target_bus_id: there is no bus 9"),
    "thermal": (put("system/thermals.json:thermals.0.bus_id", 9), "thermal 0 (T), bus_id: there is no bus 9"),
    "source": (
        put("system/non_controllable_sources.json:non_controllable_sources.0.bus_id", 9),
        "bus_id: there is no bus 9",
    ),
    "station": (
        put("system/pumping_stations.json:pumping_stations.0.bus_id", 9),
        "pumping station 0 (P), bus_id: there is no bus 9",
    ),
    "contract": (
        put("system/energy_contracts.json:contracts.1.bus_id", 9),
        "contract 1 (E), bus_id: there is no bus 9",
    ),
    "group": (put(f"{HYDROS}.0.unit_groups.1.bus_id", 9), "unit_groups (id 1).bus_id: there is no bus 9"),
    "downstream": (put(f"{HYDROS}.1.downstream_id", 9), "hydro 1 (H1), downstream_id: there is no hydro 9"),
    "diversion": (put(f"{HYDROS}.0.diversion.downstream_id", 9), "diversion.downstream_id: there is no hydro 9"),
    "pump source": (
        put("system/pumping_stations.json:pumping_stations.0.source_hydro_id", 9),
        "source_hydro_id: there is no hydro 9",
    ),
    "production": (
        put("system/hydro_production_models.json:production_models.0.hydro_id", 9),
        "hydro_id: there is no hydro 9",
    ),
    "storage": (put("initial_conditions.json:storage.0.hydro_id", 9), "storage.hydro_id: there is no hydro 9"),
    "filling": (
        put("initial_conditions.json:filling_storage", [{"hydro_id": 9, "value_hm3": 1.0}]),
        "filling_storage.hydro_id: there is no hydro 9",
    ),
    "observation": (
        put("initial_conditions.json:recent_observations.0.hydro_id", 9),
        "recent_observations.hydro_id: there is no hydro 9",
    ),
    "season": (put("stages.json:stages.0.season_id", 12), "stage 0, season_id: there is no season 12"),
    "transition": (
        put("stages.json:policy_graph.transitions.0.target_id", 9),
        "transition 0 -> 9, target_id: there is no stage 9",
    ),
    "load factor bus": (put("scenarios/load_factors.json:load_factors.0.bus_id", 9), "bus_id: there is no bus 9"),
    "load factor stage": (
        put("scenarios/load_factors.json:load_factors.0.stage_id", 9),
        "stage_id: there is no stage 9",
    ),
    "source factor": (
        put("scenarios/non_controllable_factors.json:non_controllable_factors.0.ncs_id", 9),
        "ncs_id: there is no non-controllable source 9",
    ),
    "correlation": (
        put("scenarios/correlation.json:profiles.default.correlation_groups.0.entities.1.id", 9),
        "profile default, group all, entities.id: there is no hydro 9",
    ),
    "schedule stage": (put("scenarios/correlation.json:schedule.0.stage_id", 9), "stage_id: there is no stage 9"),
    "schedule profile": (
        put("scenarios/correlation.json:schedule.0.profile_name", "wet"),
        "profile_name: there is no profile `wet` (declared: default)",
    ),
    "stats": (
        put_columns("load_seasonal_stats", bus_id=[0, 0, 0, 1, 1, 9]),
        "rows of bus 9, bus_id: there is no bus 9",
    ),
    "lags": (
        put_columns("inflow_ar_coefficients", hydro_id=[0, 0, 9]),
        "inflow_ar_coefficients.parquet, rows of hydro 9, hydro_id",
    ),
    "history": (put_columns("inflow_history", hydro_id=[0, 9]), "inflow_history.parquet, rows of hydro 9, hydro_id"),
    "planes": (put_columns("fpha_hyperplanes", hydro_id=[1, 9]), "fpha_hyperplanes.parquet, rows of hydro 9, hydro_id"),
    "geometry": (
        put_columns("hydro_geometry", hydro_id=[2, 2, 9]),
        "hydro_geometry.parquet, rows of hydro 9, hydro_id",
    ),
    "thermal bounds": (put_columns("thermal_bounds", thermal_id=[0, 9]), "thermal_bounds.parquet, rows of thermal 9"),
    "thermal bounds stage": (
        put_columns("thermal_bounds", stage_id=[0, 9]),
        "rows of stage 9, stage_id: there is no stage 9",
    ),
    "group bounds": (
        put_columns("hydro_unit_group_bounds", hydro_unit_group_id=[5]),
        "rows of hydro 0, hydro_unit_group_id: there is no unit group 5",
    ),
    "pumping bounds": (put_columns("pumping_bounds", pumping_station_id=[4]), "there is no pumping station 4"),
    "contract bounds": (put_columns("contract_bounds", contract_id=[4]), "there is no contract 4"),
    "line prices": (put_columns("penalty_overrides_line", line_id=[4]), "there is no line 4"),
    "source prices": (put_columns("penalty_overrides_ncs", ncs_id=[4]), "there is no non-controllable source 4"),
    "generic bounds": (put_columns("generic_constraint_bounds", constraint_id=[0, 4]), "there is no constraint 4"),
    "generic term": (
        put(f"{GENERIC}.0.expression", "thermal_generation(4) <= 1"),
        "constraint 0 (cap), expression, thermal_generation(4): there is no thermal 4",
    ),
    "generic bus": (
        put(f"{GENERIC}.0.expression", "hydro_turbined(0, bus=4) <= 1"),
        "no unit group of hydro 0 feeds bus 4 (it feeds: 0, 1)",
    ),
    "generic contract": (
        put(f"{GENERIC}.0.expression", "contract_import(1) <= 1"),
        "contract 1 is an export (write contract_export)",
    ),
    "generic parameter": (
        put("constraints/generic_parameters.json:scalar_parameters.1.computed_spec.hydro_id", 4),
        "computed_spec.hydro_id: there is no hydro 4",
    ),
}


@pytest.mark.parametrize("name", CORRUPTED)
def test_unknown_ids_are_reported(tmp_path, name):
    corrupt, words = CORRUPTED[name]
    problems = findings_after(tmp_path, corrupt)
    texts = [str(problem) for problem in problems.errors]
    assert any(words in text for text in texts), texts
    assert problems.errors[0].layer is Layer.REFERENCES  # what follows from it comes after it


def test_statistics_of_unknown_stages_are_a_warning(tmp_path):
    corrupt = put_columns(
        "inflow_ar_coefficients", stage_id=[0, 1, 2, 40], hydro_id=[0] * 4, lag=[1] * 4, coefficient=[0.5] * 4
    )
    problems = findings_after(tmp_path, corrupt)
    assert not problems.errors
    assert ["not used: 40" in str(problem) for problem in problems.warnings] == [True]

"""Valid case that uses every file; tests corrupt one value at a time."""

from datetime import date

from small_cases import machines, months, penalties, write_files

from cobre.io.case import read_case
from cobre.io.findings import Findings, Layer

START = "2024-01-01"
DAYS = [date(2024, month, 1) for month in range(1, 5)]


def entity(id_, name, **fields):
    return {"id": id_, "name": name, "operational_start_date": START, **fields}


def turbines(flow, power):
    return machines((0.0, flow), (0.0, power))


def hydro(id_, downstream_id, model="constant_productivity", **fields):
    return entity(
        id_,
        f"H{id_}",
        downstream_id=downstream_id,
        reservoir={"min_storage_hm3": 10.0, "max_storage_hm3": 100.0},
        outflow={"min_outflow_m3s": 0.0, "max_outflow_m3s": None},
        generation={"model": model, **turbines(50.0, 40.0)},
        unit_groups=[
            {"id": 0, "name": "a", "bus_id": 0, **turbines(30.0, 20.0)},
            {"id": 1, "name": "b", "bus_id": 1, **turbines(20.0, 20.0)},
        ],
        **fields,
    )


def stage(id_):
    return {
        "id": id_,
        "start_date": str(DAYS[id_]),
        "end_date": str(DAYS[id_ + 1]),
        "season_id": id_,
        "blocks": [{"id": 0, "name": "light", "hours": 400}, {"id": 1, "name": "heavy", "hours": 330}],
        "num_openings": 2,
        "state_variables": {"storage": True, "inflow_lags": True},
    }


def fpha(source):
    return {"start_stage_id": 0, "end_stage_id": None, "model": "fpha", "fpha_config": {"source": source}}


def valid_documents():
    """Return all JSON files by name."""
    constant = {"start_stage_id": 0, "model": "constant_productivity", "productivity_mw_per_m3s": 0.8}
    ranges = {0: constant, 1: fpha("precomputed"), 2: fpha("computed")}
    factors = [{"block_id": 0, "factor": 0.9}, {"block_id": 1, "factor": 1.1}]
    matrix = [[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]]
    hydros = [{"type": "inflow", "id": id_} for id_ in range(3)]
    return {
        "config.json": {
            "training": {
                "selection": {"method": "sampled", "forward_passes": 1},
                "stopping_rules": [{"type": "iteration_limit", "limit": 3}],
                "scenario_source": {"seed": 1},
            }
        },
        "stages.json": {
            "policy_graph": {
                "type": "finite_horizon",
                "annual_discount_rate": 0.1,
                "transitions": [{"source_id": 0, "target_id": 1, "probability": 1.0}],
            },
            "stages": [stage(id_) for id_ in range(3)],
            "pre_study_stages": [{"id": -1, "start_date": "2023-12-01", "end_date": START, "season_id": 11}],
            "season_definitions": months(),
        },
        "initial_conditions.json": {
            "storage": [{"hydro_id": id_, "value_hm3": 50.0} for id_ in range(3)],
            "filling_storage": [],
            "recent_observations": [
                {"hydro_id": id_, "start_date": "2023-12-01", "end_date": START, "value_m3s": 20.0} for id_ in range(3)
            ],
        },
        "penalties.json": penalties(
            {"spillage_cost": 0.1, "turbined_cost": 0.0, "diversion_cost": 0.1},
            others=500.0,
            excess=1.0,
            line=0.1,
            source=0.1,
        )
        | {
            "bus": {
                "deficit_segments": [{"depth_mw": 5.0, "cost": 800.0}, {"depth_mw": None, "cost": 1000.0}],
                "excess_cost": 1.0,
            }
        },
        "system/buses.json": {
            "buses": [entity(0, "A"), entity(1, "B", deficit_segments=[{"depth_mw": None, "cost": 900.0}])]
        },
        "system/lines.json": {
            "lines": [
                entity(0, "AB", source_bus_id=0, target_bus_id=1, capacity={"direct_mw": 10.0, "reverse_mw": 10.0})
            ]
        },
        "system/thermals.json": {
            "thermals": [entity(0, "T", bus_id=0, cost_per_mwh=30.0, generation={"min_mw": 0.0, "max_mw": 60.0})]
        },
        "system/hydros.json": {
            "hydros": [
                hydro(0, 1, diversion={"downstream_id": 2, "max_flow_m3s": 5.0}, penalties={"spillage_cost": 0.2}),
                hydro(1, 2, "fpha", specific_productivity_mw_per_m3s_per_m=0.009),
                hydro(
                    2,
                    None,
                    "fpha",
                    specific_productivity_mw_per_m3s_per_m=0.009,
                    evaporation={"coefficients_mm": [100.0] * 12, "reference_volumes_hm3": [50.0] * 12},
                    tailrace={
                        "type": "piecewise",
                        "points": [{"outflow_m3s": 0.0, "height_m": 1.0}, {"outflow_m3s": 9.0, "height_m": 2.0}],
                    },
                    hydraulic_losses={"type": "factor", "value": 0.02},
                    efficiency={"type": "constant", "value": 0.9},
                ),
            ]
        },
        "system/non_controllable_sources.json": {
            "non_controllable_sources": [entity(0, "W", bus_id=1, max_generation_mw=15.0, curtailment_cost=0.2)]
        },
        "system/pumping_stations.json": {
            "pumping_stations": [
                entity(
                    0,
                    "P",
                    bus_id=0,
                    source_hydro_id=2,
                    destination_hydro_id=1,
                    consumption_mw_per_m3s=0.5,
                    flow={"min_m3s": 0.0, "max_m3s": 3.0},
                )
            ]
        },
        "system/energy_contracts.json": {
            "contracts": [
                entity(0, "I", bus_id=0, type="import", price_per_mwh=50.0, limits={"min_mw": 0.0, "max_mw": 5.0}),
                entity(1, "E", bus_id=0, type="export", price_per_mwh=-5.0, limits={"min_mw": 0.0, "max_mw": 5.0}),
            ]
        },
        "system/hydro_production_models.json": {
            "production_models": [
                {"hydro_id": id_, "selection_mode": "stage_ranges", "stage_ranges": [ranges[id_]]} for id_ in range(3)
            ]
        },
        "scenarios/load_factors.json": {"load_factors": [{"bus_id": 0, "stage_id": 0, "block_factors": factors}]},
        "scenarios/non_controllable_factors.json": {
            "non_controllable_factors": [{"ncs_id": 0, "stage_id": 1, "block_factors": factors}]
        },
        "scenarios/correlation.json": {
            "method": "spectral",
            "profiles": {"default": {"correlation_groups": [{"name": "all", "entities": hydros, "matrix": matrix}]}},
            "schedule": [{"stage_id": 1, "profile_name": "default"}],
        },
        "constraints/generic_constraints.json": {
            "constraints": [
                {
                    "id": 0,
                    "name": "cap",
                    "expression": "@k * hydro_turbined(0, 1, bus=1) + contract_import(0) <= 9",
                    "slack": {"enabled": True, "penalty": 100.0},
                },
                {"id": 1, "name": "band", "expression": "hydro_storage_final(0)", "slack": {"enabled": False}},
            ]
        },
        "constraints/generic_parameters.json": {
            "scalar_parameters": [
                {"id": 0, "name": "k", "kind": "per_stage", "values": [[0, 1.0], [1, 2.0], [2, 3.0]]},
                {"id": 1, "name": "c", "kind": "computed", "computed_spec": {"tag": "max_storage", "hydro_id": 0}},
            ]
        },
    }


def by_entity_and_stage(column, ids, stages=range(3), **values):
    pairs = [(id_, stage_id) for id_ in ids for stage_id in stages]
    put_columns = {column: [pair[0] for pair in pairs], "stage_id": [pair[1] for pair in pairs]}
    return put_columns | {name: [value] * len(pairs) for name, value in values.items()}


def valid_tables():
    """Return all Parquet files by name; columns are lists."""
    history = {"hydro_id": [0, 0], "start_date": [date(2020, 1, 1), date(2020, 2, 1)]}
    history |= {"end_date": [date(2020, 2, 1), date(2020, 3, 1)], "value_m3s": [10.0, 11.0]}
    lags = by_entity_and_stage("hydro_id", [0], lag=1, coefficient=0.5)
    return {
        "scenarios/inflow_seasonal_stats.parquet": by_entity_and_stage(
            "hydro_id", range(3), range(-1, 3), mean_m3s=20.0, std_m3s=4.0
        ),
        "scenarios/inflow_ar_coefficients.parquet": lags,
        "scenarios/inflow_history.parquet": history,
        "scenarios/load_seasonal_stats.parquet": by_entity_and_stage("bus_id", [0, 1], mean_mw=40.0, std_mw=1.0),
        "scenarios/non_controllable_stats.parquet": by_entity_and_stage("ncs_id", [0], mean=0.5, std=0.1),
        "system/fpha_hyperplanes.parquet": {
            "hydro_id": [1, 1],
            "plane_id": [0, 1],
            "stage_id": [None, None],
            "gamma_0": [1.0, 2.0],
            "gamma_v": [0.01, 0.0],
            "gamma_q": [0.8, 0.7],
            "gamma_s": [-0.01, 0.0],
            "kappa": [1.0, None],
        },
        "system/hydro_geometry.parquet": {
            "hydro_id": [2, 2, 2],
            "volume_hm3": [0.0, 50.0, 100.0],
            "height_m": [10.0, 20.0, 25.0],
            "area_km2": [1.0, 2.0, 3.0],
        },
        "system/hydro_energy_productivity.parquet": {
            "hydro_id": [1],
            "stage_id": [None],
            "equivalent_productivity_mw_per_m3s": [0.9],
            "reference_outflow_m3s": [None],
            "specific_productivity_mw_per_m3s_per_m": [None],
        },
        "constraints/thermal_bounds.parquet": {
            "thermal_id": [0, 0],
            "stage_id": [0, 1],
            "block_id": [None, 1],
            "max_generation_mw": [70.0, 50.0],
            "cost_per_mwh": [31.0, None],
        },
        "constraints/hydro_bounds.parquet": {
            "hydro_id": [0, 0],
            "stage_id": [1, 1],
            "block_id": [None, 0],
            "max_storage_hm3": [90.0, None],
            "min_turbined_m3s": [1.0, 2.0],
            "max_turbined_m3s": [None, 45.0],
            "max_diversion_m3s": [4.0, None],
            "filling_min_rate_m3s": [None, None],
            "water_withdrawal_m3s": [1.0, None],
        },
        "constraints/hydro_unit_group_bounds.parquet": {
            "hydro_id": [0],
            "hydro_unit_group_id": [1],
            "stage_id": [2],
            "block_id": [None],
            "max_turbined_m3s": [15.0],
        },
        "constraints/line_bounds.parquet": {"line_id": [0], "stage_id": [0], "block_id": [1], "direct_mw": [5.0]},
        "constraints/pumping_bounds.parquet": {"pumping_station_id": [0], "stage_id": [0], "max_m3s": [2.0]},
        "constraints/contract_bounds.parquet": {"contract_id": [1], "stage_id": [0], "price_per_mwh": [-6.0]},
        "constraints/ncs_bounds.parquet": {"ncs_id": [0], "stage_id": [0], "available_generation_mw": [9.0]},
        "constraints/penalty_overrides_bus.parquet": {"bus_id": [0], "stage_id": [0], "excess_cost": [2.0]},
        "constraints/penalty_overrides_line.parquet": {"line_id": [0], "stage_id": [0], "exchange_cost": [0.2]},
        "constraints/penalty_overrides_hydro.parquet": {"hydro_id": [0], "stage_id": [0], "turbined_cost": [0.0]},
        "constraints/penalty_overrides_ncs.parquet": {"ncs_id": [0], "stage_id": [0], "curtailment_cost": [0.3]},
        "constraints/generic_constraint_bounds.parquet": {
            "constraint_id": [0, 1],
            "stage_id": [0, 0],
            "block_id": [None, None],
            "bound_lower": [None, 20.0],
            "bound_upper": [None, 90.0],
        },
    }


def write_case(folder, documents, tables):
    """Write all files; tables are lists by column, by name with the suffix."""
    write_files(folder, documents, {name.removesuffix(".parquet"): put_columns for name, put_columns in tables.items()})


def findings_after(folder, corrupt):
    """Return the findings of the valid case after `corrupt(documents, tables)`."""
    documents, tables = valid_documents(), valid_tables()
    corrupt(documents, tables)
    write_case(folder, documents, tables)
    problems = Findings()
    read_case(folder, problems)
    return problems


def assert_semantic_error(folder, corrupt, words):
    """Assert that all errors are semantic and have an expectation or a remedy, and that one has these words."""
    problems = findings_after(folder, corrupt)
    texts = [str(problem) for problem in problems.errors]
    assert any(words in text for text in texts), texts
    assert {problem.layer for problem in problems.errors} == {Layer.MEANING}
    assert all(problem.expected or problem.remedy for problem in problems.errors)


def put(path, value):
    """Return a change that sets `file:key.0.key` to a value."""
    file, keys = path.split(":")

    def corrupt(documents, tables):
        node = documents[file]
        *way, last = [int(key) if key.isdigit() else key for key in keys.split(".")]
        for key in way:
            node = node[key]
        node[last] = value

    return corrupt


def drop(path):
    """Return a change that removes a key or a whole file."""
    file, _, key = path.partition(":")

    def corrupt(documents, tables):
        if not key:
            documents.pop(file, None)
            tables.pop(file, None)
        else:
            del documents[file][key]

    return corrupt


def put_columns(file, **values):
    """Return a change that sets columns of a table; `file` without folder and ending names one of the valid tables."""

    def corrupt(documents, tables):
        name = next((name for name in tables if name.endswith(f"/{file}.parquet")), f"scenarios/{file}.parquet")
        tables.setdefault(name, {}).update(values)

    return corrupt


def apply_all(*changes):
    """Combine several changes into one."""

    def corrupt(documents, tables):
        for change in changes:
            change(documents, tables)

    return corrupt

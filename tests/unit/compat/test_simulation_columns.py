"""Simulation tables with cobre-python's columns in its order, with numbers that add up."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import cobre
from cobre.io.output.results import read_results, write_results
from cobre.study.preparation.prepare import prepare
from cobre.study.simulation.supplementary_tables import SUPPLEMENTARY_TABLES

KEYS = ["scenario_id", "stage_id", "node_id", "block_id"]
HYDROS = [
    *KEYS, "hydro_id", "turbined_m3s", "spillage_m3s", "outflow_m3s", "evaporation_m3s", "diverted_inflow_m3s",
    "diverted_outflow_m3s", "incremental_inflow_m3s", "inflow_m3s", "storage_initial_hm3", "storage_final_hm3",
    "generation_mw", "generation_mwh", "equivalent_productivity_mw_per_m3s", "accumulated_productivity_mw_per_m3s",
    "incremental_inflow_energy_mw", "stored_energy_initial_mwh", "stored_energy_final_mwh", "spillage_cost",
    "water_value_per_hm3", "storage_binding_code", "operative_state_code", "turbined_slack_m3s",
    "outflow_slack_below_m3s", "outflow_slack_above_m3s", "generation_slack_mw", "storage_violation_below_hm3",
    "filling_target_violation_hm3", "evaporation_violation_pos_m3s", "evaporation_violation_neg_m3s",
    "inflow_nonnegativity_slack_m3s", "water_withdrawal_violation_pos_m3s", "water_withdrawal_violation_neg_m3s",
    "integrated_equivalent_productivity_mw_per_m3s", "integrated_accumulated_productivity_mw_per_m3s",
    "stored_energy_initial_mw", "stored_energy_final_mw",
]  # fmt: skip
COSTS = [
    *KEYS, "total_cost", "immediate_cost", "future_cost", "discount_factor", "thermal_cost",
    "anticipated_thermal_cost", "contract_cost", "deficit_cost", "excess_cost", "storage_violation_cost",
    "filling_target_cost", "hydro_violation_cost", "outflow_violation_below_cost", "outflow_violation_above_cost",
    "turbined_violation_cost", "generation_violation_cost", "evaporation_violation_cost",
    "withdrawal_violation_cost", "inflow_penalty_cost", "generic_violation_cost", "spillage_cost", "turbined_cost",
    "curtailment_cost", "exchange_cost", "pumping_cost",
]  # fmt: skip
THERMALS = [
    *KEYS, "thermal_id", "generation_mw", "generation_mwh", "generation_cost", "is_anticipated",
    "anticipated_committed_mw", "anticipated_decision_mw", "operative_state_code",
]  # fmt: skip
LAGS = ["scenario_id", "stage_id", "node_id", "hydro_id", "lag_index", "inflow_m3s"]
SHORT = {
    "training.stopping_rules": [{"type": "iteration_limit", "limit": 2}],
    "simulation.enabled": True,
    "simulation.selection": {"method": "sampled", "num_scenarios": 3},
}
# two_reservoirs: Upper above Lower
DEAD_HM3 = {0: 150.0, 1: 80.0}
OWN = {0: 0.8, 1: 0.55}
DOWN_TO_THE_SEA = {0: 0.8 + 0.55, 1: 0.55}


@pytest.fixture(scope="module")
def hydros(finished):
    return cobre.results.load_simulation_arrow(finished[0], "hydros")


@pytest.fixture
def edited(case_dir, tmp_path):
    """Return a function that changes JSON files in a copy of the case."""
    copy = shutil.copytree(case_dir, tmp_path / "case")

    def edit(name, change):
        content = json.loads((copy / name).read_text())
        change(content)
        (copy / name).write_text(json.dumps(content))
        return copy

    return edit


def column(table, name):
    return table[name].to_numpy()


def by_plant(hydros, numbers):
    return np.array([numbers[id_] for id_ in hydros["hydro_id"].to_pylist()])


def test_tables_have_peer_columns_in_order(finished, hydros):
    tables = cobre.results.load_simulation_arrow(finished[0])
    assert hydros.column_names == HYDROS
    assert tables["costs"].column_names == [*COSTS, "diversion_cost", "non_controllable_reward"]
    assert tables["thermals"].column_names == THERMALS
    assert tables["inflow_lags"].column_names == LAGS
    assert not set(SUPPLEMENTARY_TABLES) & set(tables)


def test_columns_have_peer_types(finished, hydros):
    convergence = cobre.results.load_convergence_arrow(finished[0]).schema
    for name in ("iteration", "cuts_added", "cuts_removed", "forward_passes"):
        assert convergence.field(name).type == pa.int32()
    for name in ("cuts_active", "time_forward_ms", "time_total_ms", "lp_solves"):
        assert convergence.field(name).type == pa.int64()
    codes = ("storage_binding_code", "operative_state_code")
    ids = (*KEYS, "hydro_id")
    for field in hydros.schema:
        assert field.type == (pa.int32() if field.name in ids else pa.int8() if field.name in codes else pa.float64())


def test_single_table_equals_table_of_all(finished, hydros):
    tables = cobre.results.load_simulation_arrow(finished[0])
    assert tables["hydros"].equals(hydros)
    assert tables["inflow_lags"].equals(cobre.results.load_simulation_arrow(finished[0], "inflow_lags"))


def test_productivity_columns_are_those_of_the_study(hydros):
    for prefix in ("", "integrated_"):
        found = column(hydros, f"{prefix}equivalent_productivity_mw_per_m3s")
        assert found == pytest.approx(by_plant(hydros, OWN))
        found = column(hydros, f"{prefix}accumulated_productivity_mw_per_m3s")
        assert found == pytest.approx(by_plant(hydros, DOWN_TO_THE_SEA))


def test_energy_columns_follow_productivities(finished, hydros):
    """1 hm3 through 1 MW per m3/s is 1e6 / 3600 MWh; the dead volume is worth nothing."""
    rate = by_plant(hydros, DOWN_TO_THE_SEA)
    energy = column(hydros, "incremental_inflow_energy_mw")
    assert energy == pytest.approx(rate * column(hydros, "incremental_inflow_m3s"))
    stages = json.loads((finished[0] / "study.json").read_text())["stages"]
    hours = np.array([stage["hours"] for stage in stages])[column(hydros, "stage_id")]
    for moment in ("initial", "final"):
        useful = column(hydros, f"storage_{moment}_hm3") - by_plant(hydros, DEAD_HM3)
        stored = column(hydros, f"stored_energy_{moment}_mwh")
        assert stored == pytest.approx(useful * rate * 1e6 / 3600)
        assert column(hydros, f"stored_energy_{moment}_mw") == pytest.approx(stored / hours)


def test_initial_stored_energy_is_the_final_one_of_the_stage_before(hydros):
    rows = {(r["scenario_id"], r["stage_id"], r["hydro_id"], r["block_id"]): r for r in hydros.to_pylist()}
    for (scenario, stage, hydro, block), row in rows.items():
        if stage:
            before = rows[scenario, stage - 1, hydro, block]
            assert row["stored_energy_initial_mwh"] == pytest.approx(before["stored_energy_final_mwh"])


def test_reservoirs_at_limits_are_flagged(hydros):
    volume, codes = column(hydros, "storage_final_hm3"), column(hydros, "storage_binding_code")
    most = by_plant(hydros, {0: 1600.0, 1: 420.0})
    assert set(codes) >= {0, 2}
    assert np.array_equal(codes == 2, volume >= most - 1e-6 * most)
    assert np.array_equal(codes == 1, volume <= by_plant(hydros, DEAD_HM3) + 1e-4)


def test_plants_out_of_service_are_marked(edited, tmp_path):
    def enter_late(content):
        content["thermals"][0]["entry_stage_id"] = 4

    case = edited("system/thermals.json", enter_late)
    cobre.run.run(case, tmp_path / "out", threads=1, config_overrides=SHORT)
    rows = cobre.results.load_simulation(tmp_path / "out", "thermals")
    found = {(row["thermal_id"], row["stage_id"]): row["operative_state_code"] for row in rows}
    assert all(code == (0 if (thermal, stage < 4) == (0, True) else 2) for (thermal, stage), code in found.items())


def test_unknown_columns_are_null(edited, tmp_path, finished):
    """Results that were written without the facts of stages, as by a call of `write_results`."""
    tables = read_results(finished[0] / "simulation")
    kept = {name: table for name, table in tables.items() if name not in SUPPLEMENTARY_TABLES}
    write_results(tmp_path / "simulation", kept, {})
    found = cobre.results.load_simulation_arrow(tmp_path)
    assert found["hydros"].column_names == HYDROS
    for name in ("stored_energy_final_mwh", "storage_binding_code", "operative_state_code"):
        assert found["hydros"][name].null_count == found["hydros"].num_rows
    assert found["inflow_lags"].num_rows == 0


def test_lagged_inflows_follow_calendar(case_dir, tmp_path):
    case = case_dir.parent / "four_regions"
    study = cobre.Study(case, tmp_path, threads=1, config_overrides=SHORT)
    study.run()
    inflow = {(r["scenario_id"], r["stage_id"], r["hydro_id"]): r["incremental_inflow_m3s"]
              for r in cobre.results.load_simulation(tmp_path, "hydros")}  # fmt: skip
    state = prepare(study.case).problem.initial_state
    place = {hydro.id: at for at, hydro in enumerate(study.case.system.hydros)}
    rows = cobre.results.load_simulation(tmp_path, "inflow_lags")
    assert len(rows) == 3 * 24 * 8 * 2
    assert rows == sorted(rows, key=lambda r: (r["scenario_id"], r["stage_id"], place[r["hydro_id"]], r["lag_index"]))
    for row in rows:
        earlier = row["stage_id"] - 1 - row["lag_index"]
        before = state[-8 * earlier + place[row["hydro_id"]]] if earlier < 0 else None
        known = inflow.get((row["scenario_id"], earlier, row["hydro_id"]), before)
        assert row["inflow_m3s"] == known, row


@pytest.fixture
def constrained(case_dir, tmp_path):
    """Return a case with a band on storage and a floor under thermal plants that cannot be held."""
    copy = shutil.copytree(case_dir, tmp_path / "case")
    (copy / "constraints").mkdir()
    constraints = [
        {"id": 7, "name": "floor", "expression": "thermal_generation(0) + thermal_generation(1) >= 400",
         "slack": {"enabled": True, "penalty": 300.0}},
        {"id": 3, "name": "level", "expression": "hydro_storage_final(0) == 400",
         "slack": {"enabled": True, "penalty": 0.05}},
        {"id": 9, "name": "hard", "expression": "thermal_generation(2) >= 0", "slack": {"enabled": False}},
    ]  # fmt: skip
    document = {"constraints": constraints, "expressions": []}
    (copy / "constraints" / "generic_constraints.json").write_text(json.dumps(document))
    ids = np.repeat(np.array([3, 7, 9], np.int32), 12)
    nulls = pa.nulls(len(ids), pa.float64())
    columns = {
        "constraint_id": pa.array(ids),
        "stage_id": pa.array(np.tile(np.arange(12, dtype=np.int32), 3)),
        "block_id": pa.nulls(len(ids), pa.int32()),
        "bound_lower": nulls,
        "bound_upper": nulls,
    }
    path = copy / "constraints" / "generic_constraint_bounds.parquet"
    parquet.write_table(pa.table(columns), path, compression="zstd")
    return copy


def test_violated_constraints_are_listed(constrained, tmp_path):
    cobre.run.run(constrained, tmp_path / "out", threads=1, config_overrides=SHORT)
    tables = cobre.results.load_simulation(tmp_path / "out")
    rows = cobre.results.load_simulation(tmp_path / "out", "violations/generic")
    assert rows == tables["violations/generic"]
    assert {(row["constraint_id"], row["block_id"]) for row in rows} == {(3, None)} | {
        (id_, block) for id_ in (7, 9) for block in range(3)
    }
    volume = {(r["scenario_id"], r["stage_id"]): r["storage_final_hm3"] for r in tables["hydros"] if not r["hydro_id"]}
    spent = dict.fromkeys(volume, 0.0)
    for row in rows:
        place = row["scenario_id"], row["stage_id"]
        spent[place] += row["slack_cost"]
        if row["constraint_id"] == 3:  # negative: above
            assert row["slack_value"] == pytest.approx(400.0 - volume[place], abs=1e-6)
        if row["constraint_id"] == 9:
            assert (row["slack_value"], row["slack_cost"]) == (0.0, 0.0)
    assert any(row["slack_value"] > 0 for row in rows)
    assert any(row["slack_value"] < 0 for row in rows)
    for row in tables["costs"]:
        assert row["generic_violation_cost"] == pytest.approx(spent[row["scenario_id"], row["stage_id"]])

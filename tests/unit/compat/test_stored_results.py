"""cobre.results: an output directory read back."""

import shutil
import socket
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import cobre
from cobre.io.output.results import ResultsError
from cobre.study.preparation.prepare import prepare

CONVERGENCE = {
    "iteration", "lower_bound", "upper_bound", "upper_bound_std", "upper_bound_kind", "gap_percent", "cuts_added",
    "cuts_removed", "cuts_active", "time_forward_ms", "time_backward_ms", "time_total_ms", "forward_passes",
    "lp_solves", "mean_rows_in_lp",
}  # fmt: skip


@pytest.fixture
def folder(finished):
    return finished[0]


def test_convergence_has_peer_columns(folder, finished):
    rows = cobre.results.load_convergence(folder)
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4]
    assert set(rows[0]) >= CONVERGENCE
    assert rows[-1]["lower_bound"] == finished[1]["lower_bound"]
    # 4 paths leave 4 cuts in each of 11 stages
    assert [row["cuts_added"] for row in rows] == [44] * 4
    assert [row["cuts_active"] for row in rows] == [44, 88, 132, 176]
    assert [row["cuts_removed"] for row in rows] == [0] * 4
    assert [row["mean_rows_in_lp"] for row in rows] == [0.0] * 4
    assert all(row["time_total_ms"] >= row["time_forward_ms"] >= 0 for row in rows)
    assert isinstance(cobre.results.load_convergence_arrow(folder), pa.Table)


def test_deactivated_cuts_are_counted(case_dir, limit, tmp_path):
    selection = {"training.cut_selection.selection": {"method": "level1", "check_frequency": 2}}
    policy = cobre.Study(case_dir, tmp_path, config_overrides={**limit, **selection}).train()
    rows = cobre.results.load_convergence(tmp_path)
    assert [row["cuts_removed"] > 0 for row in rows] == [False, True, False, True]
    active = 0
    for row in rows:
        active += row["cuts_added"] - row["cuts_removed"]
        assert row["cuts_active"] == active
    assert active == sum(int(flags.sum()) for flags in policy.active)
    pool = cobre.results.load_results(tmp_path)["training"]["manifest"]["row_pool"]
    assert (pool["total_active"], pool["total_generated"], pool["total_loaded"]) == (active, 4 * 44, 0)
    assert pool["peak_active"] == max(row["cuts_active"] for row in rows)


def test_rows_in_the_lp_are_null_with_dynamic_cut_loading(case_dir, limit, tmp_path):
    lazy = {"training.cut_selection.selection": {"method": "dynamic"}}
    cobre.Study(case_dir, tmp_path, config_overrides={**limit, **lazy}).train()
    assert {row["mean_rows_in_lp"] for row in cobre.results.load_convergence(tmp_path)} == {None}


def test_cuts_from_elsewhere_are_not_counted_as_added(finished, case_dir, limit, tmp_path):
    shutil.copytree(finished[0] / "policy", tmp_path / "policy")
    overrides = {**limit, "policy.mode": "warm_start", "simulation.enabled": False}
    cobre.run.run(case_dir, tmp_path, config_overrides=overrides)
    rows = cobre.results.load_convergence(tmp_path)
    assert [row["cuts_added"] for row in rows] == [44] * 4
    assert [row["cuts_removed"] for row in rows] == [None, 0, 0, 0]
    assert rows[-1]["cuts_active"] == 8 * 44
    assert cobre.results.load_policy(tmp_path)["metadata"]["producer"]["warm_start_counts"] == [16] * 11 + [0]


def test_missing_event_file_leaves_times_null(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "events.jsonl").unlink()
    rows = cobre.results.load_convergence(copy)
    assert {row["time_total_ms"] for row in rows} == {None}
    with pytest.raises(FileNotFoundError, match=r"events\.jsonl"):
        cobre.results.load_results(copy)


def test_simulation_tables_are_loaded(folder):
    tables = cobre.results.load_simulation(folder)
    assert {"costs", "hydros", "thermals", "buses", "hydro_bus_generation"} <= set(tables)
    assert tables["hydros"] == cobre.results.load_simulation(folder, "hydros")
    row = tables["hydros"][0]
    assert row["node_id"] == row["stage_id"]
    assert tables["thermals"][0]["is_anticipated"] is False
    assert tables["thermals"][0]["anticipated_decision_mw"] is None
    assert tables["costs"][0]["pumping_cost"] == 0.0


def test_water_values_are_cost_slopes(folder, case_dir, limit):
    arrow = cobre.results.load_simulation_arrow(folder, "hydros")
    policy = cobre.Study(case_dir, folder).load_policy()
    worth = cobre.simulate(case_dir, policy, config_overrides=limit, threads=1).table("hydros")
    slopes = arrow["water_value_per_hm3"].to_numpy()
    assert np.array_equal(slopes, -worth["water_value_per_hm3"].to_numpy())
    assert slopes.min() < 0


def test_loaded_policy_is_in_dollars(folder, case_dir):
    plain = cobre.results.load_policy(folder)
    policy = cobre.Study(case_dir, folder).load_policy()
    intercepts, coefficients = policy.cut_matrix(3)
    cuts = plain["stage_cuts"][3]["cuts"]
    assert [cut["intercept"] for cut in cuts] == (intercepts * policy.cost_scale).tolist()
    assert cuts[0]["coefficients"] == (coefficients[0] * policy.cost_scale).tolist()
    assert [(cut["iteration"], cut["forward_pass_index"]) for cut in cuts[:5]] == [
        (1, 0),
        (1, 1),
        (1, 2),
        (1, 3),
        (2, 0),
    ]
    assert plain["metadata"]["producer"]["completed_iterations"] == 4
    assert [entry["entity_id"] for entry in plain["stage_cuts"][0]["entity_manifest"]] == [0, 1]
    assert len(plain["metadata"]["graph_manifest"]["edges"]) == 11


def test_lag_states_are_included(case_dir, tmp_path):
    overrides = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 1}]}
    cobre.Study(case_dir.parent / "four_regions", tmp_path, config_overrides=overrides).train()
    entities = cobre.results.load_policy(tmp_path)["stage_cuts"][0]["entity_manifest"]
    assert [(entry["entity_type"], entry["subindex"]) for entry in entities] == [(0, 0)] * 8 + [(1, 1)] * 8 + [
        (1, 2)
    ] * 8


def test_manifest_describes_training_and_simulation(folder):
    found = cobre.results.load_results(folder)
    training, simulation = found["training"], found["simulation"]
    assert training["complete"] is True
    assert training["manifest"]["iterations"] == {"completed": 4, "converged_at": None}
    assert training["manifest"]["configuration"]["max_iterations"] == 4
    assert training["manifest"]["configuration"]["policy_mode"] == "fresh"
    solves = sum(row["lp_solves"] for row in cobre.results.load_convergence(folder))
    assert training["manifest"]["solve_stats"]["total_lp_solves"] == solves
    assert training["manifest"]["distribution"]["hosts"] == [{"hostname": socket.gethostname(), "ranks": [0]}]
    assert Path(training["convergence_path"]).is_absolute()
    assert simulation["manifest"]["solve_stats"]["total_lp_solves"] == 6 * 12
    assert training["manifest"]["convergence"]["termination_reason"] == "iteration_limit"
    assert training["manifest"]["problem_dimensions"]["num_stages"] == 12
    assert training["manifest"]["distribution"]["backend"] == "local"
    assert simulation["manifest"]["scenarios"] == {"total": 6, "completed": 6, "failed": 0}


@pytest.mark.parametrize(
    "load",
    ["load_results", "load_convergence", "load_convergence_arrow", "load_simulation", "load_policy", "load_stochastic"],
)
def test_missing_folder_raises(tmp_path, load):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        getattr(cobre.results, load)(tmp_path / "nowhere")


def test_missing_results_raise_file_not_found(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="unicorns"):
        cobre.results.load_simulation(folder, "unicorns")
    with pytest.raises(FileNotFoundError, match=r"exports\.stochastic"):
        cobre.results.load_stochastic(folder)
    with pytest.raises(FileNotFoundError, match="policy"):
        cobre.results.load_policy(tmp_path)
    with pytest.raises(FileNotFoundError, match="did not finish"):
        cobre.results.load_results(tmp_path)


def test_incomplete_results_raise(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "simulation" / "manifest.json").unlink()
    with pytest.raises(ResultsError, match="did not finish") as caught:
        cobre.results.load_simulation(copy)
    assert isinstance(caught.value, OSError)
    (copy / "policy" / "policy.bin").write_bytes(b"COBREPOL")
    with pytest.raises(cobre.errors.OutputError, match="truncated"):
        cobre.results.load_policy(copy)


def test_exported_noise_is_loaded(case_dir, tmp_path):
    overrides = {"exports.stochastic": True, "training.stopping_rules": [{"type": "iteration_limit", "limit": 1}]}
    study = cobre.Study(case_dir.parent / "four_regions", tmp_path, config_overrides=overrides)
    study.train()
    found = cobre.results.load_stochastic(tmp_path)
    tree = found.opening_tree(0)
    assert tree.shape == (10, 9)
    assert np.array_equal(tree, prepare(study.case).noise.openings[0])
    coefficients = found.par_coefficients()
    assert coefficients.dtype == np.float64
    assert coefficients.shape[1] == 4
    assert set(coefficients[:, 2]) == {1.0, 2.0}  # lags
    with pytest.raises(IndexError, match="no stage 99"):
        found.opening_tree(99)

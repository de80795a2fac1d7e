"""`cobre export --layout cobre-python`: the complete run in the other layout."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cli_runs import ONE_PROCESS, cobre
from studies import QUICK_CASE, SLOW_CASE, small_copy

import cobre as package
from cobre.export import ExportError, export_run
from cobre.export.cobre_python_simulation import scenarios_of
from cobre.io.policies.cobre_python_policy import read_cobre_python_policy
from cobre.io.policies.policy_file import read_policy

SCENARIOS = 12
FEW = [{"type": "iteration_limit", "limit": 2}]


@pytest.fixture(scope="module", params=[QUICK_CASE, SLOW_CASE], ids=lambda case: case.name)
def run(request, tmp_path_factory):
    """Run a case and export it; return the case, the output directory and the exported directory."""
    folder = tmp_path_factory.mktemp(request.param.name)
    case = small_copy(request.param, folder, stopping_rules=FEW)
    assert cobre("run", case, "--output", folder / "run", "--no-report", *ONE_PROCESS).returncode == 0
    done = cobre("export", folder / "run", "--layout", "cobre-python", "--output", folder / "exported")
    assert (done.returncode, done.stdout.strip()) == (0, str(folder / "exported")), done.stderr
    return case, folder / "run", folder / "exported"


def test_every_table_is_exported_by_scenario(run):
    _, source, exported = run
    tables = package.results.load_simulation_arrow(source)
    for name, expected in tables.items():
        folder = exported / "simulation" / name
        if not expected.num_rows:
            assert not folder.exists()
            continue
        parts = [folder / f"scenario_id={number:04d}" / "data.parquet" for number in range(SCENARIOS)]
        assert sorted(folder.iterdir()) == [part.parent for part in parts]
        found = pa.concat_tables([pq.ParquetFile(part).read() for part in parts])
        ours = {"costs": {"diversion_cost", "non_controllable_reward"}}.get(name, set())
        assert set(expected.column_names) - set(found.column_names) == ours
        for column in set(found.column_names) - ({"spillage_cost"} if name == "costs" else set()):
            assert found[column].to_pylist() == expected[column].to_pylist(), (name, column)


def test_exported_paths_and_costs_match_run(run):
    _, source, exported = run
    costs = package.results.load_simulation_arrow(source, "costs")
    paths = pq.read_table(exported / "simulation" / "paths.parquet")
    assert paths.to_pydict() == {name: costs[name].to_pylist() for name in ("scenario_id", "stage_id", "node_id")}
    summary = pq.read_table(exported / "simulation" / "scenario_summary.parquet")
    stored = json.loads((source / "summary.json").read_text())
    assert pc.mean(summary["discounted_immediate_cost"]).as_py() == pytest.approx(stored["simulated_mean_cost"])
    assert summary["probability"].null_count == SCENARIOS


def test_exported_policy_reads_back_unchanged(run):
    _, source, exported = run
    ours = read_policy(source / "policy" / "policy.bin")
    found = read_cobre_python_policy(exported / "policy" / "manifest.bin")
    assert found.metadata.state_names == ours.metadata.state_names
    assert found.metadata.stage_end_dates == ours.metadata.stage_end_dates
    bounds = {name: ours.metadata.facts[name] for name in ("lower_bound", "upper_bound")}
    assert found.metadata.facts == bounds  # their format has no place for the digest of the problem
    assert found.metadata.seeds == ours.metadata.seeds
    for left, right in zip(found.stages, ours.stages, strict=True):
        np.testing.assert_allclose(left.intercepts, right.intercepts, rtol=1e-15)
        np.testing.assert_allclose(left.coefficients, right.coefficients, rtol=1e-15)
        assert (left.iteration == right.iteration).all()
        assert (left.forward_pass == right.forward_pass).all()
        assert left.is_active.all()  # simulations use all cuts here, and only active ones there


def test_reimported_policy_simulates_to_same_costs(run, tmp_path):
    case, source, exported = run
    done = cobre("simulate", case, "--policy", exported, "--output", tmp_path / "again", "--no-report", *ONE_PROCESS)
    assert done.returncode == 0, done.stderr
    stored, again = (json.loads((folder / "summary.json").read_text()) for folder in (source, tmp_path / "again"))
    assert again["simulated_mean_cost"] == pytest.approx(stored["simulated_mean_cost"], rel=1e-9)


def test_training_counters_are_exported(run):
    _, source, exported = run
    training = exported / "training"
    bounds = pq.read_table(training / "convergence.parquet")
    assert bounds["lower_bound"].to_pylist() == [row["lower_bound"] for row in package.results.load_convergence(source)]
    solver = pq.read_table(training / "solver" / "iterations.parquet")
    assert set(solver["phase"].to_pylist()) == {"forward", "backward", "lower_bound"}
    counts = solver.group_by("iteration").aggregate([("lp_solves", "sum")]).sort_by("iteration")
    assert counts["lp_solves_sum"].to_pylist() == bounds["lp_solves"].to_pylist()
    assert min(solver["simplex_iterations"].to_pylist()) > 0
    assert solver["basis_offered"].null_count == solver.num_rows  # null rather than 0, because it is not counted
    timing = pq.read_table(training / "timing" / "iterations.parquet")
    assert timing["forward_wall_ms"].to_pylist() == bounds["time_forward_ms"].to_pylist()
    assert {path.name for path in training.iterdir()} >= {"_SUCCESS", "metadata.json", "dictionaries"}
    assert json.loads((training / "metadata.json").read_text())["status"] == "complete"


def test_run_without_simulation_exports_no_simulation(run, tmp_path):
    case, source, _ = run
    shutil.copytree(source, tmp_path / "run", ignore=shutil.ignore_patterns("simulation"))
    export_run(tmp_path / "run", tmp_path / "exported", case=case)
    assert not (tmp_path / "exported" / "simulation").exists()
    assert (tmp_path / "exported" / "policy" / "manifest.bin").exists()


def test_existing_directory_is_untouched(run, tmp_path):
    case, source, _ = run
    (tmp_path / "mine.txt").write_text("mine")
    done = cobre("export", source, "--layout", "cobre-python", "--output", tmp_path, "--case", case)
    assert done.returncode == 5
    assert "is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_missing_or_other_case_is_refused(run, tmp_path):
    case, source, _ = run
    shutil.copytree(source, tmp_path / "run")
    study = json.loads((source / "study.json").read_text())
    (tmp_path / "run" / "study.json").write_text(json.dumps(study | {"case": str(tmp_path / "gone")}))
    words = ("export", tmp_path / "run", "--layout", "cobre-python", "--output", tmp_path / "exported")
    done = cobre(*words)
    assert done.returncode == 8
    assert "give its directory with --case" in done.stderr
    other = SLOW_CASE if case.name == QUICK_CASE.name else QUICK_CASE
    done = cobre(*words, "--case", other)
    assert done.returncode == 8
    assert "give the case of the run" in done.stderr
    assert cobre(*words, "--case", case).returncode == 0


def test_modified_table_is_refused(run, tmp_path):
    case, source, _ = run
    shutil.copytree(source, tmp_path / "run")
    table = tmp_path / "run" / "simulation" / "buses.parquet"
    table.write_bytes(table.read_bytes()[:-1])
    done = cobre("export", tmp_path / "run", "--layout", "cobre-python", "--output", tmp_path / "out", "--case", case)
    assert done.returncode == 8
    assert "buses.parquet" in done.stderr
    assert not (tmp_path / "out").exists()


def test_export_refuses_a_directory_without_a_run(tmp_path):
    done = cobre("export", tmp_path, "--layout", "cobre-python", "--output", tmp_path / "out")
    assert done.returncode == 8
    assert "has no finished training" in done.stderr
    with pytest.raises(ExportError, match="'parchment' is not an export format"):
        export_run(tmp_path, tmp_path / "out", layout="parchment")
    with pytest.raises(ExportError, match="nothing does not exist: give the output directory of a run"):
        export_run(tmp_path / "nothing", tmp_path / "out")


def test_scenarios_split_across_row_groups_are_refused(tmp_path):
    ids = pa.array([0, 0, 0, 1, 2, 2, 2, 2, 7], pa.int32())
    table = pa.table({"scenario_id": ids, "value": pa.array(range(9))})
    pq.write_table(table, tmp_path / "table.parquet", row_group_size=2)
    found = {scenario: rows["value"].to_pylist() for scenario, rows in scenarios_of(tmp_path / "table.parquet")}
    assert found == {0: [0, 1, 2], 1: [3], 2: [4, 5, 6, 7], 7: [8]}
    pq.write_table(pa.concat_tables([table, table]), tmp_path / "table.parquet")
    with pytest.raises(ExportError, match="scenario by scenario"):
        list(scenarios_of(tmp_path / "table.parquet"))


def changed_manifest(source, **entry):
    """Change the entry of the table of costs in the manifest of the simulation."""
    path = source / "simulation" / "manifest.json"
    content = json.loads(path.read_text())
    content["tables"]["costs"] |= entry
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("name", ["../../elsewhere.parquet", "/dev/zero", "link.parquet"])
def test_manifest_that_names_files_outside_the_run_is_refused(run, tmp_path, name):
    case, whole, _ = run
    source = shutil.copytree(whole, tmp_path / "run")
    shutil.copyfile(whole / "simulation" / "costs.parquet", tmp_path / "elsewhere.parquet")
    (source / "simulation" / "link.parquet").symlink_to(tmp_path / "elsewhere.parquet")
    changed_manifest(source, file=name)
    with pytest.raises(ExportError, match="leads out of"):
        export_run(source, tmp_path / "exported", case=case)
    assert not (tmp_path / "exported").exists()


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/hostname"])
def test_links_among_exports_of_a_run_are_not_followed_out_of_it(run, tmp_path, target):
    case, whole, _ = run
    source = shutil.copytree(whole, tmp_path / "run")
    (source / "stochastic").mkdir(exist_ok=True)
    (source / "stochastic" / "more.csv").symlink_to(target)
    with pytest.raises(ExportError, match="leads out of"):
        export_run(source, tmp_path / "exported", case=case)
    assert not (tmp_path / "exported").exists()


def test_link_as_target_directory_is_refused(run, tmp_path):
    case, source, _ = run
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "exported").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(package.errors.OutputError, match="symbolic link"):
        export_run(source, tmp_path / "exported", case=case)
    assert list((tmp_path / "elsewhere").iterdir()) == []

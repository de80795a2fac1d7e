"""Cases that changed after their run: an error if results would be wrong, a warning if they may be."""

import json
import shutil

import pytest
from cli_runs import ONE_PROCESS
from cli_runs import cobre as command
from shared_systems import reservoirs
from small_system import write_case

import cobre
from cobre.errors import PolicyIncompatibleError

POLICY = 7
RESULTS = 8
THERMALS = "system/thermals.json"


@pytest.fixture(scope="module")
def trained_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    case = write_case(folder / "case", reservoirs(), forward_passes=2, iterations=4)
    answer = command("run", case, "-o", folder / "results", "--quiet", "--no-report", *ONE_PROCESS)
    assert answer.returncode == 0, answer.stderr
    return folder


@pytest.fixture
def run(trained_run, tmp_path):
    """Return a copy of the case and its results that a test may change; study.json names the copied case."""
    shutil.copytree(trained_run, tmp_path / "copy")
    study = tmp_path / "copy" / "results" / "study.json"
    facts = json.loads(study.read_text())
    assert facts["case"] == str(trained_run / "case"), "an absolute path, so that it does not matter where one stands"
    study.write_text(json.dumps(facts | {"case": str(tmp_path / "copy" / "case")}))
    return tmp_path / "copy"


def raise_thermal_cost(case):
    path = case / THERMALS
    content = json.loads(path.read_text())
    for thermal in content["thermals"]:
        thermal["cost_per_mwh"] *= 2.0
    path.write_text(json.dumps(content))


def test_bound_of_changed_case_is_rejected_with_changed_file(run):
    raise_thermal_cost(run / "case")
    answer = command("bound", run / "results")
    assert answer.returncode == POLICY
    assert "the policy was trained on a different problem (changed file: system/thermals.json)" in answer.stderr
    assert not answer.stdout
    assert not (run / "results" / "bound.json").exists()


def test_reformatted_case_is_the_same_problem(run):
    """File layout and iteration limit do not affect a bound."""
    path = run / "case" / THERMALS
    path.write_text(json.dumps(json.loads(path.read_text()), indent=8))
    config = json.loads((run / "case" / "config.json").read_text())
    config["training"]["stopping_rules"][0]["limit"] = 99
    (run / "case" / "config.json").write_text(json.dumps(config))
    assert command("bound", run / "results").returncode == 0


def test_directory_of_moved_case_is_accepted(run):
    expected = command("bound", run / "results").stdout
    (run / "case").rename(run / "moved")
    lost = command("bound", run / "results")
    assert lost.returncode == RESULTS
    assert f"{run / 'case'} no longer exists: give its directory, cobre bound" in lost.stderr
    found = command("bound", run / "results", "--case", run / "moved")
    assert found.stdout == expected
    assert (run / "results" / "bound.json").exists()


def test_damaged_record_of_the_case_is_not_called_a_case_in_memory(run):
    (run / "results" / "study.json").write_text("{")
    lost = command("bound", run / "results")
    assert lost.returncode == RESULTS
    assert f"is not known, because {run / 'results' / 'study.json'} cannot be read: give its directory" in lost.stderr


def test_given_case_is_compared_with_policy(run):
    shutil.copytree(run / "case", run / "other")
    raise_thermal_cost(run / "other")
    answer = command("bound", run / "results", "--case", run / "other")
    assert answer.returncode == POLICY
    assert f"Bounds for {run / 'other'} would be wrong" in answer.stderr


def test_policy_without_study_json_is_rejected_for_changed_case(run, tmp_path):
    """Without study.json the changed file is not known, but the policy is still refused."""
    shutil.copy(run / "results" / "policy" / "policy.bin", tmp_path / "policy.bin")
    assert command("bound", run / "case", "--policy", tmp_path / "policy.bin").returncode == 0
    raise_thermal_cost(run / "case")
    answer = command("bound", run / "case", "--policy", tmp_path / "policy.bin")
    assert answer.returncode == POLICY
    assert "trained on a different problem. Bounds for" in answer.stderr


def test_policy_in_memory_is_checked_against_case(trained_run):
    case = cobre.load_case(trained_run / "case")
    policy = cobre.train(case, threads=1).policy
    assert cobre.bound(case, policy, threads=1).notes == ()
    thermal = case.system.thermals[0]
    dearer = cobre.changed(case, {f"system.thermals[{thermal.id}].cost_per_mwh": 2.0 * thermal.cost_per_mwh})
    with pytest.raises(PolicyIncompatibleError, match="different problem"):
        cobre.bound(dearer, policy, threads=1)


def test_overrides_of_a_run_apply_to_its_bound(trained_run, tmp_path):
    """A risk measure, or other openings, from config_overrides are part of the problem that was trained."""
    overrides = {"training.scenario_source": {}, "training.tree_seed": 5}
    cobre.run.run(str(trained_run / "case"), output_dir=str(tmp_path / "out"), config_overrides=overrides, threads=1)
    assert json.loads((tmp_path / "out" / "study.json").read_text())["config_overrides"] == overrides
    found = cobre.bound(tmp_path / "out", threads=1)
    assert found.upper_bound >= found.lower_bound


def test_simulating_on_a_changed_case_warns(run, tmp_path):
    raise_thermal_cost(run / "case")
    finished = command("simulate", run / "case", "-p", run / "results", "-o", tmp_path / "out", "--quiet", *ONE_PROCESS)
    assert finished.returncode == 0, finished.stderr
    assert "trained on a different problem (changed file: system/thermals.json)" in finished.stderr
    assert cobre.simulate(run / "case", run / "results", scenarios=2, threads=1).warnings[-1] in finished.stderr


def test_simulating_on_the_same_case_does_not_warn(run, tmp_path):
    finished = command("simulate", run / "case", "-p", run / "results", "-o", tmp_path / "out", "--quiet", *ONE_PROCESS)
    assert "different problem" not in finished.stderr


def test_warm_start_with_cuts_of_another_problem_warns(run, tmp_path):
    raise_thermal_cost(run / "case")
    words = ("run", run / "case", "-o", tmp_path / "out", "--warm-start", run / "results", "--quiet", *ONE_PROCESS)
    finished = command(*words)
    assert finished.returncode == 0, finished.stderr
    assert "its cuts may be too high for this one, and so may the lower bound" in finished.stderr


def test_rejected_resume_names_changed_file(run):
    raise_thermal_cost(run / "case")
    finished = command("run", run / "case", "-o", run / "results", "--resume", "--quiet", *ONE_PROCESS)
    assert finished.returncode == POLICY
    assert "changed file: system/thermals.json" in finished.stderr


def test_report_notes_that_the_case_has_changed(run):
    assert "has changed" not in command("report", run / "results").stderr
    raise_thermal_cost(run / "case")
    finished = command("report", run / "results")
    assert f"note: {run / 'case'} has changed since this run (changed file: {THERMALS})" in finished.stderr


def test_comparison_lists_differing_case_files(run, tmp_path):
    raise_thermal_cost(run / "case")
    command("run", run / "case", "-o", tmp_path / "out", "--quiet", "--no-report", *ONE_PROCESS)
    finished = command("compare", run / "results", tmp_path / "out", "--bits")
    assert f"note: files of the case that differ: {THERMALS}" in finished.stdout

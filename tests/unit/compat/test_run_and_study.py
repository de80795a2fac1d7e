"""cobre.run.run and cobre.Study, in this process and with workers."""

import json
import math

import numpy as np
import pytest

import cobre
from cobre.runs.content import read_run_content

KEYS = {
    "converged", "gap_percent", "hydro_models", "iterations", "lower_bound", "output_dir", "provenance", "simulation",
    "stochastic", "total_time_ms", "upper_bound",
}  # fmt: skip


def test_run_returns_summary_dictionary(finished):
    folder, result = finished
    assert set(result) == KEYS
    assert result["iterations"] == 4
    assert result["converged"] is False
    assert result["output_dir"] == str(folder)
    assert result["simulation"] == {"n_scenarios": 6, "completed": 6}
    assert result["gap_percent"] == pytest.approx(100 * (result["upper_bound"] / result["lower_bound"] - 1))
    assert json.dumps(result)


def test_run_and_train_return_equal_bounds(finished, case_dir, limit):
    trained = cobre.train(case_dir, config_overrides=limit, threads=1)
    assert (trained.lower_bound, trained.upper_bound) == (finished[1]["lower_bound"], finished[1]["upper_bound"])
    summary = json.loads((finished[0] / "summary.json").read_text())
    assert summary["digest"] == trained.digest


def test_bits_do_not_depend_on_workers(finished, case_dir, limit, tmp_path):
    result = cobre.run.run(case_dir, tmp_path, config_overrides=limit, num_workers=2)
    assert result["lower_bound"] == finished[1]["lower_bound"]
    digests = [json.loads((folder / "summary.json").read_text())["digest"] for folder in (tmp_path, finished[0])]
    assert digests[0] == digests[1]


def test_train_then_simulate_writes_files_of_one_run(finished, case_dir, limit, tmp_path):
    study = cobre.Study(case_dir, tmp_path, threads=1, config_overrides=limit)
    policy = study.train()
    assert study.simulate(policy) == {"n_scenarios": 6, "completed": 6}
    ours, theirs = (json.loads((folder / "summary.json").read_text()) for folder in (tmp_path, finished[0]))
    for name in ("digest", "lower_bound", "simulation_digest", "simulated_mean_cost", "simulated_scenarios"):
        assert ours[name] == theirs[name]
    assert read_run_content(tmp_path).digest == read_run_content(finished[0]).digest


def test_callback_returning_true_stops_training(case_dir, tmp_path):
    for workers in (None, 2):
        seen = []

        def look(iteration, seen=seen):
            seen.append(iteration["iteration"])
            return iteration["iteration"] >= 3

        folder = tmp_path / str(workers)
        policy = cobre.Study(case_dir, folder, num_workers=workers).train(on_iteration=look)
        assert seen == [1, 2, 3]
        assert policy.iterations == 4
        facts = cobre.results.load_results(folder)["training"]["manifest"]
        assert facts["convergence"]["achieved"] is False


def test_stopped_then_simulated_run_is_finished(case_dir, tmp_path):
    study = cobre.Study(case_dir, tmp_path, config_overrides={"simulation.enabled": True})
    study.simulate(study.train(on_iteration=lambda _: True))
    with pytest.raises(cobre.errors.OutputError, match=r"2 iterations, finished: the caller asked to stop"):
        study.train()


def test_study_stopped_by_caller_can_simulate(case_dir, tmp_path):
    overrides = {"simulation.enabled": True, "simulation.selection.num_scenarios": 2}
    result = cobre.run.run(case_dir, tmp_path, config_overrides=overrides, on_iteration=lambda _: True)
    assert result["iterations"] == 2
    assert result["simulation"] == {"n_scenarios": 2, "completed": 2}


@pytest.mark.parametrize("workers", [None, 2])
def test_callback_exception_reaches_caller(case_dir, tmp_path, workers):
    def complain(_):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        cobre.run.run(case_dir, tmp_path, on_iteration=complain, num_workers=workers)


def test_events_passed_to_the_callback(case_dir, tmp_path, limit):
    events = []
    cobre.Study(case_dir, tmp_path, config_overrides=limit).train(events.append)
    assert [entry["iteration"] for entry in events] == [1, 2, 3, 4]
    assert set(events[0]) == {"kind", "iteration", "lower_bound", "upper_bound", "gap", "wall_time_ms"}
    assert events[0]["kind"] == "iteration"
    assert isinstance(events[0]["wall_time_ms"], int)


def test_bound_stalling_counts_as_convergence(case_dir, tmp_path):
    rules = [{"type": "iteration_limit", "limit": 200}, {"type": "bound_stalling", "iterations": 3, "tolerance": 0.5}]
    overrides = {"training.stopping_rules": rules, "simulation.enabled": False}
    result = cobre.run.run(case_dir, tmp_path, config_overrides=overrides)
    assert result["converged"] is True
    assert result["iterations"] < 200
    assert result["simulation"] is None
    facts = cobre.results.load_results(tmp_path)
    assert facts["training"]["manifest"]["convergence"]["termination_reason"] == "bound_stalling"
    assert facts["simulation"] == {"complete": False, "manifest": None}
    assert facts["training"]["manifest"]["iterations"] == {"completed": result["iterations"]} | {
        "converged_at": result["iterations"]
    }
    with pytest.raises(FileNotFoundError, match="simulation"):
        cobre.results.load_simulation(tmp_path)


def test_stored_policy_alone(finished, case_dir, limit, tmp_path):
    study = cobre.Study(case_dir, finished[0], config_overrides=limit)
    policy = study.load_policy()
    assert policy.iterations == 4
    assert study.simulate(policy, output_dir=tmp_path) == {"n_scenarios": 6, "completed": 6}
    assert len(cobre.results.load_simulation(tmp_path, "costs")) == 6 * 12


def test_run_with_nothing_enabled_returns_empty_outcome(case_dir, tmp_path):
    overrides = {"training.enabled": False, "simulation.enabled": False}
    result = cobre.run.run(case_dir, tmp_path / "out", config_overrides=overrides)
    assert (result["iterations"], result["lower_bound"], result["upper_bound"]) == (0, 0.0, None)
    assert not (tmp_path / "out").exists()


def test_missing_policy_error_names_expected_path(case_dir, tmp_path):
    with pytest.raises(cobre.errors.ValidationError, match="policy"):
        cobre.run.run(case_dir, tmp_path, config_overrides={"training.enabled": False, "simulation.enabled": True})


def test_worker_error_is_raised_with_original_type(case_dir, tmp_path):
    overrides = {"training.enabled": False, "simulation.enabled": True}
    with pytest.raises(cobre.errors.ValidationError, match="policy"):
        cobre.run.run(case_dir, tmp_path, config_overrides=overrides, num_workers=2)


def test_disabled_training_raises(case_dir, tmp_path):
    study = cobre.Study(case_dir, tmp_path, config_overrides={"training.enabled": False})
    with pytest.raises(cobre.errors.ValidationError, match=r"training\.enabled is false"):
        study.train()


def test_policy_of_another_study_raises(finished, case_dir, tmp_path):
    other = case_dir.parent / "four_regions"
    policy = cobre.Study(case_dir, finished[0]).load_policy()
    study = cobre.Study(other, tmp_path)
    with pytest.raises(cobre.errors.PolicyIncompatibleError):
        study.simulate(policy)
    with pytest.raises(cobre.errors.PolicyIncompatibleError):
        study.load_policy(finished[0])
    with pytest.raises(TypeError, match="expected a policy"):
        study.simulate(None)


def test_disabled_simulation_is_skipped(finished, case_dir, tmp_path):
    study = cobre.Study(case_dir, finished[0], config_overrides={"simulation.enabled": False})
    assert study.simulate(study.load_policy(), tmp_path / "new") == {"n_scenarios": 0, "completed": 0}
    assert not (tmp_path / "new").exists()


def test_arguments_are_checked_before_any_work(case_dir, tmp_path):
    with pytest.raises(ValueError, match="threads"):
        cobre.Study(case_dir, tmp_path, threads=0)
    with pytest.raises(ValueError, match="threads: expected 1 to 1024, got 2000"):
        cobre.Study(case_dir, tmp_path, threads=2000)
    with pytest.raises(TypeError, match="threads: expected a whole number, got '2'"):
        cobre.Study(case_dir, tmp_path, threads="2")
    with pytest.raises(OSError, match="does not exist"):
        cobre.run.run(tmp_path / "nowhere")


def test_properties_of_a_study_before_it_runs(case_dir, tmp_path):
    study = cobre.Study(case_dir, tmp_path / "out")
    assert study.output_dir == str(tmp_path / "out")
    assert cobre.Study(case_dir).output_dir == str(case_dir / "output")
    assert study.system.n_hydros == 2
    assert study.validate()["valid"] is True
    assert study.stochastic["openings_per_stage"] == [10] * 12
    assert study.stochastic["ar_order"]["order_counts"] == [2]
    assert study.hydro_models["n_constant"] == 2
    assert study.provenance["estimation_path"] == "user_stats_white_noise"
    assert not (tmp_path / "out").exists()


def test_evaluate_and_cut_matrix(finished, case_dir):
    policy = cobre.Study(case_dir, finished[0]).load_policy()
    intercepts, coefficients = policy.cut_matrix(0)
    assert intercepts.shape == (16,)
    assert coefficients.shape == (16, 2)
    state = [400.0, 200.0]
    assert policy.evaluate(0, state) == pytest.approx(float((intercepts + coefficients @ state).max()), rel=1e-13)
    assert policy.evaluate(0, np.array(state)) == policy.evaluate(0, state)
    assert policy.cost_to_go(0, state) == policy.evaluate(0, state) * policy.cost_scale
    assert policy.evaluate(11, state) == -math.inf
    assert policy.cost_to_go(11, state) == 0.0
    with pytest.raises(IndexError):
        policy.evaluate(12, state)
    with pytest.raises(ValueError, match="2 entries"):
        policy.evaluate(0, [1.0])

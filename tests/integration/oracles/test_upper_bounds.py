"""Upper bounds under nested CVaR compared with the extensive form, and with a walk over every path of the tree."""

import json
import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cli_runs import cobre as command
from drawn_systems import small_systems
from extensive_form import optimum
from hypothesis import HealthCheck, given, settings
from shared_systems import reservoirs
from small_system import write_case

import cobre
from cobre.text import gap_percent

ABOVE = 1e-9  # relative to the optimum: within the tolerances of the LPs
PATIENT = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
RISKS = [(0.3, 0.6), (0.25, 1.0), None]


def trained(folder, system, iterations):
    case = write_case(folder, system, forward_passes=4, iterations=iterations)
    return case, cobre.train(case, threads=1)


@pytest.mark.parametrize("memory", [None, 0.5])
@pytest.mark.parametrize("risk", RISKS)
def test_bounds_bracket_optimum(tmp_path, risk, memory):
    system = reservoirs(risk, memory)
    case, result = trained(tmp_path, system, iterations=30)
    best = optimum(system)
    exact = cobre.bound(case, result.policy, method="enumeration")
    inner = cobre.bound(case, result.policy, method="inner", paths=200)
    assert exact.lower_bound <= best * (1 + ABOVE)
    assert best * (1 - ABOVE) <= exact.upper_bound
    assert best * (1 - ABOVE) <= inner.upper_bound
    assert inner.upper_bound <= best * 1.01  # tight, because the state is small


@pytest.mark.parametrize("method", ["enumeration", "inner"])
def test_bounds_hold_for_barely_trained_policy(tmp_path, method):
    system = reservoirs()
    case, result = trained(tmp_path, system, iterations=2)
    assert cobre.bound(case, result.policy, method=method).upper_bound >= optimum(system) * (1 - ABOVE)


@PATIENT
@given(small_systems(is_averse=True))
def test_inner_bounds_of_random_systems_are_above_optimum(system):
    with tempfile.TemporaryDirectory() as folder:
        case, result = trained(Path(folder), system, iterations=6)
        bound = cobre.bound(case, result.policy, method="inner", paths=20)
    best = optimum(system)
    assert bound.upper_bound >= best - 1e-7 * max(10_000.0, abs(best))


def test_enumeration_equals_nested_risk_over_all_paths(tmp_path):
    """Walk all paths under the policy, and fold their costs back explicitly."""
    system = reservoirs()
    case, result = trained(tmp_path, system, iterations=3)
    bound = cobre.bound(case, result.policy, method="enumeration")
    openings, stages = system.num_openings, system.num_stages
    costs = stage_costs_of_all_paths(case, result.policy, openings, stages)
    assert bound.bound.size == sum(openings**stage for stage in range(1, stages + 1))
    assert bound.upper_bound == pytest.approx(nested_cost(system, costs), rel=1e-9)


def stage_costs_of_all_paths(case, policy, openings, stages):
    """Return, by path (a tuple of openings), the cost of each stage in $."""
    from cobre.comm.backends.local import LocalCommunicator
    from cobre.policy.store import fill_pool
    from cobre.sddp.problem.boundary import BoundaryCutPool
    from cobre.solver.batches import Chains, Outputs, no_bases
    from cobre.study.preparation.prepare import prepare
    from cobre.study.preparation.study_solver import make_solver

    study = prepare(cobre.load_case(case))
    solver, problem = make_solver(study, 1), study.problem
    by_key = {}
    with LocalCommunicator() as comm:
        pool = BoundaryCutPool(comm, problem, None)
        fill_pool(pool, policy, study)
        for path in product(range(openings), repeat=stages):
            state, costs = problem.initial_state[None], []
            for stage, opening in enumerate(path):
                program = problem.stages[stage].program
                noise = problem.openings[stage].realisations
                chains = Chains.single(state, noise, np.array([opening], np.int32), no_bases(program))
                rows = pool.rows(stage, all_cuts=True)
                batch = solver.solve(stage, rows, chains, Outputs())
                future = 0.0 if stage == stages - 1 else problem.discounts[stage] * batch.future_cost[0]
                costs.append((batch.objective[0] - future) * problem.cost_scale)
                state = program.next_states(state, batch.decided, batch.inflow)
            by_key[path] = costs
        pool.close()
    return by_key


def nested_cost(system, costs, path=()):
    """Return the risk over the openings after a path of (stage cost + discounted risk of the rest)."""
    alpha, share = system.risk
    stage, values = len(path), []
    for opening in range(system.num_openings):
        longer = (*path, opening)
        if stage + 1 == system.num_stages:
            values.append(costs[longer][stage])
        else:
            any_path = longer + (0,) * (system.num_stages - stage - 1)
            values.append(costs[any_path][stage] + system.discount(stage) * nested_cost(system, costs, longer))
    worst, room = sorted(values, reverse=True), alpha * len(values)
    tail = 0.0
    for value in worst:
        tail += min(1.0, room) * value
        room -= min(1.0, room)
    return (1 - share) * sum(values) / len(values) + share * tail / (alpha * len(values))


def test_sampled_estimate_is_between_the_bounds(tmp_path):
    """Check in expectation: lower bound <= estimate <= exact cost of the policy."""
    system = reservoirs()
    case, result = trained(tmp_path, system, iterations=2)
    exact = cobre.bound(case, result.policy, method="enumeration")
    estimate = cobre.bound(case, result.policy, method="sampled", paths=4000, confidence=0.999)
    assert estimate.lower_bound == pytest.approx(exact.lower_bound, rel=1e-12)
    assert estimate.lower_bound <= estimate.policy_cost
    assert estimate.policy_cost - estimate.bound.half_width <= exact.upper_bound
    # At this policy the gap is 5 % and more; the estimate sees most of it.
    assert estimate.policy_cost - estimate.lower_bound >= 0.5 * (exact.upper_bound - exact.lower_bound)
    assert exact.upper_bound <= estimate.upper_bound


@pytest.mark.parametrize("iterations", [2, 4, 8])
def test_sampled_bound_under_a_risk_measure_errs_on_the_safe_side(tmp_path, iterations):
    """Check 50 seeds: the estimate's interval misses the cost more often than in 5 %, the bound is never below it."""
    case, result = trained(tmp_path, reservoirs(), iterations)
    exact = cobre.bound(case, result.policy, method="enumeration")
    upper = [cobre.bound(case, result.policy, method="sampled", paths=50, seed=seed) for seed in range(50)]
    assert len({bound.policy_cost for bound in upper}) == 50
    assert all(bound.upper_bound >= exact.policy_cost for bound in upper)
    # It is a bound in expectation: the centres of the intervals are above the cost.
    assert sum(bound.policy_cost for bound in upper) / 50 <= exact.policy_cost * (1 + 1e-3)


def test_message_calls_estimate_an_estimate(tmp_path):
    case, result = trained(tmp_path, reservoirs(), iterations=4)
    bound = cobre.bound(case, result.policy, method="sampled", paths=50)
    text, content = str(bound), bound.as_dict()
    assert "at most" not in text
    assert "an estimate, not a bound" in text
    assert "estimated gap" in text
    assert content["is_estimate"]
    assert content["policy_cost"] < content["upper_bound"]
    assert content["gap"] == pytest.approx((content["policy_cost"] - bound.lower_bound) / bound.lower_bound)
    assert content["gap_at_most"] == pytest.approx((content["upper_bound"] - bound.lower_bound) / bound.lower_bound)
    plain = cobre.bound(case, result.policy, method="enumeration").as_dict()
    assert "is_estimate" not in plain
    assert plain["policy_cost"] == plain["upper_bound"]


def test_stop_by_estimate_is_not_reported_as_converged(tmp_path):
    case = write_case(tmp_path, reservoirs(), forward_passes=4, iterations=30)
    config = json.loads((case / "config.json").read_text())
    rule = {"type": "upper_bound", "gap_percent": 50.0, "period": 4, "method": "sampled", "paths": 50}
    config["training"]["stopping_rules"] += [rule]
    (case / "config.json").write_text(json.dumps(config))
    result = cobre.train(case, threads=1)
    assert result.stop_kind == "upper_bound"
    assert "estimated from below" in result.stop_reason
    assert result.verdict.kind != "converged"
    assert "estimated from below" in result.verdict.sentence


def test_sampled_bound_is_omitted_for_many_stages(tmp_path):
    """Check that weights of up to 3.4 times the probability give no bound over twelve stages."""
    system = reservoirs(risk=(0.25, 0.8))
    system = replace(system, loads=system.loads * 3, noise=system.noise * 3)
    case, result = trained(tmp_path, system, iterations=2)
    bound = cobre.bound(case, result.policy, method="sampled", paths=10)
    assert bound.upper_bound is None
    assert bound.as_dict()["gap_at_most"] is None
    assert "upper bound: none by sampling" in str(bound)


def test_risk_neutral_estimate_is_mean_of_paths(tmp_path):
    case, result = trained(tmp_path, reservoirs(risk=None), iterations=2)
    exact = cobre.bound(case, result.policy, method="enumeration")
    estimate = cobre.bound(case, result.policy, method="sampled", paths=4000, confidence=0.999)
    assert abs(estimate.upper_bound - exact.upper_bound) <= estimate.bound.half_width


@pytest.mark.parametrize("method", ["enumeration", "inner", "sampled"])
def test_bits_do_not_depend_on_workers_or_threads(tmp_path, method):
    case, result = trained(tmp_path, reservoirs(memory=0.5), iterations=3)
    alone = cobre.bound(case, result.policy, method=method, threads=1)
    shared = cobre.bound(case, result.policy, method=method, num_workers=3, threads=2)
    assert alone.as_dict() == shared.as_dict()


def test_stopping_rule_ends_a_risk_averse_run(tmp_path):
    case = write_case(tmp_path, reservoirs(), forward_passes=4, iterations=60)
    rules = [
        {"type": "iteration_limit", "limit": 60},
        {"type": "upper_bound", "gap_percent": 0.5, "period": 5, "method": "inner", "paths": 100},
    ]
    result = cobre.train(case, threads=1, config_overrides={"training.stopping_rules": rules})
    assert result.stop_kind == "upper_bound"
    assert len(result.history) % 5 == 0
    assert "inner approximation" in result.stop_reason
    best = optimum(reservoirs())
    assert result.lower_bound == pytest.approx(best, rel=0.005)


def test_command_stores_the_bound_for_the_report(tmp_path):
    case = write_case(tmp_path, reservoirs(), forward_passes=2, iterations=4)
    output = tmp_path / "results"
    assert command("run", case, "-o", output, "--quiet", "--no-report", "--workers", "1").returncode == 0
    answer = command("bound", output, "--json")
    report = json.loads(answer.stdout)
    assert report["method"] == "enumeration"
    assert report["is_risk_averse"]
    assert json.loads((output / "bound.json").read_text()) == report
    page = command("report", output, "-o", tmp_path / "page.html")
    assert page.returncode == 0
    assert "exact cost of the policy" in (tmp_path / "page.html").read_text()


def test_directory_without_policy_is_rejected(tmp_path):
    answer = command("bound", tmp_path)
    assert answer.returncode == 8
    assert f"{tmp_path} holds no policy, nor does {tmp_path / 'output'}: give" in answer.stderr


def test_file_instead_of_directory_is_rejected(tmp_path):
    (tmp_path / "file").touch()
    answer = command("bound", tmp_path / "file")
    assert answer.returncode == 8
    assert f"{tmp_path / 'file'} is not a directory: give" in answer.stderr


def test_all_outputs_show_same_verdict_after_stop_by_rule(tmp_path):
    """Check that the sampled gap, which would contradict it, is not shown."""
    case = write_case(tmp_path / "case", reservoirs(risk=None), forward_passes=4, iterations=60)
    config = json.loads((case / "config.json").read_text())
    rule = {"type": "upper_bound", "gap_percent": 5.0, "period": 5, "method": "inner", "paths": 50}
    config["training"]["stopping_rules"].append(rule)
    (case / "config.json").write_text(json.dumps(config))
    output = tmp_path / "results"
    finished = command("run", case, "-o", output, "--workers", "1", "--plain")
    assert finished.returncode == 0, finished.stderr
    summary = json.loads((output / "summary.json").read_text())
    assert summary["verdict_kind"] == "converged"
    assert summary["verdict"].startswith("converged: the upper bound by inner approximation is ")
    assert summary["verdict"] in finished.stdout
    gaps = [line for line in finished.stdout.splitlines() if line.startswith("gap ")]
    assert gaps == [f"gap {gap_percent(summary['bound']['gap'])} of the lower bound"]
    assert summary["gap"] == summary["bound"]["gap"]
    page = (output / "report.html").read_text()
    assert summary["verdict"][1:] in page
    assert "sampled upper bound" not in page.lower()
    seen = command("top", output).stdout
    assert gap_percent(summary["bound"]["gap"]) in seen


@pytest.mark.parametrize("risk", [None, (0.3, 0.6)])
def test_all_outputs_show_same_gap(tmp_path, risk):
    """Check that the gap is that of the policy's cost; its possible size is shown next to it, under its own name."""
    case = write_case(tmp_path / "case", reservoirs(risk), forward_passes=4, iterations=8)
    output = tmp_path / "results"
    share = 0.0 if risk is None else 1.0
    settings = ("--set", f"training.selection.risk_weighted_share={share}")
    finished = command("run", case, "-o", output, "--workers", "1", "--plain", *settings)
    assert finished.returncode == 0, finished.stderr
    summary = json.loads((output / "summary.json").read_text())
    lower, cost, half_width = (summary[name] for name in ("lower_bound", "policy_cost", "policy_cost_half_width"))
    assert summary["gap"] == pytest.approx((cost - lower) / lower)
    end = (cost + half_width - lower) / lower
    assert summary["gap_at_most"] == (pytest.approx(end) if risk is None else None)
    gap, most = gap_percent(summary["gap"]), f"{'at most' if risk is None else 'up to'} {gap_percent(end)}"
    assert f"gap {gap} of the lower bound, {most} (95 % confidence" in finished.stdout
    assert f"{gap}, {most}" in command("top", output).stdout
    page = (output / "report.html").read_text()
    assert f"<dd>{gap}</dd>" in page
    assert f"of the lower bound, {most} (95 % confidence" in page

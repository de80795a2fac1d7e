"""Tests of the convergence verdict and its wording."""

import functools

import pytest

from cobre.core.verdict import BoundHistory, ComputedBound, PathCosts, VerdictKind, verdict

FLAT = [50.0, 90.0, *[100.0] * 11]
RISING = [50.0 + 2.0 * step for step in range(26)]


def verdict_of(lower, upper, half_width, **facts):
    return verdict(BoundHistory(lower, [upper] * len(lower), [half_width] * len(lower), **facts))


@pytest.mark.parametrize(
    ("lower", "upper", "half_width", "kind", "words"),
    [
        (FLAT, 100.2, 0.5, VerdictKind.CONVERGED, "inside the 95 % band"),
        (FLAT, 96.5, 13.0, VerdictKind.LEVELLED_OFF, "inside the 95 % band of the sampled cost (± 13.00 %)"),
        (FLAT, 80.0, 5.0, VerdictKind.LEVELLED_OFF, "so it may be too high: cuts of another problem"),
        (FLAT, 120.0, 5.0, VerdictKind.LEVELLED_OFF, "at least 15.00 % above it"),
        (RISING, 101.0, 13.0, VerdictKind.RISING, "rises by 2.00 % per iteration over the last 10;"),
        (RISING, 150.0, 13.0, VerdictKind.RISING, "at least 37.00 % above it"),
        (FLAT, 96.5, 0.0, VerdictKind.LEVELLED_OFF, "a single sampled path"),
        ([100.0], 100.0, 1.0, VerdictKind.UNDECIDED, "one iteration"),
    ],
)
def test_sampled_bounds(lower, upper, half_width, kind, words):
    convergence = verdict_of(lower, upper, half_width)
    assert convergence.kind is kind
    assert words in convergence.sentence


def test_first_iterations_of_short_run_are_ignored():
    """Every lower bound rises steeply at first; nine iterations that are flat since the fourth do not rise."""
    convergence = verdict_of([20.0, 60.0, 90.0, *[100.0] * 6], 120.0, 5.0)
    assert convergence.kind is VerdictKind.LEVELLED_OFF
    assert "rises by less than 0.010 % per iteration over the last 4;" in convergence.sentence
    assert verdict_of([20.0, 100.0, 100.0], 120.0, 5.0).kind is VerdictKind.RISING
    assert "rises by 50.00 % per iteration in the last one;" in verdict_of([50.0, 100.0], 120.0, 5.0).sentence


def test_one_unlucky_sample_below_the_lower_bound_is_chance():
    convergence = verdict(BoundHistory(FLAT, [*[96.5] * 12, 80.0], [*[13.0] * 12, 5.0]))
    assert convergence.kind is VerdictKind.CONVERGED
    assert "above the 95 % band" in convergence.sentence


def test_exact_bounds_converge_by_gap_only():
    assert verdict_of(FLAT, 100.005, 0.0, is_exact=True).kind is VerdictKind.CONVERGED
    assert verdict_of(FLAT, 100.02, 0.0, is_exact=True).kind is VerdictKind.LEVELLED_OFF
    assert verdict_of(FLAT, 100.005, 0.0, is_exact=True, is_risk_averse=True).kind is VerdictKind.CONVERGED


def test_sampled_mean_is_ignored_under_risk_measure():
    convergence = verdict_of(FLAT, 100.0, 13.0, is_risk_averse=True)
    assert convergence.kind is VerdictKind.LEVELLED_OFF
    assert "not an upper bound of the objective" in convergence.sentence


def test_interrupted_run_is_stopped_early():
    convergence = verdict(BoundHistory(FLAT, [100.2] * 13, [0.5] * 13), is_interrupted=True)
    assert convergence.kind is VerdictKind.STOPPED_EARLY
    assert convergence.sentence.startswith("stopped early; at that point: converged")


def test_verdict_is_none_before_first_iteration():
    assert verdict(BoundHistory([], [], [])) is None


def bound(gap, method="inner", confidence=None, **facts):
    content = {"method": method, "upper_bound": 100.0 * (1 + gap), "half_width": 0.0, "lower_bound": 100.0}
    return ComputedBound.of(content | {"confidence": confidence}, **facts)


def test_computed_bound_precedes_sampled_costs():
    far = verdict_of(FLAT, 100.0, 13.0, computed=bound(0.05))
    assert far.kind is VerdictKind.LEVELLED_OFF
    assert far.sentence.endswith("the upper bound by inner approximation is 5.00 % above the lower bound")
    enough = verdict_of(RISING, 150.0, 13.0, computed=bound(0.05, is_enough=True))
    assert enough.kind is VerdictKind.CONVERGED
    closed = verdict_of(RISING, 150.0, 13.0, is_risk_averse=True, computed=bound(0.0))
    assert closed.kind is VerdictKind.CONVERGED


def test_estimate_states_its_confidence():
    convergence = verdict_of(FLAT, 100.0, 13.0, is_risk_averse=True, computed=bound(0.02, "sampled", 0.95))
    words = "the estimated cost of the policy is at most 2.00 % above the lower bound (95 % confidence)"
    assert convergence.sentence.endswith(words)


@pytest.mark.parametrize("content", [None, [], {}, {"method": "other"}, {"method": "inner", "upper_bound": "0.1"}])
def test_content_without_bound_is_none(content):
    assert ComputedBound.of(content) is None


@pytest.mark.parametrize(
    ("costs", "is_bound", "names"),
    [
        (PathCosts(), True, ("upper bound", "sampled", "sampled upper bound")),
        (PathCosts(is_risk_averse=True), False, ("mean cost", "sampled, not a bound", "mean of sampled paths")),
        (PathCosts(is_superseded=True), True, ("mean cost", "sampled", "mean of sampled paths")),
        (PathCosts(True, True, True), True, ("upper bound", "exact", "exact upper bound")),
    ],
)
def test_labels_of_path_costs(costs, is_bound, names):
    assert costs.is_bound is is_bound
    assert (costs.name, costs.label, costs.long_name) == names


@pytest.mark.parametrize(
    ("half_width", "is_risk_averse", "kind", "words"),
    [
        (0.3, False, VerdictKind.CONVERGED, "is at most 0.80 % above the lower bound (95 % confidence)"),
        (0.6, False, VerdictKind.LEVELLED_OFF, "is at most 1.10 % above the lower bound (95 % confidence)"),
        (0.3, True, VerdictKind.LEVELLED_OFF, "is up to 0.80 % above the lower bound (95 % confidence), estimated"),
    ],
)
def test_run_converges_by_interval_of_policy_cost(half_width, is_risk_averse, kind, words):
    numbers = {"policy_cost": 100.5, "policy_cost_half_width": half_width, "policy_cost_paths": 40}
    computed = ComputedBound.of_policy(100.0, numbers, is_risk_averse=is_risk_averse)
    convergence = verdict_of(FLAT, 80.0, 25.0, computed=computed, is_risk_averse=is_risk_averse)
    assert convergence.kind is kind
    assert words in convergence.sentence


@pytest.mark.parametrize("changed", [{"policy_cost": None}, {"policy_cost_half_width": None}, {"policy_cost_paths": 0}])
def test_cost_without_interval_or_of_all_paths_is_not_a_computed_bound(changed):
    numbers = {"policy_cost": 100.5, "policy_cost_half_width": 1.0, "policy_cost_paths": 40} | changed
    assert ComputedBound.of_policy(100.0, numbers, is_risk_averse=False) is None


@pytest.mark.parametrize(
    ("cost", "half_width", "is_risk_averse", "kind"),
    [
        (48.0, 2.0, False, VerdictKind.LEVELLED_OFF),
        (99.9, 0.06, False, VerdictKind.CONVERGED),  # by chance
        (48.0, 2.0, True, VerdictKind.LEVELLED_OFF),
    ],
)
def test_cost_far_below_the_lower_bound_is_not_convergence(cost, half_width, is_risk_averse, kind):
    numbers = {"policy_cost": cost, "policy_cost_half_width": half_width, "policy_cost_paths": 30}
    computed = ComputedBound.of_policy(100.0, numbers, is_risk_averse=is_risk_averse, is_enough=True)
    convergence = verdict_of(FLAT, cost, half_width, computed=computed, is_risk_averse=is_risk_averse)
    assert convergence.kind == kind
    assert ("52.00 % below it, so it is too high" in convergence.sentence) == (cost == 48.0 and not is_risk_averse)


def test_exact_costs_below_the_lower_bound_are_not_convergence():
    for convergence in (
        verdict_of(FLAT, 98.0, 0.0, is_exact=True),
        verdict_of(FLAT, 105.0, 1.0, computed=bound(-0.02)),
    ):
        assert convergence.kind is VerdictKind.LEVELLED_OFF
        assert "2.00 % below it, so it is too high" in convergence.sentence


@pytest.mark.parametrize(
    ("facts", "gap", "error"),
    [
        ({}, 0.2, 0.05),
        ({"is_exact": True}, 0.2, None),
        ({"is_risk_averse": True}, None, None),
        ({"is_risk_averse": True, "is_exact": True}, 0.2, None),
        ({"single_path_cost": 110.0}, 0.1, None),
        ({"single_path_cost": 110.0, "is_risk_averse": True}, None, None),
        ({"single_path_cost": 110.0, "is_exact": True}, 0.2, None),
        ({"computed": bound(0.25), "is_risk_averse": True}, 0.25, None),
        ({"computed": bound(0.25), "is_exact": True}, 0.25, None),
    ],
)
def test_gap_is_relative_to_best_available_cost(facts, gap, error):
    history = BoundHistory([90.0, 100.0], [200.0, 120.0], [9.0, 5.0], **facts)
    assert history.gap == pytest.approx(gap)
    assert history.gap_error == pytest.approx(error)


def test_gap_is_none_before_first_iteration():
    assert BoundHistory([], [], []).gap is None
    assert BoundHistory([], [], [], single_path_cost=1.0).gap_error is None


def test_bound_of_stopping_rule_precedes_sampled_cost():
    stored = {"method": "inner", "upper_bound": 105.0, "half_width": 0.0, "lower_bound": 100.0}
    known = {"policy_cost": 102.0, "policy_cost_half_width": 1.0, "policy_cost_paths": 40}
    of_run = functools.partial(ComputedBound.of_run, 100.0, is_risk_averse=False)
    by_rule = of_run({**known, "bound": stored, "stop_kind": "upper_bound"}, is_exact=False)
    sampled = of_run({**known, "bound": None, "stop_kind": "gap"}, is_exact=False)
    assert (by_rule.value, by_rule.is_enough) == (105.0, True)
    assert (sampled.value, sampled.is_enough) == (102.0, True)
    assert of_run({**known, "stop_kind": "iteration_limit"}, is_exact=False).is_enough is False
    assert of_run(known, is_exact=True) is None

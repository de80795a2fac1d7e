"""Simulated means, controlled for the openings drawn, compared with the exact mean over all paths."""

import numpy as np
import pytest
from shared_systems import reservoirs
from small_system import write_case

import cobre
from cobre.sddp.simulation.controlled_costs import controlled_costs, controlled_mean, is_sharper

SCENARIOS = 100


def trained(folder, risk, iterations=4):
    case = write_case(folder, reservoirs(risk), forward_passes=4, iterations=iterations)
    return case, cobre.train(case, threads=1).policy


def simulations(case, policy, seeds):
    """Return one simulation per seed; each draws other scenarios from the same openings."""
    for seed in range(seeds):
        overrides = {"training.tree_seed": seed}
        yield cobre.simulate(case, policy, scenarios=SCENARIOS, threads=1, config_overrides=overrides)


def exact_mean(case, policy):
    """Return the mean cost of all 256 paths; a large simulation visits each of them."""
    result = cobre.simulate(case, policy, scenarios=4000, threads=1)
    hydros = result.to_pandas("hydros")
    inflow = hydros[hydros["hydro_id"] == 0].groupby(["scenario_id", "stage_id"])["incremental_inflow_m3s"].first()
    paths = inflow.round(6).unstack().itertuples(index=False, name=None)
    by_key = dict(zip(paths, result.scenario_costs, strict=True))
    assert len(by_key) == 4**4
    return float(np.mean(list(by_key.values())))


def test_risk_neutral_controlled_mean_is_narrow_and_covers_exact_mean(tmp_path):
    case, policy = trained(tmp_path, None)
    exact = cobre.bound(case, policy, method="enumeration").upper_bound
    assert exact_mean(case, policy) == pytest.approx(exact, rel=1e-9)
    results = list(simulations(case, policy, 12))
    means = np.array([result.controlled_mean_cost for result in results])
    assert abs(means.mean() - exact) <= 3.0 * means.std(ddof=1) / len(means) ** 0.5
    assert means.std(ddof=1) < 0.25 * np.std([result.mean_cost for result in results], ddof=1)
    assert all(result.controlled_half_width < 0.5 * result.half_width for result in results)


def test_scenario_table_has_plain_and_controlled_costs(tmp_path):
    case, policy = trained(tmp_path, None)
    [result] = simulations(case, policy, 1)
    table = result.to_pandas("scenario_costs")
    assert table["cost"].tolist() == list(result.scenario_costs)
    assert table["controlled_cost"].mean() == pytest.approx(result.controlled_mean_cost, rel=1e-12)


def test_number_of_ranks_does_not_change_bits(tmp_path):
    case, policy = trained(tmp_path, (0.5, 0.4))
    alone = cobre.simulate(case, policy, scenarios=SCENARIOS, threads=1)
    shared = cobre.simulate(case, policy, scenarios=SCENARIOS, num_workers=2, backend="shm")
    assert shared.controlled_mean_cost == alone.controlled_mean_cost
    assert shared.controlled_half_width == alone.controlled_half_width


def test_few_scenarios_are_not_controlled(tmp_path):
    case, policy = trained(tmp_path, None)
    assert cobre.simulate(case, policy, scenarios=20, threads=1).controlled_mean_cost is None


def test_predictions_have_mean_zero_for_any_costs():
    """Control costs that are pure noise: they hardly change, and their mean does not change."""
    generator = np.random.default_rng(5)
    stages, scenarios, count = 6, 400, 5
    drawn = list(generator.integers(0, count, (stages, scenarios)))
    future = generator.lognormal(size=(stages, scenarios))
    future[-1] = 0.0
    total = generator.lognormal(size=(stages, scenarios)) + future
    costs = (total - future).sum(axis=0)
    controlled = controlled_costs(costs, total, future, drawn, [count] * stages)
    mean, half_width = controlled_mean(controlled)
    assert abs(mean - costs.mean()) < 0.3 * half_width
    assert controlled.std() < 1.05 * costs.std()
    assert not is_sharper(controlled, costs)


def test_controlled_mean_without_narrower_interval_is_omitted():
    """Set the cost of a scenario to the costs of its openings plus noise of different sizes."""
    generator = np.random.default_rng(7)
    count, scenarios = 4, 120
    drawn = generator.integers(0, count, scenarios)
    for size, is_narrower in ((0.1, True), (30.0, False)):
        costs = 100.0 + 10.0 * drawn + size * generator.normal(size=scenarios)
        controlled = controlled_costs(costs, costs[None], np.zeros((1, scenarios)), [drawn], [count])
        assert is_sharper(controlled, costs) is is_narrower


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("iterations", [2, 8])
@pytest.mark.parametrize("risk", [None, (0.5, 0.4), (0.3, 0.6)])
def test_intervals_cover_the_exact_mean(tmp_path, risk, iterations):
    """Check 200 seeds of 100 scenarios, at 95 %."""
    case, policy = trained(tmp_path, risk, iterations)
    exact, covered, widths = exact_mean(case, policy), [], []
    for result in simulations(case, policy, 200):
        mean, half_width = result.controlled_mean_cost, result.controlled_half_width
        if mean is None:  # the plain interval is narrower
            mean, half_width = result.mean_cost, result.half_width
        covered.append(abs(mean - exact) <= half_width)
        widths.append(half_width / result.half_width)
    print(f"{risk}, {iterations} iterations: covered {np.mean(covered):.3f}, {np.mean(widths):.3f} of the plain width")
    assert np.mean(covered) >= 0.9

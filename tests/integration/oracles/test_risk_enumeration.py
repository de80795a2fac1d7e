"""Nested risk of a system without decisions: costs of paths, and their risk, are plain arithmetic."""

from dataclasses import replace

import pytest
from shared_systems import CHEAP, CHEAP_MW, DEAR, HOURS, RIVER, SYSTEM
from small_system import TURBINED_COST, write_case

import cobre


def stage_cost(stage, opening):
    """Return the cost of a stage: turbine the river, burn the cheap fuel, then the expensive one."""
    inflow = RIVER.mean_inflow + RIVER.std_inflow * SYSTEM.noise[stage][opening][0]
    rest = SYSTEM.loads[stage][0] - inflow
    return HOURS * (TURBINED_COST * inflow + CHEAP * min(rest, CHEAP_MW) + DEAR * max(0.0, rest - CHEAP_MW))


def mean_of_worst(costs, alpha):
    """Return the mean of the most expensive `alpha` of equally likely costs; the last may count in part."""
    room, total = alpha * len(costs), 0.0
    for cost in sorted(costs, reverse=True):
        counted = min(1.0, room)
        total += counted * cost
        room -= counted
    return total / (alpha * len(costs))


def nested_risk(stage, alpha, share):
    """Return the nested risk from a stage on: the risk of (this stage's cost + the discounted risk of the rest)."""
    rest = SYSTEM.discount(stage) * nested_risk(stage + 1, alpha, share) if stage + 1 < SYSTEM.num_stages else 0.0
    costs = [stage_cost(stage, opening) + rest for opening in range(SYSTEM.num_openings)]
    return (1.0 - share) * sum(costs) / len(costs) + share * mean_of_worst(costs, alpha)


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.3, 0.5, 0.6, 1.0])
def test_bound_equals_nested_risk(tmp_path, alpha, share):
    case = write_case(tmp_path, replace(SYSTEM, risk=(alpha, share)), forward_passes=2, iterations=6)
    assert cobre.train(case, threads=1).lower_bound == pytest.approx(nested_risk(0, alpha, share), rel=1e-12)


def test_lambda_zero_equals_mean(tmp_path):
    case = write_case(tmp_path, replace(SYSTEM, risk=(0.3, 0.0)), forward_passes=2, iterations=6)
    assert cobre.train(case, threads=1).lower_bound == pytest.approx(nested_risk(0, 1.0, 0.0), rel=1e-12)

"""Tests of evaluating the current policy in out-of-sample scenarios."""

from statistics import NormalDist

import numpy as np
import pytest
from contexts import context_of, iterated
from small_cases import SmallCase, hydro, thermal

from cobre.comm.launch import run
from cobre.sddp.plugins.interfaces import EVALUATION_BIT
from cobre.sddp.simulation.policy_simulation import PolicySimulator
from cobre.sddp.team import Team
from cobre.sddp.training.loop import iterate
from cobre.sddp.upper_bounds.policy_costs import evaluate_policy
from cobre.solver.batches import PathOutputs

FRESH = {
    "training.scenario_source": {"seed": 7, "inflow": {"scheme": "out_of_sample"}},
}


def small(**others):
    return SmallCase(
        hydros=[hydro(0)],
        thermals=[thermal(0, 10.0, 20.0), thermal(1, 90.0, 30.0)],
        stages=3,
        openings=5,
        load={0: 45.0},
        inflow={0: (20.0, 8.0)},
        storage={0: 40.0},
        forward_passes=2,
        **others,
    )


@pytest.fixture
def folder(tmp_path):
    return small().write(tmp_path)


def test_costs_equal_simulation_through_same_openings(folder, monkeypatch):
    """A simulation, with its own LP starts, meets the same cost in every path."""
    context = context_of(folder)
    iterated(context, 4)
    monkeypatch.setattr("cobre.sddp.simulation.policy_simulation.SIMULATION_ITERATION", 4 | EVALUATION_BIT)
    simulator = PolicySimulator(context.problem, context.solver, context.pool, context.sampler, None)
    expected = np.zeros(9)
    for step in simulator.simulate(range(9), simulator.starting_bases(), PathOutputs(), Team.alone(0)):
        expected += step.batch.objective - step.batch.future_cost  # nothing is discounted here
    costs = evaluate_policy(context, 4, 9)
    assert costs == pytest.approx(expected * context.problem.cost_scale, rel=1e-9)
    assert len(set(costs.tolist())) > 1


def test_every_evaluation_draws_noise_outside_training(folder):
    context = context_of(folder)
    iterated(context, 4)
    assert not np.array_equal(evaluate_policy(context, 2, 30), evaluate_policy(context, 4, 30))
    sampler = context.sampler
    met = [sampler.opening_indices(4 | EVALUATION_BIT, range(30), stage) for stage in range(3)]
    trained_on = [sampler.opening_indices(4, range(30), stage) for stage in range(3)]
    assert any(not np.array_equal(now, then) for now, then in zip(met, trained_on, strict=True))


def test_first_paths_do_not_depend_on_how_many_follow(folder):
    context = context_of(folder)
    iterated(context, 2)
    assert np.array_equal(evaluate_policy(context, 2, 12)[:5], evaluate_policy(context, 2, 5))


def test_evaluation_does_not_change_training(folder):
    plain, looked_at = context_of(folder), context_of(folder)
    first = iterated(plain, 3)
    bounds = []
    for upto in range(1, 4):
        bounds.append(iterate(looked_at, upto, None).lower_bound)
        evaluate_policy(looked_at, upto, 7)
    assert bounds == first


def evaluate_on_ranks(comm, folder, overrides):
    context = context_of(folder, overrides, comm)
    iterated(context, 2)
    return evaluate_policy(context, 2, 7).tobytes()


@pytest.mark.parametrize("overrides", [None, FRESH])
def test_any_number_of_ranks_gives_the_same_bits(folder, overrides):
    alone = run(evaluate_on_ranks, 1, backend="local", args=(str(folder), overrides))
    shared = run(evaluate_on_ranks, 3, backend="shm", args=(str(folder), overrides))
    assert set(shared) == set(alone)


def test_schemes_with_joint_draws_use_total_number_of_scenarios(tmp_path):
    """Evaluate 40 paths with two forward passes: a Latin hypercube of 40 has one point in each of 40 intervals."""
    stratified = {stage: {"sampling_method": "lhs"} for stage in range(3)}
    context = context_of(small(stage_fields=stratified).write(tmp_path), FRESH)
    iterated(context, 2)
    assert len(set(evaluate_policy(context, 2, 40).tolist())) == 40
    noise = np.sort(context.sampler.for_scenarios(40).sample(2 | EVALUATION_BIT, range(40), 1)[:, 0])
    shares = np.array([NormalDist().cdf(value) for value in noise.tolist()])
    assert np.array_equal(np.floor(shares * 40), np.arange(40))

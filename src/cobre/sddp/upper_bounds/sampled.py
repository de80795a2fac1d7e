"""Paths drawn by the weights that the risk measure gives the openings: importance sampling for nested risk.

At every state that a path visits, the stage is solved for all openings under the policy. The risk measure turns those
costs into weights q, and the next opening is drawn from q. What the policy costs under q is the lower bound plus, at
every state visited, what the risk of the openings exceeds the cost-to-go that the cuts gave it. Only these excesses are
averaged, so a policy that has converged has an estimate without variance.

The weights are feasible for the dual of the risk measure: the expectation lies between the lower bound and the nested
cost of the policy, and is equal to both when the cuts rank the openings as their true costs do. It is an estimate of
the policy's cost, approached from below, not a bound on it (docs/adr/0037).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.upper_bounds.openings import risk_into, solve_all_openings
from cobre.stochastic.random.seeds import BOUND_BASE, uniform_draws

STAGE_BITS = 16  # the rest of a seed tells samples of different iterations apart


@dataclass(frozen=True, slots=True)
class SampledPaths:
    """All ranks' paths. excess: $, how much more than the lower bound each path costs; states: entering, by stage."""

    lower_bound: float
    excess: Floats
    states: Floats  # stages x paths x dimension


def sample_paths(context: TrainingContext, count: int, iteration: int = 0, *, is_weighted: bool = True) -> SampledPaths:
    """Draw paths by the weights of the risk measure, or all openings alike. The same bits for any number of ranks."""
    split = WorkSplit(count, context.comm.size)
    lower, excess, states = _simulate(
        context, count, split.block(context.comm.rank), iteration, is_weighted=is_weighted
    )
    table = context.gather(split, np.column_stack([lower, excess, states]), "sampled paths")
    stages, dimension = context.problem.num_stages, context.problem.dimension
    by_stage = np.ascontiguousarray(table[:, 2:].reshape(count, stages, dimension).transpose(1, 0, 2))
    return SampledPaths(float(table[0, 0]), table[:, 1].copy(), by_stage)


def _simulate(
    context: TrainingContext, count: int, own: range, iteration: int, *, is_weighted: bool
) -> tuple[Floats, Floats, Floats]:
    """Lower bound, excess and states (one row for each path, all stages side by side) of this rank's paths."""
    problem = context.problem
    states = np.tile(problem.initial_state, (len(own), 1))
    lower, excess, expected = np.zeros(len(own)), np.zeros(len(own)), np.zeros(len(own))
    visited, scale = [], problem.cost_scale
    for stage in range(problem.num_stages):
        visited.append(states)
        found = solve_all_openings(context, stage, states)
        weights = risk_into(problem, stage).weights(found.costs)
        risk = weighted(weights, found.costs)
        if stage == 0:
            lower = risk * problem.cost_scale
        else:
            excess = excess + scale * (risk - expected)
        draws = uniform_draws(BOUND_BASE, (iteration << STAGE_BITS) | stage, count)[own.start : own.stop]
        chosen = _choose(weights if is_weighted else np.full_like(found.costs, 1.0 / found.costs.shape[1]), draws)
        rows = np.arange(len(own))
        states = np.ascontiguousarray(found.leaving[rows, chosen])
        expected = found.future[rows, chosen]
        scale = scale * float(problem.discounts[stage])
    return lower, excess, np.concatenate(visited, axis=1)


def _choose(weights: Floats, draws: Floats) -> NDArray[np.intp]:
    """The opening that each draw in [0, 1) falls upon; never one without weight."""
    reached = np.add.accumulate(weights, axis=1)
    opening = np.argmax(reached > draws[:, None], axis=1)
    last = weights.shape[1] - 1 - np.argmax(weights[:, ::-1] > 0.0, axis=1)
    chosen: NDArray[np.intp] = np.where(draws < reached[:, -1], opening, last)
    return chosen

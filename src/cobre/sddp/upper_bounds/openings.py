"""A stage solved for every opening from some states, and the risk of what that costs."""

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.records import dataclass
from cobre.sddp.plugins.interfaces import RiskMeasure
from cobre.sddp.problem.problem import Problem, StageOpenings
from cobre.sddp.records.phases import Phase
from cobre.sddp.stage_solve import StageSolve
from cobre.sddp.training.context import TrainingContext
from cobre.solver.batches import Bases, Batch, Chains, Outputs
from cobre.solver.program import StageProgram


@dataclass(frozen=True, slots=True)
class OpeningResults:
    """Results by state and opening; all costs are scaled. costs: with the future; stage_costs: without it."""

    costs: Floats
    stage_costs: Floats
    future: Floats
    leaving: Floats  # states x openings x dimension


def risk_into(problem: Problem, stage: int) -> RiskMeasure:
    """The measure over the openings of a stage: that of the stage before it, or its own for the first."""
    return problem.risk[max(0, stage - 1)]


def solve_all_openings(context: TrainingContext, stage: int, states: Floats) -> OpeningResults:
    """Every state (rows) with every opening of a stage, under the policy with all its cuts."""
    problem = context.problem
    opening, program = problem.openings[stage], problem.stages[stage].program
    chains = chains_over_openings(opening, states, program)
    work = StageSolve(stage, chains, opening.realisations, Outputs(), all_cuts=True)
    batch = context.solve(Phase.SIMULATION, 0, work)
    leaving = program.next_states(np.repeat(states, opening.count, axis=0), batch.decided, batch.inflow)
    return _results(problem, stage, batch, leaving, (len(states), opening.count))


def _results(problem: Problem, stage: int, batch: Batch, leaving: Floats, shape: tuple[int, int]) -> OpeningResults:
    """What another study says of the end belongs to the cost of the last stage."""
    future, costs = batch.future_cost.reshape(shape), batch.objective.reshape(shape)
    stage_costs = costs - problem.future_weight(stage) * future
    return OpeningResults(costs, stage_costs, future, leaving.reshape(*shape, problem.dimension))


def chains_over_openings(opening: StageOpenings, states: Floats, program: StageProgram) -> Chains:
    """One chain for each state, from the driest opening to the wettest; results lie by state, then by opening."""
    count = opening.count
    start = (count * np.arange(len(states) + 1)).astype(np.int32)
    result_index: Ints = (start[:-1, None] + opening.order).reshape(-1).astype(np.int32)
    realisation_index = np.tile(opening.order, len(states)).astype(np.int32)
    index = np.full(len(states), -1, np.int32)
    return Chains(np.ascontiguousarray(states), start, realisation_index, Bases.none(program), index, result_index)

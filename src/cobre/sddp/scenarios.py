"""Scenarios through the stages: draws of their noise, results stage by stage, and discounted costs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.problem.openings import realise
from cobre.sddp.problem.problem import Problem
from cobre.solver.batches import PathBatch, Realisations, SharedPaths
from cobre.solver.program import StageProgram


@dataclass(slots=True)
class StageBatch:
    """Scenarios after one stage; costs are scaled. The solution (inflow, primal, dual) is empty if not requested."""

    objective: Floats
    future_cost: Floats
    leaving: Floats  # scenarios x dimension, at the end of the stage
    inflow: Floats  # scenarios x hydros, realised
    primal: Floats  # scenarios x columns, scaled
    dual: Floats  # scenarios x rows, scaled

    @classmethod
    def of(cls, tables: PathBatch | SharedPaths) -> "StageBatch":
        """Read paths through a single stage."""
        solution = [part[0] if len(part) else np.zeros((0, 0)) for part in (tables.inflow, tables.primal, tables.dual)]
        leaving = np.zeros((0, 0)) if tables.leaving is None else tables.leaving
        return cls(tables.objective[0], tables.future_cost[0], leaving, *solution)

    @classmethod
    def new(cls, program: StageProgram, count: int) -> "StageBatch":
        """Return zeros for `count` scenarios of a stage, to `put` results into."""
        widths = (program.dimension, program.num_hydros, len(program.cost), len(program.row_lower))
        return cls(np.zeros(count), np.zeros(count), *(np.zeros((count, width)) for width in widths))

    def put(self, rows: Indices, batch: "StageBatch") -> None:
        """Copy the results of some scenarios into their rows."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(batch, field.name)


@dataclass(frozen=True, slots=True)
class StageResult:
    """One stage of a simulation: entering states and results of all scenarios.

    Scenario s has row realisation_index[s] of `realisations`.
    """

    stage: int
    states: Floats  # scenarios x dimension, entering
    realisations: Realisations
    realisation_index: Ints
    batch: StageBatch

    @property
    def scenario_realisations(self) -> Realisations:
        """The realisation of each scenario, one row for each."""
        return self.realisations.take(self.realisation_index)


# By stage: the realisations that scenarios are drawn from, and for each scenario the index of the one that it got.
StageNoise = Callable[[int], tuple[Realisations, Ints]]


def simulate_stages(
    problem: Problem, scenarios: int, noise: StageNoise, solve: Callable[[int, Floats, Realisations, Ints], StageBatch]
) -> Iterator[StageResult]:
    """Simulate scenarios stage by stage: each enters a stage in its final state of the stage before.

    `solve` gets the stage, entering states, realisations and indices of these. Results may be in shared tables: read
    them before the next stage.
    """
    states = np.tile(problem.initial_state, (scenarios, 1))
    for stage in range(problem.num_stages):
        realisations, realisation_index = noise(stage)
        batch = solve(stage, states, realisations, realisation_index)
        yield StageResult(stage, states, realisations, realisation_index, batch)
        states = batch.leaving.copy()  # a team reuses the table while a slow member still reads the next stage


def draw_noise(
    problem: Problem, sampler: Sampler, iteration: int, scenarios: Sequence[int] | Indices, stage: int
) -> tuple[Realisations, Ints]:
    """Draw the noise of some scenarios at a stage. In-sample scenarios share the realisations of the openings."""
    if sampler.is_in_sample:
        openings = sampler.opening_indices(iteration, scenarios, stage)
        return problem.openings[stage].realisations, openings.astype(np.int32)
    noise = sampler.sample(iteration, scenarios, stage)
    return realise(problem.noise, stage, noise), np.arange(len(noise), dtype=np.int32)


def discounted_costs(problem: Problem, objective: Floats, future_cost: Floats) -> Floats:
    """Return the cost of each scenario in $ of the first stage's money. Tables: stages x scenarios, scaled costs.

    Stages are added in order. The terminal cost, which a boundary policy may give, is included.
    """
    weights = problem.discount_to_first_stage
    future = np.array([problem.future_weight(stage) for stage in range(problem.num_stages)])
    stage_costs = objective - future[:, None] * future_cost
    total: Floats = np.add.accumulate(weights[:, None] * (stage_costs * problem.cost_scale), axis=0)[-1]
    return total

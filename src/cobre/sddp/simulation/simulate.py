"""Simulation of a policy in one place: chunks of scenarios over all ranks, rows to a sink on rank 0."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cobre.comm import Communicator
from cobre.core.stage_data import Floats
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.problem import Problem
from cobre.sddp.simulation.chunk import Chunk, scenarios_per_chunk
from cobre.sddp.simulation.extract import StageExtractor
from cobre.sddp.simulation.outcome import StageOutcome
from cobre.sddp.simulation.summary import SimulationOutcome
from cobre.sddp.simulation.tables import EntityIds, Sink
from cobre.sddp.simulation.walk import Walker
from cobre.sddp.training.exchange import gather_rows
from cobre.sddp.work_split import WorkSplit
from cobre.solver.batches import Bases, Keep, LpSolver


def simulate(
    comm: Communicator,
    problem: Problem,
    solver: LpSolver,
    pool: CutPool,
    sampler: Sampler,
    num_scenarios: int,
    sink: Sink,
    ids: EntityIds,
    *,
    failure_folder: Path | None = None,
    chunk_scenarios: int | None = None,
) -> SimulationOutcome:
    """Follow the policy in scenarios 0 to num_scenarios - 1; every rank gets the costs, rank 0 fills the sink.

    The rows and costs have the same bits for every number of ranks and threads. Memory holds one chunk of scenarios
    (`chunk_scenarios`, chosen from the size of the study when not given), which the ranks share evenly.
    """
    if num_scenarios < 1:
        raise ValueError(f"a simulation needs at least one scenario, not {num_scenarios}")
    walker = Walker(problem, solver, pool, sampler, failure_folder)
    extractors = stage_extractors(problem, ids)
    starts = walker.find_starts()
    size = chunk_scenarios or scenarios_per_chunk(extractors)
    costs = [
        _simulate_chunk(comm, walker, starts, extractors, range(first, min(first + size, num_scenarios)), sink)
        for first in range(0, num_scenarios, size)
    ]
    return SimulationOutcome.of(np.concatenate(costs))


def stage_extractors(problem: Problem, ids: EntityIds) -> tuple[StageExtractor, ...]:
    """For every stage, with what its money is worth in the first."""
    extractors, factor = [], 1.0
    for lp in problem.stages:
        extractors.append(StageExtractor(lp, ids, factor))
        factor *= lp.plan.data.discount
    return tuple(extractors)


def _simulate_chunk(
    comm: Communicator,
    walker: Walker,
    starts: list[Bases],
    extractors: tuple[StageExtractor, ...],
    scenarios: range,
    sink: Sink,
) -> Floats:
    """Consecutive scenarios, a block of them on each rank; gives their costs."""
    split = WorkSplit(len(scenarios), comm.size)
    own = split.block(comm.rank)
    mine = scenarios[own.start : own.stop]
    chunk, costs = Chunk(scenarios.start, extractors), np.zeros(len(mine))
    results = _results(walker, starts, extractors, mine, costs) if mine else _nothing(extractors)
    for stage, numbers in enumerate(results):
        table = gather_rows(comm, split, numbers, f"results of stage {stage}")
        if comm.rank == 0:
            chunk.add_stage(table)
    if comm.rank == 0:
        chunk.hand_over(sink)
    return gather_rows(comm, split, costs.reshape(-1, 1), "scenario costs")[:, 0]


def _results(
    walker: Walker, starts: list[Bases], extractors: tuple[StageExtractor, ...], scenarios: range, costs: Floats
) -> Iterator[Floats]:
    """Numbers of some scenarios stage by stage; what each stage costs today is added to `costs`."""
    weight = 1.0
    for step in walker.walk(scenarios, starts, Keep(solution=True)):
        lp = walker.problem.stages[step.stage]
        outcome = StageOutcome.of(lp, step.batch, step.state, step.noise, walker.problem.cost_scale)
        is_last = step.stage == walker.problem.num_stages - 1  # what another study says of the end belongs to the cost
        costs += weight * (outcome.total_cost if is_last else outcome.total_cost - outcome.future_cost)
        weight *= lp.plan.data.discount
        yield extractors[step.stage].read(outcome)


def _nothing(extractors: tuple[StageExtractor, ...]) -> Iterator[Floats]:
    """What a rank without scenarios has to say."""
    return (np.zeros((0, extractor.width)) for extractor in extractors)

"""Simulation of a policy in one place: waves of scenarios over all ranks, rows to a sink on rank 0."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

from cobre.comm import Communicator, SharedMemoryProvider
from cobre.core.arrays import Floats
from cobre.io.storage.free_memory import trim_heap
from cobre.records import dataclass
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.simulation.extract import StageExtractor
from cobre.sddp.simulation.outcome import StageOutcome
from cobre.sddp.simulation.policy_simulator import PolicySimulator
from cobre.sddp.simulation.spool import (
    JoinedNumbers,
    ScenarioColumns,
    Sink,
    StoredNumbers,
    TableLayout,
    scenarios_per_chunk,
    scenarios_per_wave,
    table_layouts,
)
from cobre.sddp.simulation.summary import SimulationOutcome
from cobre.sddp.simulation.tables import EntityIds
from cobre.sddp.simulation.wave import Wave, Waves
from cobre.sddp.training.exchange import gather_rows
from cobre.sddp.training.team import Team
from cobre.solver.batches import Bases, Outputs


@dataclass(frozen=True, slots=True)
class SimulationOutput:
    """Where the rows of a simulation go, and how.

    sink: gets them, on rank 0. ids: of entities, as rows have them. spool_folder: for results of a chunk that is not
    whole yet; None: they lie in memory. chunk_scenarios: how many scenarios are handed over at once; None: chosen from
    the size of the study. done: costs of the first scenarios, whole chunks of them, which the sink has got already.
    """

    sink: Sink
    ids: EntityIds
    spool_folder: Path | None = None
    chunk_scenarios: int | None = None
    done: Floats | None = None


def simulate(
    comm: Communicator,
    simulator: PolicySimulator,
    num_scenarios: int,
    output: SimulationOutput,
    memory: SharedMemoryProvider | None = None,
) -> SimulationOutcome:
    """Follow the policy in scenarios 0 to num_scenarios - 1; every rank gets the costs, rank 0 fills the sink.

    The rows and costs have the same bits for every number of ranks and threads. Scenarios are simulated in waves that
    the ranks share evenly, and handed over in chunks. Memory grows with the LPs of a stage and, where a spool folder is
    given, not with the number of stages or scenarios. Over a tree without `simulator.paths` every path is one scenario,
    and costs count by their probabilities.
    """
    if num_scenarios < 1:
        raise ValueError(f"a simulation needs at least one scenario, not {num_scenarios}")
    problem, sink = simulator.problem, output.sink
    extractors = stage_extractors(problem, output.ids)
    layouts = table_layouts(extractors)
    starts = simulator.find_starts()
    chunk = output.chunk_scenarios or scenarios_per_chunk(extractors)
    wave = scenarios_per_wave(extractors, chunk, comm.size)
    some = chunk * -(-wave // chunk)  # whole chunks, with enough scenarios for a wave
    max_scenarios = min(wave, num_scenarios)
    costs, split = np.zeros(0) if output.done is None else output.done, WorkSplit(max_scenarios, comm.size)
    with (
        closing(Waves(comm, memory, output.spool_folder, extractors, max_scenarios)) as waves,
        closing(Team.for_solutions(comm, memory, problem, split, Outputs(solution=True))) as team,
    ):
        while len(costs) < num_scenarios:
            scenarios = range(len(costs), min(len(costs) + some, num_scenarios))
            with ExitStack() as stack:
                parts = []
                for first in scenarios[::wave]:
                    part = range(first, min(first + wave, scenarios.stop))
                    parts.append(stack.enter_context(waves.next(part)))
                    costs = np.append(costs, _simulate_wave(comm, team, simulator, starts, extractors, part, parts[-1]))
                    trim_heap()  # else what waves leave behind in the heap adds up
                if comm.rank == 0:
                    _write_rows(JoinedNumbers([part.numbers() for part in parts]), layouts, chunk, sink)
                    sink.scenarios_done(costs)
    tree = problem.tree
    probabilities = None if tree is None or simulator.paths is not None else tree.path_probabilities()
    return SimulationOutcome.of(costs, probabilities, simulator.counter.total)


def stage_extractors(problem: Problem, ids: EntityIds) -> tuple[StageExtractor, ...]:
    """For every stage, with what its money is worth in the first."""
    factors = problem.discount_to_first_stage.tolist()
    return tuple(StageExtractor(lp, ids, factor) for lp, factor in zip(problem.stages, factors, strict=True))


def _simulate_wave(
    comm: Communicator,
    team: Team,
    simulator: PolicySimulator,
    starts: list[Bases],
    extractors: tuple[StageExtractor, ...],
    scenarios: range,
    wave: Wave,
) -> Floats:
    """Consecutive scenarios side by side, solved by teams, of which each rank reads a block; returns their costs."""
    split = WorkSplit(len(scenarios), comm.size)
    costs = np.zeros(len(split.block(comm.rank)))
    for numbers in _results(simulator, team, starts, extractors, scenarios, split, costs):
        wave.add_stage(numbers)
    wave.end()
    return gather_rows(comm, split, costs.reshape(-1, 1), "scenario costs")[:, 0]


def _write_rows(spool: StoredNumbers, layouts: Mapping[str, TableLayout], chunk: int, sink: Sink) -> None:
    """Give all rows to the sink, chunk by chunk and table by table."""
    scenarios = spool.scenarios
    for first in range(scenarios.start, scenarios.stop, chunk):
        part = range(first, min(first + chunk, scenarios.stop))
        for name, layout in layouts.items():
            sink.write(name, ScenarioColumns(spool, layout, part))


def _results(
    simulator: PolicySimulator,
    team: Team,
    starts: list[Bases],
    extractors: tuple[StageExtractor, ...],
    scenarios: range,
    split: WorkSplit,
    costs: Floats,
) -> Iterator[Floats]:
    """Numbers of this rank's scenarios stage by stage; what each stage costs today is added to `costs`."""
    numbers, own = scenarios.start + team.indices(split), team.own(split)
    problem = simulator.problem
    weights = problem.discount_to_first_stage.tolist()
    if not len(numbers):
        yield from _nothing(team, extractors)
        return
    for result in simulator.simulate(numbers, starts, Outputs(solution=True), team):
        if not len(costs):
            yield np.zeros((0, extractors[result.stage].width))
            continue
        lp, noise = problem.stages[result.stage], result.scenario_realisations
        outcome = StageOutcome.of(lp, result.batch, result.states, noise, problem.cost_scale, own)
        future = 0.0 if problem.is_last(result.stage) else outcome.future_cost  # else what a boundary policy says
        costs += weights[result.stage] * (outcome.total_cost - future)
        yield extractors[result.stage].read(outcome)


def _nothing(team: Team, extractors: tuple[StageExtractor, ...]) -> Iterator[Floats]:
    """Empty results, stage by stage, of a rank whose team has no scenarios."""
    for extractor in extractors:
        team.wait("simulated scenarios")
        yield np.zeros((0, extractor.width))

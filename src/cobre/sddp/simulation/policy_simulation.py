"""Simulation of a policy in one place: waves of scenarios over all ranks, rows to a sink on rank 0."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import field
from pathlib import Path

import numpy as np

from cobre.comm import Communicator, SharedMemoryProvider
from cobre.core.arrays import Floats, Indices, Ints, distinct_values
from cobre.core.confidence import half_width_95, mean_and_std
from cobre.io.storage.allocators import trim_heap
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.iteration_records import Phase, SolveCounter
from cobre.sddp.lp.failure import FailedSolve
from cobre.sddp.plugins.interfaces import SIMULATION_ITERATION, Sampler
from cobre.sddp.problem.problem import Problem
from cobre.sddp.problem.scenario_tree import ScenarioTree
from cobre.sddp.ranks import WorkSplit, gather_rows
from cobre.sddp.scenarios import StageBatch, StageResult, draw_noise, simulate_stages
from cobre.sddp.simulation.spool import (
    JoinedNumbers,
    ScenarioColumns,
    Sink,
    StoredNumbers,
    scenarios_per_chunk,
    scenarios_per_wave,
)
from cobre.sddp.simulation.stage_rows import StageExtractor, TableLayout, table_layouts
from cobre.sddp.simulation.tables import EntityIds, StageOutcome
from cobre.sddp.simulation.wave import Wave, Waves
from cobre.sddp.team import Team
from cobre.sddp.team_tables import claim_units
from cobre.solver.batches import (
    Bases,
    CutRows,
    LpSolver,
    PathBatch,
    PathOutputs,
    Realisations,
    SolveFailedError,
    SolveStatistics,
    Step,
    no_bases,
)


@dataclass(frozen=True, slots=True)
class PolicySimulator:
    """A policy and the sampler of its scenarios. uses_all_cuts: inactive cuts are used, too."""

    problem: Problem
    solver: LpSolver
    pool: CutPool
    sampler: Sampler
    failure_folder: Path | None = None
    paths: Ints | None = None  # in a tree: the path that each scenario follows; None: the path of the same number
    counter: SolveCounter = field(default_factory=SolveCounter)
    uses_all_cuts: bool = True

    def simulate(
        self, scenarios: Sequence[int] | Indices, starts: list[Bases], out: PathOutputs, team: Team
    ) -> Iterator[StageResult]:
        """Simulate scenarios stage by stage. Collective over the team.

        The arrays of a result of a team are valid until the next result.
        """
        if (tree := self.problem.tree) is not None:
            return self._simulate_tree(tree, scenarios, starts, out, team)

        def noise(stage: int) -> tuple[Realisations, Ints]:
            return draw_noise(self.problem, self.sampler, SIMULATION_ITERATION, scenarios, stage)

        def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> StageBatch:
            shared = team.scenarios(self.problem.stages[stage].program, len(states))
            outputs = PathOutputs(basis=out.basis, solution=out.solution, shared=shared)
            step = Step(stage, self._cuts(stage), realisations, realisation_index, starts[stage])
            batch = self._solve(scenarios, [step], states, outputs)
            team.wait("simulated scenarios")
            return StageBatch.of(batch)

        return simulate_stages(self.problem, len(scenarios), noise, solve)

    def _simulate_tree(
        self,
        tree: ScenarioTree,
        scenarios: Sequence[int] | Indices,
        starts: list[Bases],
        out: PathOutputs,
        team: Team,
    ) -> Iterator[StageResult]:
        """Solve the scenarios of a node together, each from the same basis: independent of the other scenarios."""
        nodes = chosen_paths(tree, self.paths, scenarios)

        def noise(stage: int) -> tuple[Realisations, Ints]:
            return tree.realisations[stage], nodes[:, stage] - tree.first[stage]

        def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> StageBatch:
            program = self.problem.stages[stage].program
            visited_nodes = distinct_values(nodes[:, stage]).tolist()
            shared = team.scenarios(program, len(states))
            joined = StageBatch.new(program, len(states)) if shared is None else StageBatch.of(shared)
            for number in (
                range(len(visited_nodes)) if shared is None else claim_units(shared.counter, len(visited_nodes))
            ):
                rows = np.flatnonzero(nodes[:, stage] == visited_nodes[number])
                step = Step(
                    stage, self._cuts(visited_nodes[number]), realisations, realisation_index[rows], starts[stage]
                )
                scenario_numbers = [int(scenarios[int(row)]) for row in rows]
                joined.put(rows, StageBatch.of(self._solve(scenario_numbers, [step], states[rows], out)))
            team.wait("simulated scenarios")
            return joined

        return simulate_stages(self.problem, len(scenarios), noise, solve)

    def starting_bases(self) -> list[Bases]:
        """Return by stage the basis that all scenarios start from: that of scenario 0, which starts cold.

        Every rank computes them, so that they do not depend on the split of the scenarios. Bases of training are not
        used: a policy from a file must give the same results as one from memory. Small LPs of a
        tree start cold.
        """
        problem, stages = self.problem, range(self.problem.num_stages)
        cold = [no_bases(stage.program) for stage in problem.stages]
        if (tree := problem.tree) is None:
            noise = [draw_noise(problem, self.sampler, SIMULATION_ITERATION, range(1), stage) for stage in stages]
            pools, is_used = list(stages), [True] * len(stages)
        else:
            is_used = [problem.is_large(stage) for stage in stages]
            if not any(is_used):
                return cold
            pools = chosen_paths(tree, self.paths, range(1))[0].tolist()
            noise = [
                (tree.realisations[stage], np.array([node - tree.first[stage]], np.int32))
                for stage, node in enumerate(pools)
            ]
        sources = problem.basis_sources()
        steps = [Step(at, self._cuts(pools[at]), *noise[at], cold[at], *sources[at]) for at in stages]
        first = self._solve(range(1), steps, problem.initial_state[None], PathOutputs(basis=True))
        bases = map(Bases, first.basis_status, first.basis_cuts)
        return [basis if used else none for basis, none, used in zip(bases, cold, is_used, strict=True)]

    def _cuts(self, pool_number: int) -> CutRows:
        return self.pool.rows(pool_number, all_cuts=self.uses_all_cuts)

    def _solve(
        self, scenarios: Sequence[int] | Indices, steps: Sequence[Step], states: Floats, out: PathOutputs
    ) -> PathBatch:
        """Take scenarios through some stages. If an LP fails, save it and raise `StageFailedError`."""
        try:
            batch = self.solver.solve_paths(steps, states, out)
        except SolveFailedError as error:
            scenario, stage = scenarios[error.inputs.chain], error.inputs.stage
            [failed] = [step for step in steps if step.stage == stage]
            where = f"simulated scenario {scenario}"
            solve = FailedSolve.of(self.problem.stages[stage], where, error, failed.realisations)
            file_name = f"scenario{scenario}-stage{stage}"
            raise solve.as_error(self.problem.names, self.solver, self.failure_folder, file_name) from error
        self.counter.add(Phase.SIMULATION, batch)
        return batch


def chosen_paths(tree: ScenarioTree, paths: Ints | None, scenarios: Sequence[int] | Indices) -> Ints:
    """Return the nodes (scenario, stage) of scenarios: as drawn, or the paths of the tree one by one."""
    numbers = np.array(scenarios, np.int64)
    nodes: Ints = tree.paths()[numbers if paths is None else paths[numbers]]
    return nodes


@dataclass(frozen=True, slots=True)
class SimulationOutput:
    """Destination of the rows of a simulation.

    sink: receives them, on rank 0. ids: of entities, as rows have them. spool_folder: for results of an incomplete
    chunk; None: they stay in memory. chunk_scenarios: how many scenarios are handed over at once; None: chosen from the
    size of the study. restored_costs: of the first scenarios, whole chunks, which the sink already has.
    """

    sink: Sink
    ids: EntityIds
    spool_folder: Path | None = None
    chunk_scenarios: int | None = None
    restored_costs: Floats | None = None


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """Costs in $ of the first stage's money, in the order of scenarios."""

    costs: Floats
    mean: float
    std: float
    solver: SolveStatistics  # of this rank

    @classmethod
    def of(
        cls, costs: Floats, probabilities: Floats | None = None, solver: SolveStatistics | None = None
    ) -> "SimulationOutcome":
        """Compute mean and deviation, added in the order of scenarios.

        probabilities: of the scenarios, if they are all paths of a tree; None: a sample.
        """
        if probabilities is None:
            mean, std = mean_and_std(costs.tolist())
        else:
            mean = float(np.add.accumulate(probabilities * costs)[-1])
            std = float(np.add.accumulate(probabilities * (costs - mean) ** 2)[-1] ** 0.5)
        return cls(costs, mean, std, solver or SolveStatistics())

    @property
    def half_width(self) -> float:
        """Half width of the 95 % confidence interval of the mean; 0 for a single scenario, whose spread is unknown."""
        return half_width_95(self.std, len(self.costs))

    def quantile(self, share: float) -> float:
        """Return the cost that a share of the scenarios does not exceed, interpolated between neighbours."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"a quantile is a share between 0 and 1, not {share}")
        return float(np.quantile(self.costs, share))


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
    starts = simulator.starting_bases()
    chunk = output.chunk_scenarios or scenarios_per_chunk(extractors)
    wave = scenarios_per_wave(extractors, chunk, comm.size)
    round_size = chunk * -(-wave // chunk)  # a round is whole chunks, and at least a wave
    max_scenarios = min(wave, num_scenarios)
    costs, split = (
        np.zeros(0) if output.restored_costs is None else output.restored_costs,
        WorkSplit(max_scenarios, comm.size),
    )
    with (
        closing(Waves(comm, memory, output.spool_folder, extractors, max_scenarios)) as waves,
        closing(Team.for_scenarios(comm, memory, problem, split, has_solution=True)) as team,
    ):
        while len(costs) < num_scenarios:
            scenarios = range(len(costs), min(len(costs) + round_size, num_scenarios))
            with ExitStack() as stack:
                parts = []
                for first in scenarios[::wave]:
                    part = range(first, min(first + wave, scenarios.stop))
                    parts.append(stack.enter_context(waves.next(part)))
                    costs = np.append(costs, _simulate_wave(comm, team, simulator, starts, extractors, part, parts[-1]))
                    trim_heap()  # otherwise the heap grows from wave to wave
                if comm.rank == 0:
                    _write_rows(JoinedNumbers([part.numbers() for part in parts]), layouts, chunk, sink)
                    sink.scenarios_done(costs)
    tree = problem.tree
    probabilities = None if tree is None or simulator.paths is not None else tree.path_probabilities()
    return SimulationOutcome.of(costs, probabilities, simulator.counter.total)


def stage_extractors(problem: Problem, ids: EntityIds) -> tuple[StageExtractor, ...]:
    """Make the extractor of every stage, with its discount factor to the first."""
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
    """Simulate consecutive scenarios, solved by teams; each rank reads a block. Returns the costs of all."""
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
    """Yield the numbers of this rank's scenarios stage by stage, and add discounted stage costs to `costs`."""
    numbers, own = scenarios.start + team.items(split), team.own_rows(split)
    problem = simulator.problem
    weights = problem.discount_to_first_stage.tolist()
    if not len(numbers):
        yield from _empty_results(team, extractors)
        return
    for result in simulator.simulate(numbers, starts, PathOutputs(solution=True), team):
        if not len(costs):
            yield np.zeros((0, extractors[result.stage].width))
            continue
        lp, noise = problem.stages[result.stage], result.scenario_realisations
        outcome = StageOutcome.of(lp, result.batch, result.states, noise, problem.cost_scale, own)
        future = 0.0 if problem.is_last(result.stage) else outcome.future_cost  # else that of a boundary policy
        costs += weights[result.stage] * (outcome.total_cost - future)
        yield extractors[result.stage].read(outcome)


def _empty_results(team: Team, extractors: tuple[StageExtractor, ...]) -> Iterator[Floats]:
    """Yield empty results, stage by stage, on a rank whose team has no scenarios."""
    for extractor in extractors:
        team.wait("simulated scenarios")
        yield np.zeros((0, extractor.width))

"""A policy in many scenarios: simulated, with rows in memory or in files."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cobre.comm import Backend, Communicator, SharedMemoryProvider
from cobre.core.arrays import Floats, Ints
from cobre.core.case import System
from cobre.io.output.growing_tables import UNFINISHED, GrowingTables
from cobre.io.storage.atomic import as_write_error, on_failure
from cobre.io.storage.confined import make_folder
from cobre.policy.object import Policy
from cobre.policy.store import fill_pool
from cobre.records import dataclass
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.plugins.interfaces import SIMULATION_ITERATION
from cobre.sddp.problem.boundary import BoundaryCutPool
from cobre.sddp.problem.problem import PreparedStudy
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.simulation.controlled_costs import controlled_costs, controlled_mean
from cobre.sddp.simulation.outcome import SimulationOutcome
from cobre.sddp.simulation.simulate import PolicySimulator, SimulationOutput, simulate
from cobre.sddp.simulation.spool import Sink
from cobre.sddp.simulation.tables import EntityIds
from cobre.sddp.training.team import gather_rows
from cobre.solver.batches import LpSolver, SolveStatistics
from cobre.stochastic.random.seeds import PATH_BASE, uniform_draws
from cobre.study.results.script_results import SimulationResult, stages_and_entities
from cobre.study.simulation.sinks import ArrowSink, StageCosts, StreamingSink
from cobre.study.simulation.stage_tables import SCENARIO_COSTS, TREE_PATHS, scenario_costs, stage_tables, tree_paths

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class SimulatedPolicy:
    """What is simulated: a policy, or the cuts of a pool, in so many scenarios of a study; and the solver for it."""

    study: PreparedStudy
    solver: LpSolver
    policy: Policy | CutPool
    num_scenarios: int


@dataclass(frozen=True, slots=True)
class _Destination:
    """Where results go: rows to the sink, LPs that cannot be solved and unfinished chunks to folders.

    done: costs of the first scenarios, which the sink has got already.
    """

    sink: Sink
    failure_folder: Path | None = None
    spool_folder: Path | None = None
    done: Floats | None = None


def simulate_policy(comm: Backend, simulated: SimulatedPolicy, warnings: tuple[str, ...]) -> SimulationResult:
    """Follow a policy; ranks other than 0 get the costs and no tables."""
    began = time.monotonic()
    sink, study = ArrowSink(), simulated.study
    outcome = _simulate(comm, simulated, _Destination(sink))
    controlled = _controlled(study, outcome.costs, sink.stage_costs) if comm.rank == 0 else None
    tables = sink.tables() | _other_tables(simulated, outcome.costs, controlled) if comm.rank == 0 else {}
    facts = stages_and_entities(study.case) if comm.rank == 0 else {}
    return replace(_result(comm, outcome, controlled, tables, sink.digest, began, warnings), facts=facts)


@dataclass(frozen=True, slots=True)
class StreamedSimulation:
    """A simulation that writes its tables to `folder` while it runs.

    identity: what is simulated, as text; segments of another identity are not reused. resume: continue from closed
    segments.
    """

    folder: Path
    identity: str
    resume: bool
    failure_folder: Path

    def run(self, comm: Backend, simulated: SimulatedPolicy) -> SimulationResult:
        """Follow a policy, or the cuts of a pool; rank 0 writes. The result has no tables in memory."""
        began = time.monotonic()
        with as_write_error(self.folder), ExitStack() as stack:
            sink = stack.enter_context(self._sink()) if comm.rank == 0 else None
            comm.check_failures()
            done = _shared_costs(comm, np.zeros(0) if sink is None else sink.done)
            target = _Destination(sink or ArrowSink(), self.failure_folder, self.folder / UNFINISHED, done)
            outcome, controlled = _simulate(comm, simulated, target), None
            if sink is not None:
                controlled = _controlled(simulated.study, outcome.costs, sink.stage_costs)
                sink.publish(outcome.costs, _other_tables(simulated, outcome.costs, controlled))
        return _result(comm, outcome, controlled, {}, "" if sink is None else sink.digest, began, ())

    @contextmanager
    def _sink(self) -> Iterator[StreamingSink]:
        make_folder(self.folder / UNFINISHED)
        tables = GrowingTables(self.folder, self.identity, resume=self.resume)
        with on_failure(tables.abandon):
            yield StreamingSink(tables)


def ids_of_system(system: System) -> EntityIds:
    """The ids of each entity class, in canonical order."""
    return EntityIds(
        hydros=tuple(hydro.id for hydro in system.hydros),
        thermals=tuple(thermal.id for thermal in system.thermals),
        buses=tuple(bus.id for bus in system.buses),
        lines=tuple(line.id for line in system.lines),
        non_controllables=tuple(source.id for source in system.non_controllable_sources),
        contracts=tuple(contract.id for contract in system.energy_contracts),
        pumping_stations=tuple(station.id for station in system.pumping_stations),
    )


def _simulate(comm: Backend, simulated: SimulatedPolicy, target: _Destination) -> SimulationOutcome:
    study, policy = simulated.study, simulated.policy
    pool = policy if isinstance(policy, CutPool) else _pool_of(comm, policy, study)
    paths, num_scenarios = tree_scenarios(study, simulated.num_scenarios)
    sampler = study.noise.simulation_sampler
    uses_all_cuts = study.case.config.simulation.cut_set == "all"
    simulator = PolicySimulator(
        study.problem, simulated.solver, pool, sampler, target.failure_folder, paths, uses_all_cuts=uses_all_cuts
    )
    output = SimulationOutput(target.sink, ids_of_system(study.case.system), target.spool_folder, done=target.done)
    outcome = simulate(comm, simulator, num_scenarios, output, comm)
    if pool is not policy:
        pool.close()
    return outcome


def _controlled(study: PreparedStudy, costs: Floats, by_stage: StageCosts) -> Floats | None:
    """Costs without what the draw of openings did; None where scenarios are not drawn from the openings."""
    problem, sampler = study.problem, study.noise.simulation_sampler
    found = by_stage.by_stage(len(costs))
    if problem.tree is not None or not sampler.is_in_sample or found is None:
        return None
    total, future = (problem.discount_to_first_stage[:, None] * part for part in found)
    numbers = np.arange(len(costs))
    drawn = [sampler.opening_indices(SIMULATION_ITERATION, numbers, stage) for stage in range(problem.num_stages)]
    counts = [opening.count for opening in problem.openings]
    return controlled_costs(costs, total, future, drawn, counts)


def _other_tables(simulated: SimulatedPolicy, costs: Floats, controlled: Floats | None) -> "dict[str, pa.Table]":
    """The tables beside those of the simulation: of stages, of the paths of a tree, of whole scenarios."""
    study = simulated.study
    found = stage_tables(study)
    if controlled is not None:
        found |= {SCENARIO_COSTS: scenario_costs(costs, controlled)}
    if study.problem.tree is None:
        return found
    return found | {TREE_PATHS: tree_paths(study, tree_scenarios(study, simulated.num_scenarios)[0])}


def tree_scenarios(study: PreparedStudy, num_scenarios: int) -> tuple[Ints | None, int]:
    """Over a tree: the path of each scenario, drawn, or None where every path is a scenario; and how many there are."""
    tree = study.problem.tree
    if tree is None:
        return None, num_scenarios
    if study.case.config.simulation.is_enumerated:
        return None, len(tree.leaves)
    shares = np.add.accumulate(tree.path_probabilities())
    drawn = uniform_draws(PATH_BASE, study.case.config.training.tree_seed, num_scenarios)
    return np.minimum(np.searchsorted(shares, drawn, side="right"), len(shares) - 1).astype(np.int32), num_scenarios


def _pool_of(memory: SharedMemoryProvider, policy: Policy, study: PreparedStudy) -> CutPool:
    pool = BoundaryCutPool(memory, study.problem, study.boundary)
    fill_pool(pool, policy, study)
    return pool


def _result(
    comm: Communicator,
    outcome: SimulationOutcome,
    controlled: Floats | None,
    tables: "Mapping[str, pa.Table]",
    digest: str,
    began: float,
    warnings: tuple[str, ...],
) -> SimulationResult:
    mean, half_width = (None, None) if controlled is None else controlled_mean(controlled)
    return SimulationResult(
        controlled_mean_cost=mean,
        controlled_half_width=half_width,
        tables=tables,
        scenario_costs=tuple(outcome.costs.tolist()),
        mean_cost=outcome.mean,
        std_cost=outcome.std,
        digest=digest,
        seconds=time.monotonic() - began,
        warnings=warnings,
        solver=_of_all_ranks(comm, outcome.solver),
    )


def _of_all_ranks(comm: Communicator, own: SolveStatistics) -> SolveStatistics:
    table = gather_rows(comm, WorkSplit(comm.size, comm.size), np.array([own.numbers]), "solves of the simulation")
    return sum((SolveStatistics.from_numbers(row) for row in table.tolist()), SolveStatistics())


def _shared_costs(comm: Communicator, costs: Floats) -> Floats:
    """Send rank 0's costs to all ranks."""
    count = np.array([len(costs)], np.int64)
    comm.broadcast(count, 0, label="scenarios that are done")
    shared = costs.copy() if comm.rank == 0 else np.empty(int(count[0]))
    comm.broadcast(shared, 0, label="costs of scenarios that are done")
    return shared

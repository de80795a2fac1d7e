"""Simulation of a policy on all ranks, with its tables in memory or in files."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from cobre.comm import Backend, Communicator, SharedMemoryProvider
from cobre.core.arrays import Floats, Ints
from cobre.io.output.growing_tables import UNFINISHED, GrowingTables
from cobre.io.storage.atomic import as_write_error, on_failure
from cobre.io.storage.confined import make_folder
from cobre.policy.object import Policy
from cobre.policy.store import fill_pool
from cobre.runs.events import EventListener
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.plugins.interfaces import SIMULATION_ITERATION
from cobre.sddp.problem.boundary import BoundaryCutPool
from cobre.sddp.problem.problem import PreparedStudy
from cobre.sddp.ranks import WorkSplit, gather_rows
from cobre.sddp.simulation.controlled_costs import controlled_costs, controlled_mean, is_sharper
from cobre.sddp.simulation.policy_simulation import PolicySimulator, SimulationOutcome, SimulationOutput, simulate
from cobre.sddp.simulation.tables import EntityIds
from cobre.solver.batches import SolveStatistics
from cobre.stochastic.random.seeds import PATH_BASE, uniform_draws
from cobre.study.preparation.on_ranks import ReadyStudy, prepare_on_ranks
from cobre.study.requests import CaseRequest
from cobre.study.results import SimulationResult
from cobre.study.simulation.sinks import ArrowSink, StageCosts, StreamingSink
from cobre.study.simulation.supplementary_tables import supplementary_tables
from cobre.study.study_record import stages_and_entities
from cobre.study.training.initial_policy import POLICY_OF_ANOTHER_PROBLEM, share_policy, warn_of_other_problem


def simulate_rank(
    comm: Backend,
    case: CaseRequest,
    policy: Policy | Path,
    scenarios: int | None,
    result_on_all_ranks: bool,
    emit: EventListener,
) -> SimulationResult | None:
    """Prepare the case and simulate a policy; return the result on rank 0, or on all ranks.

    Only rank 0 has the tables. scenarios: their number; None: that of the case.
    """
    ready = prepare_on_ranks(comm, case, emit)
    shared = share_policy(comm, policy)
    count = scenarios or ready.study.case.config.simulation.num_scenarios
    warnings = (*ready.warnings, *warn_of_other_problem(ready, shared, policy, emit, POLICY_OF_ANOTHER_PROBLEM))
    result = replace(_simulate_in_memory(comm, ready, shared, count), warnings=warnings)
    return result if result_on_all_ranks or comm.rank == 0 else None


def _simulate_in_memory(comm: Backend, ready: ReadyStudy, policy: Policy, num_scenarios: int) -> SimulationResult:
    """Simulate with all tables in memory, on rank 0; other ranks get the costs and no tables."""
    began, study = time.monotonic(), ready.study
    paths, count = tree_scenarios(study, num_scenarios)
    sink = ArrowSink()
    output = SimulationOutput(sink, EntityIds.of(study.case.system))
    outcome = _simulate_scenarios(comm, ready, policy, paths, count, output)
    if comm.rank != 0:
        return _result(comm, outcome, None, sink.digest, began)
    controlled = _controlled_costs(study, outcome.costs, sink.stage_costs)
    tables = sink.tables() | supplementary_tables(study, paths, outcome.costs, controlled)
    result = _result(comm, outcome, controlled, sink.digest, began)
    return replace(result, tables=tables, facts=stages_and_entities(study.case))


def simulate_to_folder(
    comm: Backend,
    ready: ReadyStudy,
    policy: Policy | CutPool,
    folder: Path,
    *,
    identity: str,
    resume: bool,
    failure_folder: Path,
) -> SimulationResult:
    """Simulate a policy, or the cuts of a pool; rank 0 writes the tables to `folder` while scenarios are simulated.

    identity: what is simulated, as text; segments of another identity are not reused. resume: continue after the
    segments that an interrupted simulation has closed. The result has no tables in memory.
    """
    began, study = time.monotonic(), ready.study
    paths, count = tree_scenarios(study, study.case.config.simulation.num_scenarios)
    controlled = None
    with as_write_error(folder), ExitStack() as stack:
        sink = stack.enter_context(_open_sink(folder, identity, resume=resume)) if comm.rank == 0 else None
        comm.check_failures()
        output = SimulationOutput(
            sink or ArrowSink(),
            EntityIds.of(study.case.system),
            spool_folder=folder / UNFINISHED,
            restored_costs=_share_costs(comm, np.zeros(0) if sink is None else sink.done),
        )
        outcome = _simulate_scenarios(comm, ready, policy, paths, count, output, failure_folder)
        if sink is not None:
            controlled = _controlled_costs(study, outcome.costs, sink.stage_costs)
            sink.publish(outcome.costs, supplementary_tables(study, paths, outcome.costs, controlled))
    return _result(comm, outcome, controlled, "" if sink is None else sink.digest, began)


@contextmanager
def _open_sink(folder: Path, identity: str, *, resume: bool) -> Iterator[StreamingSink]:
    make_folder(folder / UNFINISHED)
    tables = GrowingTables(folder, identity, resume=resume)
    with on_failure(tables.abandon):
        yield StreamingSink(tables)


def _simulate_scenarios(
    comm: Backend,
    ready: ReadyStudy,
    policy: Policy | CutPool,
    paths: Ints | None,
    num_scenarios: int,
    output: SimulationOutput,
    failure_folder: Path | None = None,
) -> SimulationOutcome:
    """Simulate on all ranks. paths: the tree path of each scenario."""
    study = ready.study
    pool = policy if isinstance(policy, CutPool) else _pool_of(comm, policy, study)
    simulator = PolicySimulator(
        study.problem,
        ready.solver,
        pool,
        study.noise.simulation_sampler.for_scenarios(num_scenarios),  # a caller may ask for more than the case
        failure_folder,
        paths,
        uses_all_cuts=study.case.config.simulation.cut_set == "all",
    )
    outcome = simulate(comm, simulator, num_scenarios, output, comm)
    if pool is not policy:
        pool.close()
    return outcome


def _controlled_costs(study: PreparedStudy, costs: Floats, stage_costs: StageCosts) -> Floats | None:
    """Return costs of scenarios, controlled for the openings drawn.

    None if scenarios are not drawn from the openings, and where the plain mean is sharper.
    """
    problem, sampler = study.problem, study.noise.simulation_sampler
    by_stage = stage_costs.by_stage(len(costs))
    if problem.tree is not None or not sampler.is_representative or by_stage is None:
        return None
    total, future = (problem.discount_to_first_stage[:, None] * values for values in by_stage)
    numbers = np.arange(len(costs))
    openings = [sampler.opening_indices(SIMULATION_ITERATION, numbers, stage) for stage in range(problem.num_stages)]
    counts = [opening.count for opening in problem.openings]
    controlled = controlled_costs(costs, total, future, openings, counts)
    return controlled if controlled is not None and is_sharper(controlled, costs) else None


def tree_scenarios(study: PreparedStudy, num_scenarios: int) -> tuple[Ints | None, int]:
    """Return the tree path of each scenario (None: every path is a scenario), and the number of scenarios."""
    tree = study.problem.tree
    if tree is None:
        return None, num_scenarios
    if study.case.config.simulation.is_enumerated:
        return None, len(tree.leaves)
    shares = np.add.accumulate(tree.path_probabilities())
    draws = uniform_draws(PATH_BASE, study.case.config.training.tree_seed, num_scenarios)
    return np.minimum(np.searchsorted(shares, draws, side="right"), len(shares) - 1).astype(np.int32), num_scenarios


def _pool_of(memory: SharedMemoryProvider, policy: Policy, study: PreparedStudy) -> CutPool:
    pool = BoundaryCutPool(memory, study.problem, study.boundary)
    fill_pool(pool, policy, study)
    return pool


def _result(
    comm: Communicator, outcome: SimulationOutcome, controlled: Floats | None, digest: str, began: float
) -> SimulationResult:
    """Return the result without tables. Collective: call on every rank."""
    mean, half_width = (None, None) if controlled is None else controlled_mean(controlled)
    return SimulationResult(
        tables={},
        scenario_costs=tuple(outcome.costs.tolist()),
        mean_cost=outcome.mean,
        std_cost=outcome.std,
        controlled_mean_cost=mean,
        controlled_half_width=half_width,
        digest=digest,
        seconds=time.monotonic() - began,
        solver=_sum_over_ranks(comm, outcome.solver),
    )


def _sum_over_ranks(comm: Communicator, statistics: SolveStatistics) -> SolveStatistics:
    rows = gather_rows(
        comm, WorkSplit(comm.size, comm.size), np.array([statistics.as_vector()]), "solves of the simulation"
    )
    return sum((SolveStatistics.from_vector(row) for row in rows.tolist()), SolveStatistics())


def _share_costs(comm: Communicator, costs: Floats) -> Floats:
    """Broadcast rank 0's costs of the scenarios that are done."""
    count = np.array([len(costs)], np.int64)
    comm.broadcast(count, 0, label="scenarios that are done")
    shared = costs.copy() if comm.rank == 0 else np.empty(int(count[0]))
    comm.broadcast(shared, 0, label="costs of scenarios that are done")
    return shared

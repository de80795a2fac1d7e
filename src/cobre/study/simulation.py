"""Simulation of a policy in many scenarios, with rows in memory or in files."""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Backend, Communicator, SharedMemoryProvider
from cobre.core.arrays import Floats, Ints
from cobre.core.case import ABSENT_ID, System
from cobre.io.output.growing_tables import ROWS_PER_GROUP, UNFINISHED, GrowingTables, Segment
from cobre.io.storage.allocators import trim_heap
from cobre.io.storage.arrow_columns import column_of
from cobre.io.storage.atomic import as_write_error, on_failure
from cobre.io.storage.confined import make_folder
from cobre.policy.object import Policy
from cobre.policy.store import fill_pool
from cobre.records import dataclass
from cobre.runs.events import EventListener
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.plugins.interfaces import SIMULATION_ITERATION
from cobre.sddp.problem.boundary import BoundaryCutPool
from cobre.sddp.problem.problem import PreparedStudy
from cobre.sddp.ranks import WorkSplit, gather_rows
from cobre.sddp.simulation.controlled_costs import MAX_VALUES, controlled_costs, controlled_mean, is_sharper
from cobre.sddp.simulation.simulate import PolicySimulator, SimulationOutcome, SimulationOutput, simulate
from cobre.sddp.simulation.spool import ScenarioColumns, Sink
from cobre.sddp.simulation.tables import COSTS, EntityIds
from cobre.solver.batches import LpSolver, SolveStatistics
from cobre.stochastic.random.seeds import PATH_BASE, uniform_draws
from cobre.study.preparation.study_cache import prepare_on_ranks
from cobre.study.requests import CaseRequest
from cobre.study.results import SimulationResult, stages_and_entities
from cobre.study.stage_tables import SCENARIO_COSTS, TREE_PATHS, scenario_costs, stage_tables, tree_paths
from cobre.study.starting_point import POLICY_OF_ANOTHER_PROBLEM, share_policy, warn_of_other_problem

if TYPE_CHECKING:
    import pyarrow as pa


# Sinks of a simulation's rows: memory, or files as rows arrive; and one digest over all of them.

ROWS_PER_DIGEST = 4 * ROWS_PER_GROUP  # in memory at once, of one column
SECONDS_PER_SEGMENT = 120.0  # what a simulation that is killed loses at most, beside the scenarios it was at


class RowDigest:
    """SHA-256 over all rows: chunk by chunk, table by table, column by column."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def feed(self, table: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add all columns of a chunk of rows."""
        for name, values in columns.items():
            self.feed_column(table, name, values)

    def feed_column(self, table: str, name: str, values: NDArray[Any]) -> None:
        """Add one column of a chunk of rows."""
        self.feed_pieces(table, name, (values,))

    def feed_pieces(self, table: str, name: str, pieces: Iterable[NDArray[Any]]) -> None:
        """Add one column of a chunk of rows, given in pieces, one after the other."""
        self._digest.update(f"{table}.{name}".encode())
        for values in pieces:
            self._digest.update(np.ascontiguousarray(values).data)

    def hexdigest(self) -> str:
        """Return the digest of everything added so far, in hexadecimal."""
        return self._digest.hexdigest()


class StageCosts:
    """Total and future cost of all stages and scenarios, kept from rows on their way to a sink."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Floats]] = {"total_cost": [], "future_cost": []}
        self._values = 0

    def add(self, table: str, name: str, values: NDArray[Any]) -> None:
        """Keep a column of some scenarios, if it is one of the two; nothing beyond `MAX_VALUES`."""
        if table != COSTS.name or name not in self._parts or self._values > MAX_VALUES:
            return
        self._values += len(values) if name == "total_cost" else 0
        self._parts[name].append(np.array(values, np.float64))

    def by_stage(self, scenarios: int) -> tuple[Floats, Floats] | None:
        """Return both as stages x scenarios, $ of the stage's money; None where not all scenarios were kept."""
        total, future = (np.concatenate([np.zeros(0), *parts]) for parts in self._parts.values())
        if self._values > MAX_VALUES or not len(total) or len(total) % scenarios:
            return None
        return total.reshape(scenarios, -1).T, future.reshape(scenarios, -1).T


class ArrowSink:
    """A sink that keeps all rows in memory, for a script."""

    def __init__(self) -> None:
        self._batches: dict[str, list[pa.Table]] = {}
        self._digest = RowDigest()
        self.stage_costs = StageCosts()

    def write(self, table: str, columns: ScenarioColumns) -> None:
        """Keep rows of a table, and add them to the digest."""
        self._digest.feed(table, columns)
        for name in columns if table == COSTS.name else ():
            self.stage_costs.add(table, name, columns[name])
        self._batches.setdefault(table, []).append(_arrow_table(columns))

    def scenarios_done(self, costs: Floats) -> None:
        """Do nothing: rows in memory are lost only with the process."""

    @property
    def digest(self) -> str:
        """The digest of all rows."""
        return self._digest.hexdigest()

    def tables(self) -> dict[str, "pa.Table"]:
        """Return all rows as Arrow tables, by name."""
        import pyarrow as pa

        return {name: pa.concat_tables(parts).combine_chunks() for name, parts in sorted(self._batches.items())}


class StreamingSink:
    """A sink that writes rows to files as they arrive; closed segments are not simulated again."""

    def __init__(self, tables: GrowingTables, seconds_per_segment: float = SECONDS_PER_SEGMENT) -> None:
        self._tables = tables
        self._digest = RowDigest()
        self._seconds = seconds_per_segment
        self._closed_at = time.monotonic()
        self._rows: dict[str, int] = {}  # by table, in the order of the digest: rows of one scenario
        self._chunk = 0
        self._is_open = False
        self.stage_costs = StageCosts()
        self.done = self._restored()  # costs of the scenarios in closed segments

    @property
    def digest(self) -> str:
        """The digest of all rows, of this run and of those that it resumes."""
        return self._digest.hexdigest()

    def write(self, table: str, columns: ScenarioColumns) -> None:
        """Write rows of a table to its file, and add them to the digest."""
        for name in columns:
            self._digest.feed_pieces(table, name, self._kept(table, name, columns))
        self._rows.setdefault(table, columns.rows_per_scenario)
        self._chunk = max(self._chunk, len(columns.scenarios))
        self._is_open = True
        for piece in columns.pieces(ROWS_PER_GROUP):
            self._tables.append(table, _arrow_table(piece))

    def _kept(self, table: str, name: str, columns: ScenarioColumns) -> Iterator[NDArray[Any]]:
        for piece in columns.pieces(ROWS_PER_DIGEST):
            values = piece[name]
            self.stage_costs.add(table, name, values)
            yield values

    def scenarios_done(self, costs: Floats) -> None:
        """Close a segment when the last one is old enough, or when it takes too much memory to remember."""
        if time.monotonic() - self._closed_at >= self._seconds or self._tables.exceeds_memory_limit:
            self.close(costs)
        trim_heap()

    def close(self, costs: Floats) -> None:
        """Close the open segment, so that everything received is stored. costs: of all scenarios received."""
        if self._is_open:
            self._tables.close_segment({"costs": costs.tolist(), "chunk": self._chunk, "rows": self._rows})
            self._closed_at = time.monotonic()
            self._is_open = False

    def publish(self, costs: Floats, others: "Mapping[str, pa.Table]") -> None:
        """Publish complete results, with other tables beside those that were simulated."""
        self.close(costs)
        self._tables.publish(others, {"digest": self.digest})

    def _restored(self) -> Floats:
        """Read closed segments again for the digest."""
        first = 0
        for segment in self._tables.segments:
            record = segment.record
            self._rows, self._chunk = dict(record["rows"]), int(record["chunk"])
            last = len(record["costs"])
            self._feed_again(segment, last - first)
            first = last
        return np.array(self._tables.segments[-1].record["costs"] if self._tables.segments else [], np.float64)

    def _feed_again(self, segment: Segment, scenarios: int) -> None:
        files = {name: segment.columns(name) for name in self._rows}
        for start in range(0, scenarios, self._chunk):
            stop = min(start + self._chunk, scenarios)
            for table, rows in self._rows.items():
                for name in files[table].names:
                    column = files[table].read(name, start * rows, stop * rows)
                    self._digest.feed_column(table, name, _plain(column))
                    self.stage_costs.add(table, name, _plain(column))


def _arrow_table(columns: Mapping[str, NDArray[Any]]) -> "pa.Table":
    import pyarrow as pa

    return pa.table({name: _arrow(name, values) for name, values in columns.items()})


def _arrow(name: str, values: NDArray[Any]) -> "pa.Array":
    import pyarrow as pa

    if name == "block_id":
        return column_of(values, pa.int32(), values == ABSENT_ID)
    return column_of(values)


def _plain(column: "pa.ChunkedArray") -> NDArray[Any]:
    """Convert a column back from `_arrow`."""
    filled = column.fill_null(ABSENT_ID) if column.null_count else column
    return np.concatenate([np.asarray(chunk) for chunk in filled.chunks]) if filled.num_chunks else np.zeros(0)


# Simulate, with tables in memory or in files.


@dataclass(frozen=True, slots=True)
class SimulatedPolicy:
    """A simulation: the study, its solver, a policy or the cuts of a pool, and the number of scenarios."""

    study: PreparedStudy
    solver: LpSolver
    policy: Policy | CutPool
    num_scenarios: int


@dataclass(frozen=True, slots=True)
class _Destination:
    """Destination of results: rows go to the sink, failed LPs and unfinished chunks to folders.

    done: costs of the first scenarios, which the sink has got already.
    """

    sink: Sink
    failure_folder: Path | None = None
    spool_folder: Path | None = None
    done: Floats | None = None


def simulate_rank(
    comm: Backend,
    case: CaseRequest,
    policy: Policy | Path,
    scenarios: int | None,
    result_on_all_ranks: bool,
    emit: EventListener,
) -> SimulationResult | None:
    """Simulate; return the result on rank 0, or on all ranks, of which rank 0 alone has the tables."""
    ready = prepare_on_ranks(comm, case, emit)
    shared = share_policy(comm, policy)
    count = scenarios or ready.study.case.config.simulation.num_scenarios
    warnings = (*ready.warnings, *warn_of_other_problem(ready, shared, policy, emit, POLICY_OF_ANOTHER_PROBLEM))
    result = simulate_policy(comm, SimulatedPolicy(ready.study, ready.solver, shared, count), warnings)
    return result if result_on_all_ranks or comm.rank == 0 else None


def simulate_policy(comm: Backend, simulated: SimulatedPolicy, warnings: tuple[str, ...]) -> SimulationResult:
    """Simulate a policy; ranks other than 0 get the costs and no tables."""
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
        """Simulate a policy, or the cuts of a pool; rank 0 writes. The result has no tables in memory."""
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
    """Return the ids of each entity class, in canonical order."""
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
    sampler = study.noise.simulation_sampler.for_scenarios(num_scenarios)  # a caller may ask for more than the case
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
    """Return costs controlled for the openings drawn.

    None where scenarios are not drawn from the openings, and where the plain mean is sharper.
    """
    problem, sampler = study.problem, study.noise.simulation_sampler
    found = by_stage.by_stage(len(costs))
    if problem.tree is not None or not sampler.is_representative or found is None:
        return None
    total, future = (problem.discount_to_first_stage[:, None] * part for part in found)
    numbers = np.arange(len(costs))
    drawn = [sampler.opening_indices(SIMULATION_ITERATION, numbers, stage) for stage in range(problem.num_stages)]
    counts = [opening.count for opening in problem.openings]
    controlled = controlled_costs(costs, total, future, drawn, counts)
    return controlled if controlled is not None and is_sharper(controlled, costs) else None


def _other_tables(simulated: SimulatedPolicy, costs: Floats, controlled: Floats | None) -> "dict[str, pa.Table]":
    """Return the tables beside those of the simulation: of stages, of the paths of a tree, of whole scenarios."""
    study = simulated.study
    found = stage_tables(study)
    if controlled is not None:
        found |= {SCENARIO_COSTS: scenario_costs(costs, controlled)}
    if study.problem.tree is None:
        return found
    return found | {TREE_PATHS: tree_paths(study, tree_scenarios(study, simulated.num_scenarios)[0])}


def tree_scenarios(study: PreparedStudy, num_scenarios: int) -> tuple[Ints | None, int]:
    """Return the tree path of each scenario (None: every path is a scenario), and the number of scenarios."""
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

"""A policy in many scenarios: simulated, and turned into Arrow tables."""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator, SharedMemoryProvider
from cobre.core.case import ABSENT_ID, System
from cobre.sddp.boundary import PricedPool
from cobre.sddp.simulation.simulate import simulate
from cobre.sddp.simulation.tables import EntityIds
from cobre.solver.batches import LpSolver
from cobre.study.policy import Policy
from cobre.study.policy_store import fill_pool
from cobre.study.prepare import PreparedStudy
from cobre.study.results import SimulationResult
from cobre.study.stage_facts import fact_tables

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowSink:
    """Collects rows as they come; `digest` is over all their bytes, in order."""

    def __init__(self) -> None:
        self._batches: dict[str, list[pa.Table]] = {}
        self._digest = hashlib.sha256()

    def write(self, table: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Take rows of a table."""
        import pyarrow as pa

        for name, values in columns.items():
            self._digest.update(f"{table}.{name}".encode())
            self._digest.update(np.ascontiguousarray(values).tobytes())
        self._batches.setdefault(table, []).append(pa.table({n: _arrow(n, v) for n, v in columns.items()}))

    @property
    def digest(self) -> str:
        """Of everything that was written."""
        return self._digest.hexdigest()

    def tables(self) -> dict[str, "pa.Table"]:
        """All rows, table by table."""
        import pyarrow as pa

        return {name: pa.concat_tables(parts).combine_chunks() for name, parts in sorted(self._batches.items())}


def simulate_policy(
    comm: Communicator,
    memory: SharedMemoryProvider,
    study: PreparedStudy,
    solver: LpSolver,
    policy: Policy,
    num_scenarios: int,
    warnings: tuple[str, ...],
    failure_folder: Path | None = None,
) -> SimulationResult:
    """Follow a policy; ranks other than 0 get the costs and no tables."""
    began = time.monotonic()
    pool = PricedPool(memory, study.problem.num_stages, study.problem.dimension, study.end)
    fill_pool(pool, policy, study)
    sink = ArrowSink()
    outcome = simulate(
        comm,
        study.problem,
        solver,
        pool,
        study.noise.simulation_sampler,
        num_scenarios,
        sink,
        entity_ids(study.case.system),
        failure_folder=failure_folder,
    )
    pool.close()
    return SimulationResult(
        tables=sink.tables() | fact_tables(study) if comm.rank == 0 else {},
        scenario_costs=tuple(outcome.costs.tolist()),
        mean_cost=outcome.mean,
        std_cost=outcome.std,
        digest=sink.digest,
        seconds=time.monotonic() - began,
        warnings=warnings,
    )


def entity_ids(system: System) -> EntityIds:
    """Ids by class, in canonical order."""
    return EntityIds(
        hydros=tuple(hydro.id for hydro in system.hydros),
        thermals=tuple(thermal.id for thermal in system.thermals),
        buses=tuple(bus.id for bus in system.buses),
        lines=tuple(line.id for line in system.lines),
        non_controllables=tuple(source.id for source in system.non_controllable_sources),
        contracts=tuple(contract.id for contract in system.energy_contracts),
        pumping_stations=tuple(station.id for station in system.pumping_stations),
    )


def _arrow(name: str, values: NDArray[Any]) -> "pa.Array":
    import pyarrow as pa

    if name == "block_id":
        return pa.array(values, pa.int32(), mask=values == ABSENT_ID)
    return pa.array(values)

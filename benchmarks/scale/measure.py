"""Measured parameters of the model: the cost of a solve, of a stage call, of a byte."""

import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cobre.comm import launch
from cobre.comm.cores import usable_cores
from cobre.study.api import train
from scale.model import Cluster, Study

Overrides = Mapping[str, Any] | None
PAYLOADS = (8 * 1024, 3_200_000)
REPETITIONS = 30


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """An iteration on so many ranks, here: the median over the last half of a training run."""

    ranks: int
    iteration_s: float
    waiting_share: float
    imbalance_share: float


def measured_study(case: Path, iterations: int, overrides: Overrides = None) -> Study:
    """Measure the work of the last half of a run with one rank and one thread."""
    result = train(case, config_overrides=overrides, threads=1, iterations=iterations)
    policy, late = result.policy, result.history[len(result.history) // 2 :]
    stages, passes = policy.num_stages, late[-1].forward_passes
    solves = late[-1].solves
    openings = max(1, round((solves / passes - stages) / max(1, stages - 1)))
    forward = statistics.median(record.times.forward_s for record in late)
    backward = statistics.median(record.times.backward_s for record in late)
    inside = statistics.median(record.times.solver_s for record in late)
    total = statistics.median(sum(load.busy_s for load in record.loads) for record in late)
    call = max(0.0, total - inside) / (2 * stages)
    return Study(
        stages=stages,
        forward_passes=passes,
        openings=openings,
        state_bytes=float(passes * stages * policy.dimension * 8),
        cut_bytes=float(passes * (1 + policy.dimension) * 8),
        solve_forward_s=max(0.0, forward / stages - call) / passes,
        solve_backward_s=max(0.0, backward / (stages - 1) - call) / (passes * openings),
        call_s=call,
        spread=0.0,
    )


def measured_run(case: Path, iterations: int, ranks: int, overrides: Overrides = None) -> MeasuredRun:
    """Run the study on shm workers of one thread each."""
    return _run(case, iterations, ranks, overrides, "auto" if ranks == 1 else "shm")


def measured_apart(case: Path, iterations: int, ranks: int, overrides: Overrides = None) -> MeasuredRun:
    """Run the study on workers without shared memory, as if on separate machines: each has its own block of paths."""
    with _variable("COBRE_TCP_RANKS_PER_HOST", "1"):
        return _run(case, iterations, ranks, overrides, "tcp")


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _run(case: Path, iterations: int, ranks: int, overrides: Overrides, backend: str) -> MeasuredRun:
    settings: dict[str, Any] = {"config_overrides": overrides, "threads": 1, "iterations": iterations}
    result = train(case, num_workers=ranks, backend=backend, **settings)
    late = result.history[len(result.history) // 2 :]
    times = [after.elapsed_s - before.elapsed_s for before, after in pairwise(late)]
    loads = [load for record in late for load in record.loads]
    spent = sum(load.busy_s + load.waiting_s for load in loads)
    return MeasuredRun(
        ranks,
        statistics.median(times),
        sum(load.waiting_s - load.imbalance_s for load in loads) / spent,
        sum(load.imbalance_s for load in loads) / spent,
    )


def spread_of(run: MeasuredRun, study: Study) -> float:
    """Return the relative spread of the time of a path that explains the imbalance of ranks without shared memory."""
    paths = study.forward_passes / run.ranks
    return run.imbalance_share * float(np.sqrt(paths / (2.0 * np.log(run.ranks))))


def measured_cluster() -> Cluster:
    """Measure this machine with two shm ranks."""
    small, large = launch.run(_gather_times, 2, "shm")[0]
    latency = max(1e-9, small)
    return Cluster(usable_cores(), PAYLOADS[1] / max(1e-9, large - small), latency)


def measured_tcp_gather() -> Sequence[float]:
    """Time an allgatherv of the two payloads between two tcp ranks over loopback, in seconds."""
    return tuple(launch.run(_gather_times, 2, "tcp", environment={"COBRE_TCP_RANKS_PER_HOST": "1"})[0])


def _gather_times(comm: Any) -> list[float]:
    return [_gather_time(comm, size) for size in PAYLOADS]


def _gather_time(comm: Any, size: int) -> float:
    share = size // 8 // comm.size
    own, everything = np.ones(share), np.empty(share * comm.size)
    times = []
    for _ in range(REPETITIONS):
        comm.barrier()
        began = time.perf_counter()
        comm.allgatherv(own, everything, [share] * comm.size)
        times.append(time.perf_counter() - began)
    return statistics.median(times)

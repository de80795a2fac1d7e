"""How it is measured: one loop for all contenders.

Per case: warm up, check the result, then repeat: barrier, clock, a batch of calls, clock. A repetition
counts as long as its slowest rank needed. Nothing here knows which library it times.
"""

import gc
import time
from collections.abc import Iterable, Sequence
from statistics import median

from collectives.adapters.base import Adapter, Call
from collectives.cases import Case
from collectives.workload import prepare

WARM_UP_REPETITIONS = 2

Durations = dict[str, list[float]]
"""Seconds per call by case: one value per repetition."""


def measure(adapter: Adapter, cases: Iterable[Case]) -> Durations:
    """Time every case that the contender has, on this rank."""
    return {case.name: time_case(adapter, case) for case in cases if case.kind in adapter.kinds}


def time_case(adapter: Adapter, case: Case) -> list[float]:
    """Seconds per call on this rank, one value per repetition."""
    with prepare(adapter, case) as work:
        repeat(work.call, adapter.synchronise, case.batch, WARM_UP_REPETITIONS)
        if adapter.communicates:
            work.check()
        gc.collect()
        gc.disable()  # a collection in one rank would be charged to the collective
        try:
            return repeat(work.call, adapter.synchronise, case.batch, case.repetitions)
        finally:
            gc.enable()


def repeat(call: Call, synchronise: Call, batch: int, repetitions: int) -> list[float]:
    """Start together, then time a batch of calls; as often as asked."""
    clock = time.perf_counter
    seconds = []
    for _ in range(repetitions):
        synchronise()
        begin = clock()
        for _ in range(batch):
            call()
        seconds.append((clock() - begin) / batch)
    return seconds


def summarise(by_rank: Sequence[Durations]) -> dict[str, float]:
    """Seconds by case: of every repetition the slowest rank, of these the median."""
    return {
        case: median(max(repetition) for repetition in zip(*(rank[case] for rank in by_rank), strict=True))
        for case in by_rank[0]
    }

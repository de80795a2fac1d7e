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
from collectives.workload import Work, prepare

WARM_UP_REPETITIONS = 2

Durations = dict[str, list[float]]
"""Seconds per call by case: one value per repetition."""


def measure(adapter: Adapter, cases: Iterable[Case]) -> Durations:
    """Time every case that the contender has, on this rank."""
    return measure_in_turns([adapter], cases)[0]


def measure_in_turns(adapters: Sequence[Adapter], cases: Iterable[Case]) -> list[Durations]:
    """Measure several contenders in one process, which take turns at every repetition."""
    durations: list[Durations] = [{} for _ in adapters]
    for case in cases:
        able = [number for number, adapter in enumerate(adapters) if case.kind in adapter.kinds]
        for number, seconds in zip(able, time_case([adapters[number] for number in able], case), strict=True):
            durations[number][case.name] = seconds
    return durations


def time_case(adapters: Sequence[Adapter], case: Case) -> list[list[float]]:
    """Return seconds per call on this rank: for each contender one value per repetition."""
    if not adapters:
        return []
    with prepare(adapters, case) as works:
        for adapter, work in zip(adapters, works, strict=True):
            warm_up(adapter, work, case.batch)
        gc.collect()
        gc.disable()  # a collection in one rank would be charged to the collective
        try:
            return take_turns(adapters, works, case)
        finally:
            gc.enable()


def warm_up(adapter: Adapter, work: Work, batch: int) -> None:
    """Make the call a few times and check its result."""
    work.reset()
    repeat(work.call, adapter.synchronise, batch, WARM_UP_REPETITIONS)
    if adapter.communicates:
        work.check()


def take_turns(adapters: Sequence[Adapter], works: Sequence[Work], case: Case) -> list[list[float]]:
    """Time one repetition of each contender at a time, in alternating order."""
    seconds: list[list[float]] = [[] for _ in works]
    order = list(range(len(works)))
    for _ in range(case.repetitions):
        for number in order:
            seconds[number] += repeat(works[number].call, adapters[number].synchronise, case.batch, 1)
        order.reverse()
    return seconds


def repeat(call: Call, synchronise: Call, batch: int, repetitions: int) -> list[float]:
    """Time a batch of calls, `repetitions` times; ranks start each batch together."""
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
    """Return seconds by case: the median over repetitions of the slowest rank."""
    return {
        case: median(max(repetition) for repetition in zip(*(rank[case] for rank in by_rank), strict=True))
        for case in by_rank[0]
    }

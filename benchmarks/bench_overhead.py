"""Cost per call of the public path of cobre.comm: guard, checks and record, without anything to wait for.

Measured on `local` (one rank), where a barrier does nothing, so that what remains is the path itself. An
empty method call and a bare copy stand beside it: `python benchmarks/bench_overhead.py [--quick]`.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import numpy as np

from cobre.comm import Backend, LocalConfig, ReduceOp, create_communicator
from collectives.machine import describe_machine
from collectives.report import table

CALLS = 20_000
REPETITIONS = 15
NANOSECONDS = 1e9


class Empty:
    """The price of calling a method at all."""

    def call(self) -> None:
        """Do nothing."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all calls in turns and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the repetitions")
    repetitions = REPETITIONS // 5 if parser.parse_args(arguments).quick else REPETITIONS
    with create_communicator(LocalConfig()) as comm:
        costs = measure(bind_calls(comm), repetitions)
    print(", ".join(f"{name}: {value}" for name, value in describe_machine().items()), end="\n\n")
    rows = [[name, f"{median(ns):.0f}", f"{min(ns):.0f}-{max(ns):.0f}"] for name, ns in costs.items()]
    print(table(["call", "ns, median", "range"], rows))
    return 0


def bind_calls(comm: Backend) -> dict[str, Callable[[], object]]:
    """Return the calls to time, by name."""
    small, result, cut = np.ones(4), np.zeros(4), np.ones(1_250)
    region = comm.create_shared_region(4, "float64")
    return {
        "empty method": Empty().call,
        "numpy.copyto 32 B": partial(np.copyto, result, small),
        "barrier": comm.barrier,
        "barrier with a label": partial(comm.barrier, label="bounds"),
        "allreduce 32 B": partial(comm.allreduce, small, result, ReduceOp.SUM),
        "broadcast 32 B": partial(comm.broadcast, small, 0),
        "broadcast 10 KB": partial(comm.broadcast, cut, 0),
        "allgatherv 32 B": partial(comm.allgatherv, small, result, (4,)),
        "allgatherv 32 B into a region": partial(comm.allgatherv, small, region, (4,)),
        "fence": region.fence,
    }


def measure(calls: dict[str, Callable[[], object]], repetitions: int) -> dict[str, list[float]]:
    """Return nanoseconds per call, one value per repetition; the calls take turns."""
    costs: dict[str, list[float]] = {name: [] for name in calls}
    gc.disable()  # as timeit does
    for _ in range(repetitions):
        for name, call in calls.items():
            costs[name].append(time_calls(call, CALLS) * NANOSECONDS)
    gc.enable()
    return costs


def time_calls(call: Callable[[], object], count: int) -> float:
    """Return seconds per call, back to back."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


if __name__ == "__main__":
    sys.exit(main())

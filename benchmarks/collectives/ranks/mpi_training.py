"""One rank of a training, then of its calls alone: `python -m collectives.ranks.mpi_training FOLDER CASE ITERATIONS`.

A rank under mpiexec. It trains with a trace, which says how long it was inside calls, waiting for others included. Then
all ranks make the same calls again, back to back, in three ways that take turns: by the contract, by mpi4py directly,
and by MPI's persistent collectives on fixed buffers. What lies between the first two is what the contract costs.
"""

import gc
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
from mpi4py import MPI

import cobre
from cobre.comm import Backend, SharedRegion, create_communicator
from cobre.comm.flight_recorder import RecordedCall
from cobre.comm.trace.recording import read_recording
from cobre.comm.trace.writer import TRACE_VARIABLE

ROUNDS = 15
UNIT = 8
SET_UP = ("create_shared_region", "split_local")  # once per study, not per iteration; not repeated here

Call = Callable[[], object]
Shape = tuple[str, int]
"""A call as it is repeated: operation, and bytes of its result."""


def main(folder: Path, case: str, iterations: int) -> None:
    """Train, repeat the calls, leave the figures."""
    world = MPI.COMM_WORLD
    calls, figures = train(folder, case, iterations)
    shapes = world.bcast([(call.operation, call.nbytes) for call in calls if call.operation not in SET_UP])
    with create_communicator("mpi") as comm, ExitStack() as memory:
        ways = bind(comm, world, sorted(set(shapes)), memory)
        seconds = take_turns({name: [bound[shape] for shape in shapes] for name, bound in ways.items()}, world)
    figures |= {"seconds": seconds, "operations": Counter(operation for operation, _ in shapes)}
    (folder / f"rank{world.rank}.json").write_text(json.dumps(figures))


def train(folder: Path, case: str, iterations: int) -> tuple[list[RecordedCall], dict[str, object]]:
    """Train a case; return the recorded calls of this rank, and the time that it spent."""
    os.environ[TRACE_VARIABLE] = str(folder)
    with create_communicator("mpi") as comm:
        comm.barrier()
        begin, cpu = time.perf_counter(), time.process_time()
        result = cobre.train(case, comm=comm, iterations=iterations, threads=1)
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    del os.environ[TRACE_VARIABLE]
    recordings = [read_recording(path) for path in sorted(folder.glob("*.jsonl"))]
    own = [recording for recording in recordings if recording.header.pid == os.getpid()]
    calls = [call for recording in own for call in recording.calls.values()]
    inside = sum(call.end_ns - call.begin_ns for call in calls) * 1e-9
    lost = sum(recording.lost for recording in own)
    return calls, {
        "wall": wall,
        "cpu": cpu,
        "inside": inside,
        "calls": len(calls),
        "lost": lost,
        "digest": result.digest,
    }


def bind(
    comm: Backend, world: MPI.Intracomm, shapes: Sequence[Shape], memory: ExitStack
) -> dict[str, dict[Shape, Call]]:
    """Return, for each variant, calls without arguments by shape. All use the same arrays."""
    largest = max(nbytes for _, nbytes in shapes)
    region = memory.enter_context(comm.create_shared_region(max(largest, 1), np.uint8))  # a study has one, too
    window = MPI.Win.Allocate_shared(UNIT if world.rank == 0 else 0, 1, MPI.INFO_NULL, world)
    window.Lock_all(MPI.MODE_NOCHECK)
    memory.callback(lambda: (window.Unlock_all(), window.Free()))
    ways: dict[str, dict[Shape, Call]] = {"contract": {}, "direct": {}, "persistent": {}}
    for operation, nbytes in shapes:
        for name, call in zip(ways, BINDINGS[operation](comm, world, nbytes, region, window), strict=True):
            ways[name][operation, nbytes] = call
    return ways


def bind_allgatherv(comm: Backend, world: MPI.Intracomm, nbytes: int, *_: object) -> tuple[Call, Call, Call]:
    """Bind gathers of parts of nearly equal size."""
    bounds = [nbytes * rank // world.size for rank in range(world.size + 1)]
    counts = [end - start for start, end in itertools.pairwise(bounds)]
    send, recv = np.ones(counts[world.rank], np.uint8), np.zeros(nbytes, np.uint8)
    target = [recv, counts, bounds[:-1], MPI.BYTE]
    return (
        partial(comm.allgatherv, send, recv, counts),
        partial(world.Allgatherv, send, target),
        Persistent(world.Allgatherv_init(send, target)),
    )


def bind_allreduce(comm: Backend, world: MPI.Intracomm, nbytes: int, *_: object) -> tuple[Call, Call, Call]:
    """Bind reductions, all three in rank order."""
    send, recv = np.ones(nbytes // UNIT), np.zeros(nbytes // UNIT)
    table = np.empty((world.size, send.size))
    request = Persistent(world.Allgather_init(send, table))

    def fold(gather: Call) -> None:
        gather()
        np.copyto(recv, table[0])
        for row in table[1:]:
            np.add(recv, row, recv)

    return (
        partial(comm.allreduce, send, recv),
        partial(fold, partial(world.Allgather, send, table)),
        partial(fold, request),
    )


def bind_broadcast(comm: Backend, world: MPI.Intracomm, nbytes: int, *_: object) -> tuple[Call, Call, Call]:
    """Bind broadcasts from rank 0."""
    data = np.ones(nbytes, np.uint8)
    return partial(comm.broadcast, data), partial(world.Bcast, data), Persistent(world.Bcast_init(data))


def bind_barrier(comm: Backend, world: MPI.Intracomm, *_: object) -> tuple[Call, Call, Call]:
    """Bind barriers."""
    return comm.barrier, world.Barrier, Persistent(world.Barrier_init())


def bind_fence(
    _: Backend, world: MPI.Intracomm, _nbytes: int, region: SharedRegion, window: MPI.Win
) -> tuple[Call, Call, Call]:
    """Bind the calls that make writes to a window visible: sync, barrier, sync."""
    start_and_wait = Persistent(world.Barrier_init())

    def fence(barrier: Call) -> None:
        window.Sync()
        barrier()
        window.Sync()

    return region.fence, partial(fence, world.Barrier), partial(fence, start_and_wait)


class Persistent:
    """A call that MPI has prepared: start and wait."""

    def __init__(self, request: MPI.Prequest) -> None:
        self._request = request

    def __call__(self) -> None:
        self._request.Start()
        self._request.Wait()

    def __del__(self) -> None:
        self._request.Free()


BINDINGS = {
    "allgatherv": bind_allgatherv,
    "allreduce": bind_allreduce,
    "broadcast": bind_broadcast,
    "barrier": bind_barrier,
    "fence": bind_fence,
}


def take_turns(ways: dict[str, list[Call]], world: MPI.Intracomm) -> dict[str, list[float]]:
    """Return seconds for all calls of a training by variant, one number per round, in rotating order."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    gc.collect()
    gc.disable()
    order = list(ways)
    for _ in range(ROUNDS):
        for name in order:
            world.Barrier()
            begin = time.perf_counter()
            for call in ways[name]:
                call()
            seconds[name].append(time.perf_counter() - begin)
        order.append(order.pop(0))
    gc.enable()
    return seconds


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))

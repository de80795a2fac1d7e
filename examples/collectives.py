"""Start a few ranks on this machine and show what each collective does and what it costs.

Run it with `python examples/collectives.py [ranks]`. Nothing else is needed: no main guard, no set-up.
"""

import sys
import time

import numpy as np

from cobre.comm import ReduceOp, launch
from cobre.comm.cores import usable_cores

REPEATS = 200


def microseconds(comm, call):
    """Return microseconds per call, on the slowest rank."""
    call()
    comm.barrier()
    begin = time.perf_counter()
    for _ in range(REPEATS):
        call()
    own = np.array([(time.perf_counter() - begin) / REPEATS * 1e6])
    slowest = np.empty(1)
    comm.allreduce(own, slowest, ReduceOp.MAX)
    return float(slowest[0])


def tour(comm):
    """Call and time each collective; return one row per collective. Collective: call on every rank."""
    rank, size = comm.rank, comm.size
    rows = []

    counts = [r + 1 for r in range(size)]
    gathered = np.empty(sum(counts))
    own = np.full(counts[rank], float(rank))
    cost = microseconds(comm, lambda: comm.allgatherv(own, gathered, counts))
    rows.append(("allgatherv", f"rank r sends r + 1 numbers: {gathered.astype(int).tolist()}", cost))

    total = np.empty(2)
    cost = microseconds(comm, lambda: comm.allreduce(np.array([1.0, rank]), total, ReduceOp.SUM))
    rows.append(("allreduce", f"sum of [1, rank] in rank order: {total.tolist()}", cost))

    word = np.frombuffer(bytearray(b"cobre" if rank == 0 else b"?????"), dtype="uint8")
    cost = microseconds(comm, lambda: comm.broadcast(word, root=0))
    rows.append(("broadcast", f"rank 0 says {word.tobytes().decode()!r}", cost))

    rows.append(("barrier", "all ranks have arrived", microseconds(comm, comm.barrier)))

    with comm.create_shared_region(1_000_000, "float64") as region:
        if comm.is_leader:
            region.as_mut_array()[:] = np.arange(1_000_000)
        region.fence()
        text = f"8 MB, one copy for {size} ranks, last value {region.as_array()[-1]:.0f}"
        rows.append(("shared region", text, microseconds(comm, region.fence)))
    return rows


if __name__ == "__main__":
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else max(2, min(4, usable_cores()))
    rows = launch.run(tour, size=ranks, backend="shm")[0]
    print(f"\n{ranks} ranks by shared memory on {usable_cores()} usable cores\n")
    print(f"{'call':<14} {'us':>8}   what it did")
    for name, text, cost in rows:
        print(f"{name:<14} {cost:>8.1f}   {text}")

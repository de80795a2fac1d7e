"""The time of one iteration, from the cost of a solve and of a byte.

    iteration = forward + gather(states) + sum over stages (backward + gather(cuts)) + bound
    forward   = stages x (turns(paths) x solve + call) x imbalance
    backward  = (turns(blocks of all paths) x solve + call) x imbalance

`paths` is the share of a machine, ceil(forward passes / machines); `call` is the cost of a stage in addition to its
solves. The ranks of a machine are a team: each takes the next path, or the next of a trial point's chains, from one
counter: two halves where LPs are small, blocks of openings where they are large. Turns are those of list scheduling:
units of random length, the longest first, each taken by the worker that is free first, until the last ends. A path's
time hardly varies; that of a single solve does, by `SOLVE_SPREAD` of its mean. Workers are the ranks of a machine, no
more than its cores. Between two exchanges machines wait for the slowest: with n paths each and a relative spread c of a
path's time, the largest of M means is about 1 + c sqrt(2 ln M / n) times the mean.

Exchanges of V bytes in all, among R ranks:

    shm   V / memory bandwidth, plus a latency that grows with log2 R
    tcp   from three machines and 32 KiB on a ring, as mpi, after the coordinator has compared the calls; else a star of
          machines: the coordinator's link carries V to each of the others, and receives their parts. Inside a machine
          as shm, before and after
    mpi   a ring between machines: every link carries V once; inside a machine as shm
"""

import heapq
import math
import random
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean

from cobre.comm.backends.tcp.transport.ring import MIN_HOSTS, RING_BYTES

# Standard deviations over means. Pivots of blocks of 2.5 openings: 0.47 in the deck of January 2018, 0.37 in that of
# December 2025, which is 0.74 and 0.59 for a solve.
SOLVE_SPREAD = 0.67
PATH_SPREAD = 0.1
DRAWS = 40


@dataclass(frozen=True, slots=True)
class Study:
    """The work of one iteration. Times are seconds of one core; bytes are what ranks tell each other."""

    stages: int
    forward_passes: int
    openings: int
    state_bytes: float  # all trial states of an iteration
    cut_bytes: float  # all cuts of one stage
    solve_forward_s: float
    solve_backward_s: float
    call_s: float
    spread: float  # of the time of a chain, relative
    blocks: tuple[float, ...] = ()  # parts of a trial point's openings, in any unit; none: two halves

    @property
    def exchanged_bytes(self) -> float:
        """Return the bytes exchanged in one iteration."""
        return self.state_bytes + (self.stages - 1) * self.cut_bytes


@dataclass(frozen=True, slots=True)
class Cluster:
    """Machines with `cores` each, joined by links; latencies are of one message."""

    cores: int
    memory_bytes_per_s: float
    shm_latency_s: float
    link_bytes_per_s: float = math.inf
    link_latency_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds of one iteration, and where they go."""

    ranks: int
    compute_s: float
    imbalance_s: float
    exchange_s: float

    @property
    def total_s(self) -> float:
        """Return the total."""
        return self.compute_s + self.imbalance_s + self.exchange_s


def predict(study: Study, cluster: Cluster, backend: str, ranks: int) -> Prediction:
    """Predict an iteration on a number of ranks with one thread each; with shm all of them are on one machine."""
    machines = 1 if backend == "shm" else math.ceil(ranks / cluster.cores)
    workers = min(cluster.cores, math.ceil(ranks / machines))
    paths = math.ceil(study.forward_passes / machines)
    forward = study.stages * (turns((1.0,), paths, workers, PATH_SPREAD) * study.solve_forward_s + study.call_s)
    parts = study.blocks or (1.0, 1.0)
    sizes = tuple(study.openings * part / sum(parts) for part in parts)
    backward = (study.stages - 1) * (turns(sizes, paths, workers, SOLVE_SPREAD) * study.solve_backward_s + study.call_s)
    bounds = turns((5.0,), math.ceil(study.openings / 5), workers * machines, SOLVE_SPREAD)
    bound = bounds * study.solve_backward_s + study.call_s
    slowest = study.spread * math.sqrt(2.0 * math.log(machines) / paths)
    work = forward + backward + bound
    exchanged = gather_s(cluster, backend, ranks, study.state_bytes)
    exchanged += (study.stages - 1) * gather_s(cluster, backend, ranks, study.cut_bytes)
    return Prediction(ranks, work, work * slowest, exchanged)


@cache
def turns(sizes: tuple[float, ...], points: int, workers: int, spread: float) -> float:
    """Return the mean number of solves of the slowest worker for the units of some points of the given sizes."""
    lengths = sorted((size for size in sizes for _ in range(points)), reverse=True)
    if workers == 1:
        return sum(lengths)
    draw, scale = random.Random(points * workers), spread**2
    draws = ([draw.gammavariate(length / scale, scale) for length in lengths] for _ in range(DRAWS))
    return fmean(_makespan(drawn, workers) for drawn in draws)


def _makespan(lengths: list[float], workers: int) -> float:
    ends = [0.0] * workers
    for length in lengths:
        heapq.heapreplace(ends, ends[0] + length)
    return max(ends)


def busy(study: Study, cluster: Cluster, ranks: int) -> float:
    """Return the mean number of working ranks on one machine, over an iteration."""
    alone = predict(study, replace(cluster, cores=1), "shm", 1).total_s
    return alone / predict(study, replace(cluster, cores=ranks), "shm", ranks).total_s


def gather_s(cluster: Cluster, backend: str, ranks: int, total_bytes: float) -> float:
    """Return the time of an allgatherv of `total_bytes` over all ranks, in seconds."""
    if ranks == 1:
        return 0.0
    inside = min(ranks, cluster.cores)
    machines = math.ceil(ranks / cluster.cores)
    local = total_bytes / cluster.memory_bytes_per_s + cluster.shm_latency_s * math.log2(inside) if inside > 1 else 0.0
    if backend == "shm":
        return total_bytes / cluster.memory_bytes_per_s + cluster.shm_latency_s * math.log2(ranks)
    if backend == "mpi":
        ring = total_bytes * (machines - 1) / machines / cluster.link_bytes_per_s
        return local + ring + cluster.link_latency_s * math.ceil(math.log2(max(2, ranks)))
    others = machines - 1
    if machines >= MIN_HOSTS and total_bytes >= RING_BYTES:
        # Call, reply, one hop after the other, and the final confirmation.
        ring = total_bytes * others / machines / cluster.link_bytes_per_s
        return 2 * local + ring + cluster.link_latency_s * (others + 3)
    # The coordinator's link receives the part of every machine, and sends each the parts of all others.
    received = total_bytes * others / machines / cluster.link_bytes_per_s
    return 2 * local + received * (1 + others) + cluster.link_latency_s * others


def on_link(cluster: Cluster, gigabits_per_s: float, latency_s: float) -> Cluster:
    """Return the same machines with another network."""
    return replace(cluster, link_bytes_per_s=gigabits_per_s * 1e9 / 8, link_latency_s=latency_s)

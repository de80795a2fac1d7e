"""The time of one iteration, from the cost of a solve and of a byte.

    iteration = forward + gather(states) + sum over stages (backward + gather(cuts)) + bound
    forward   = stages x (turns(paths) x solve + call) x imbalance
    backward  = (turns(2 x paths) x openings / 2 x solve + call) x imbalance

`paths` is the share of a machine, ceil(forward passes / machines); `call` is what a stage costs beside its solves. The
ranks of a machine are a team: each takes the next path, or the next of a trial point's two chains, from one counter.
n units on w workers take n / w turns and, as the last ones do not end together, half a turn more: n / w + (1 - 1 / w)
/ 2, and never less than one. Workers are the ranks of a machine, but no more than its cores. Between two exchanges
machines wait for the slowest: with n paths each and a relative spread c of a path's time, the largest of M means is
about 1 + c sqrt(2 ln M / n) times the mean.

Exchanges of V bytes in all, among R ranks:

    shm   V / memory bandwidth, plus a latency that grows with log2 R
    tcp   from three machines and 32 KiB on a ring, as mpi, after the coordinator has compared the calls; else a star of
          machines: the coordinator's link carries V to each of the others, and takes their parts in. Inside a machine
          as shm, before and after
    mpi   a ring between machines: every link carries V once; inside a machine as shm
"""

import math
from dataclasses import dataclass, replace

from cobre.comm.backends.tcp.transport.ring import MIN_HOSTS, RING_BYTES


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

    @property
    def exchanged_bytes(self) -> float:
        """In one iteration."""
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
        """All of it."""
        return self.compute_s + self.imbalance_s + self.exchange_s


def predict(study: Study, cluster: Cluster, backend: str, ranks: int) -> Prediction:
    """One iteration on so many ranks, one thread each; shm puts all of them into one machine."""
    machines = 1 if backend == "shm" else math.ceil(ranks / cluster.cores)
    workers = min(cluster.cores, math.ceil(ranks / machines))
    paths = math.ceil(study.forward_passes / machines)
    forward = study.stages * (turns(paths, workers) * study.solve_forward_s + study.call_s)
    chain = study.openings / 2 * study.solve_backward_s
    backward = (study.stages - 1) * (turns(2 * paths, workers) * chain + study.call_s)
    bound = turns(math.ceil(study.openings / 5), workers * machines) * 5 * study.solve_backward_s + study.call_s
    slowest = study.spread * math.sqrt(2.0 * math.log(machines) / paths)
    work = forward + backward + bound
    exchanged = gather_s(cluster, backend, ranks, study.state_bytes)
    exchanged += (study.stages - 1) * gather_s(cluster, backend, ranks, study.cut_bytes)
    return Prediction(ranks, work, work * slowest, exchanged)


def turns(units: int, workers: int) -> float:
    """How often workers that take units from one counter take one, until the last has finished its last."""
    return max(1.0, units / workers + (1.0 - 1.0 / workers) / 2.0)


def gather_s(cluster: Cluster, backend: str, ranks: int, total_bytes: float) -> float:
    """An allgatherv of so many bytes in all."""
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
        # Call, reply, one hop after the other, and the word that all is there.
        ring = total_bytes * others / machines / cluster.link_bytes_per_s
        return 2 * local + ring + cluster.link_latency_s * (others + 3)
    # The coordinator's link takes what each of them has and carries to each what it lacks
    taken = total_bytes * others / machines / cluster.link_bytes_per_s
    return 2 * local + taken * (1 + others) + cluster.link_latency_s * others


def on_link(cluster: Cluster, gigabits_per_s: float, latency_s: float) -> Cluster:
    """The same machines with another network."""
    return replace(cluster, link_bytes_per_s=gigabits_per_s * 1e9 / 8, link_latency_s=latency_s)

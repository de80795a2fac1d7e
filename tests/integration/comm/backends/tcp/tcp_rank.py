"""One rank of a tcp world as a process: `python tcp_rank.py ACTION`; prints JSON lines."""

import json
import logging
import os
import signal
import sys
import threading
import time

import numpy as np

from cobre.comm import BackendError, CollectiveFailedError, create_communicator

LARGE = 4_000_000  # bytes, more than the capacity of all socket buffers


def report_event(**event):
    who = {"rank": int(os.environ["COBRE_TCP_RANK"]), "pid": os.getpid(), "at": time.monotonic()}
    # One write: the liveness thread may log at the same time.
    os.write(1, f"{json.dumps({**who, **event})}\n".encode())


class Announcer(logging.Handler):
    """A log handler that also prints each message as an event."""

    def emit(self, record):
        report_event(log=record.getMessage())


def expect_failure(call):
    """Make calls until one fails, and report the error."""
    try:
        while True:
            call()
    except CollectiveFailedError as error:
        report_event(error=type(error).__name__, message=str(error), ranks=error.ranks)


def late_coordinator(comm):
    """Let rank 0 compute until the test stops it, while a payload waits for it; no rank may time out."""
    if comm.rank == 0:
        sys.stdin.readline()
    report_event(sending=True)
    counts = [LARGE] * comm.size
    recv = np.zeros(sum(counts), np.uint8)
    comm.allgatherv(np.full(LARGE, comm.rank, np.uint8), recv, counts)
    report_event(good=bool((recv == np.repeat(np.arange(comm.size), LARGE)).all()))


def die_with_a_child(comm):
    """Kill the last rank after it forks a child that outlives it; its connections must still end with it."""
    comm.barrier()
    if comm.rank == comm.size - 1:
        if os.fork() == 0:
            signal.pause()  # ended by the test, by its process group
        os.kill(os.getpid(), signal.SIGKILL)
    expect_failure(comm.barrier)


def idle_coordinator(comm, end=signal.SIGKILL):
    """Kill a worker while rank 0 is outside any call; the other worker must not wait for rank 0 to find out."""
    comm.barrier()
    if comm.rank == 2:
        os.kill(os.getpid(), end)
    if comm.rank == 1:
        expect_failure(comm.barrier)
    else:
        sys.stdin.readline()  # computes until the test sends a command
        expect_failure(comm.barrier)


def idle_coordinator_and_a_stopped_worker(comm):
    """Stop a worker, which then sends no heartbeats, while rank 0 is outside any call."""
    idle_coordinator(comm, signal.SIGSTOP)


def lose_a_rank_whose_host_computes(comm):
    """Lose rank 3 of two hosts with two ranks each while rank 2 computes; the other host must not wait for it."""
    _lose_the_last(comm, computing=2)


def lose_a_rank_while_a_neighbour_computes(comm):
    """Lose rank 3 while rank 1 computes; rank 0, which waits for it in memory, and rank 2 are informed at once."""
    _lose_the_last(comm, computing=1)


def lose_the_coordinator_while_a_neighbour_computes(comm):
    """Lose rank 0 while rank 3 computes; rank 2, which waits for it in memory, is informed at once."""
    comm.barrier()
    if comm.rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if comm.rank == 3:
        sys.stdin.readline()
    expect_failure(comm.barrier)


def _lose_the_last(comm, computing):
    comm.barrier()
    if comm.rank == comm.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if comm.rank == computing:
        sys.stdin.readline()  # computes until the test sends a command
    expect_failure(comm.barrier)


def die_before_a_fence(comm):
    """Lose rank 3 before its fence; the other host has made its own, and leaves."""
    region = comm.create_shared_region(8, "u1")
    if comm.rank == 3:
        sys.stdin.readline()
        os.kill(os.getpid(), signal.SIGKILL)
    if comm.rank == 2:
        expect_failure(region.fence)
    else:
        region.fence()
        report_event(fenced=True)


def fence_and_leave(comm):
    """Leave on the last node before rank 0 has begun its fence: nodes are not in step at a fence."""
    region = comm.create_shared_region(8, "u1")
    if comm.rank == 0:
        sys.stdin.readline()
    region.fence()
    report_event(fenced=True)


def abort_between_calls(comm):
    """Abort on the last rank while no rank is in a call; all others raise the error in their next call."""
    comm.barrier()
    if comm.rank == comm.size - 1:
        comm.abort("no more data")
        report_event(state=comm.state)
    else:
        expect_failure(comm.barrier)


def leave_early(comm):
    """Leave after the last call, in any order and without closing; that affects no other rank."""
    recv = np.zeros(comm.size * LARGE, np.uint8)
    comm.allgatherv(np.full(LARGE, comm.rank, np.uint8), recv, [LARGE] * comm.size)
    report_event(good=bool((recv == np.repeat(np.arange(comm.size), LARGE)).all()))
    os._exit(0)


def leave_early_in_the_ring(comm):
    """Leave early while neighbours still forward what this rank has sent."""
    report_event(running=True)
    leave_early(comm)


def wait_interrupted(comm):
    """Interrupt a wait by Ctrl-C: the call ends, and the other ranks raise an error."""
    if comm.rank == 0:
        threading.Thread(target=report_when_busy, args=(comm,), daemon=True).start()
        try:
            comm.barrier()
        except KeyboardInterrupt:
            report_event(interrupted=True)
        return
    sys.stdin.readline()
    expect_failure(comm.barrier)


def report_when_busy(comm):
    while comm.state != "busy":
        time.sleep(0.001)
    report_event(waiting=True)


def barriers(comm):
    """Make barriers until one fails."""
    report_event(running=True)
    expect_failure(comm.barrier)


def gathers(comm):
    """Gather large payloads until one call fails."""
    counts = [LARGE] * comm.size
    send, recv = np.full(LARGE, comm.rank, np.uint8), np.zeros(sum(counts), np.uint8)
    report_event(running=True)
    expect_failure(lambda: comm.allgatherv(send, recv, counts))


def gathers_of_64_kb(comm):
    """Gather payloads that are received by blocking reads until one call fails."""
    counts = [64_000 // comm.size] * comm.size
    send, recv = np.full(counts[0], comm.rank, np.uint8), np.zeros(sum(counts), np.uint8)
    report_event(running=True)
    expect_failure(lambda: comm.allgatherv(send, recv, counts))


def gather_on_command(comm):
    """Make one large gather, which the others begin while rank 0 still waits for a command."""
    report_event(running=True)
    if comm.rank == 0:
        sys.stdin.readline()
    recv = np.zeros(comm.size * LARGE, np.uint8)
    comm.allgatherv(np.full(LARGE, comm.rank, np.uint8), recv, [LARGE] * comm.size)
    report_event(good=bool((recv == np.repeat(np.arange(comm.size), LARGE)).all()))


if __name__ == "__main__":
    logging.getLogger("cobre.comm").addHandler(Announcer())
    logging.getLogger("cobre.comm").setLevel(logging.INFO)
    try:
        communicator = create_communicator("tcp")
    except BackendError as failure:
        report_event(refused=type(failure).__name__, message=str(failure))
        sys.exit(1)
    with communicator as world:
        report_event(joined=True)
        globals()[sys.argv[1]](world)

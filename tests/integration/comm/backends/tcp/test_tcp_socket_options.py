"""Socket options and fences of running tcp worlds."""

import os
import socket
import stat
import time
from pathlib import Path

import numpy as np
import pytest

from cobre.comm import launch

TOPOLOGIES = {"host": {}, "pairs": {"COBRE_TCP_RANKS_PER_HOST": "2"}, "star": {"COBRE_TCP_RANKS_PER_HOST": "1"}}
LIMIT_S = 60.0
LITTLE_S = 1.0
TIMEOUT_S, IDLE_S = 40, 10  # a quarter of the timeout: three probes follow


def options_of_connections(comm):
    """Return TCP_NODELAY, SO_KEEPALIVE and the idle time of every connection of this process, after some traffic."""
    comm.allreduce(np.ones(1), np.zeros(1))
    options = []
    for name in Path("/proc/self/fd").iterdir():
        descriptor = int(name.name)
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
        except OSError:  # the descriptor of the listing itself
            continue
        with socket.socket(fileno=os.dup(descriptor)) as sock:
            if sock.family not in (socket.AF_INET, socket.AF_INET6) or is_listening(sock):
                continue
            options.append(
                (
                    sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
                    sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                    sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
                )
            )
    comm.barrier()
    return options


def is_listening(sock):
    return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_connection_has_no_delay_and_keepalive(topology):
    size = 4
    environment = TOPOLOGIES[topology] | {"COBRE_TCP_TIMEOUT_SECS": str(TIMEOUT_S)}
    options_by_rank = launch.run(options_of_connections, size, "tcp", environment=environment)
    assert len(options_by_rank[0]) >= size - 1, "rank 0 is connected to every other rank"
    assert all(len(connections) >= 1 for connections in options_by_rank)
    assert {option for connections in options_by_rank for option in connections} == {(1, 1, IDLE_S)}


def fence_alone(comm, folder, limit_s):
    """Fence on rank 0 first; the others wait for its message. Return whether it left the fence alone."""
    left = Path(folder) / "left"
    with comm.create_shared_region(8, np.int64) as region:
        has_left = True
        if comm.rank == 0:
            region.fence()
            left.touch()
        else:
            deadline = time.monotonic() + limit_s
            while not left.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            has_left = left.exists()
            region.fence()
        comm.barrier()
    return has_left


def test_fence_of_private_memory_does_not_wait(tmp_path):
    outcomes = launch.run(fence_alone, 2, "tcp", (tmp_path, LIMIT_S), environment=TOPOLOGIES["star"])
    assert outcomes == [True, True]


def test_fence_of_shared_memory_waits(tmp_path):
    """Control: the same program distinguishes the two cases."""
    assert launch.run(fence_alone, 2, "shm", (tmp_path, LITTLE_S)) == [True, False]

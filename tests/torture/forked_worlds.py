"""Worlds without our launcher: ranks are forked from this process, which has loaded everything already.

So a rank costs milliseconds, and hundreds of worlds can be killed. Ranks report through a pipe.
"""

import json
import os
import secrets
import select
import signal
import socket
import time
import traceback
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from cobre.comm import BackendError, CommError, create_communicator

SHM = Path("/dev/shm")
DEADLINE_S = 60.0


@dataclass
class Rank:
    pid: int
    pipe: int
    output: bytes = b""
    status: int | None = None

    @property
    def report(self):
        """Return result or exception; None for a process that was killed before it could report."""
        return json.loads(self.output) if self.output.endswith(b"\n") else None


@dataclass
class World:
    ranks: list[Rank] = field(default_factory=list)
    name: str = ""

    def kill(self, rank):
        os.kill(self.ranks[rank].pid, signal.SIGKILL)

    def wait(self, deadline_s=DEADLINE_S):
        """Wait until all ranks have ended; return those that had to be killed."""
        deadline = time.monotonic() + deadline_s
        hung = []
        for number, rank in enumerate(self.ranks):
            while rank.status is None:
                readable, _, _ = select.select([rank.pipe], [], [], max(0.0, deadline - time.monotonic()))
                data = os.read(rank.pipe, 1 << 16) if readable else None
                if data:
                    rank.output += data
                    continue
                if data is None:
                    hung.append(number)
                    os.kill(rank.pid, signal.SIGKILL)
                rank.status = os.waitpid(rank.pid, 0)[1]
            os.close(rank.pipe)
        return hung


def shm_environment(size, name=None, rendezvous="socket"):
    name = name or f"tt-{secrets.token_hex(6)}"
    shared = {
        "COBRE_SHM_NAME": name,
        "COBRE_SHM_SIZE": str(size),
        "COBRE_SHM_CONNECT_TIMEOUT_SECS": "4",
        "COBRE_SHM_RENDEZVOUS": rendezvous,
    }
    return [shared | {"COBRE_SHM_RANK": str(rank)} for rank in range(size)]


def tcp_environment(size):
    address = ".".join(str(secrets.randbelow(254) + 1) for _ in range(3))
    with socket.socket() as probe:
        probe.bind((f"127.{address}", 0))
        port = probe.getsockname()[1]
    shared = {
        "COBRE_TCP_COORDINATOR": f"127.{address}",
        "COBRE_TCP_PORT": str(port),
        "COBRE_TCP_SIZE": str(size),
        "COBRE_TCP_SECRET": secrets.token_hex(32),
        "COBRE_TCP_CONNECT_TIMEOUT_SECS": "4",
    }
    return [shared | {"COBRE_TCP_RANK": str(rank)} for rank in range(size)]


def fork_world(environments, function, pauses_s=()):
    """Start ranks that call `function(comm)`; `pauses_s`: between the starts of consecutive ranks."""
    world = World(name=environments[0].get("COBRE_SHM_NAME", ""))
    for environment, pause_s in zip_longest(environments, pauses_s, fillvalue=0.0):
        time.sleep(pause_s)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            for other in world.ranks:
                os.close(other.pipe)
            _be_rank(environment, function, writing)
        os.close(writing)
        world.ranks.append(Rank(pid, reading))
    return world


def _be_rank(environment, function, pipe):
    os.environ.update(environment)
    try:
        with create_communicator() as comm:
            result = {"value": function(comm)}
    except (CommError, BackendError) as error:
        result = {"error": type(error).__name__, "text": str(error)}
    except BaseException:  # noqa: BLE001 - the parent must know of any error
        result = {"error": "unexpected", "text": traceback.format_exc()}
    os.write(pipe, json.dumps(result).encode() + b"\n")
    os._exit(0)

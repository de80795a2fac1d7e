"""User processes started with `multiprocessing`, by any start method, work as ranks."""

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from cobre.comm import ShmConfig, create_communicator
from cobre.comm.testing.leaks import no_leaks

PROGRAM = Path(__file__).with_name("multiprocessing_program.py")


@pytest.mark.parametrize("backend", ["shm", "tcp"])
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_multiprocessing_processes_work_as_ranks(method, backend):
    with no_leaks() as check:
        done = subprocess.run(
            [sys.executable, PROGRAM, method, backend, "3"],
            check=False,
            capture_output=True,
            text=True,
            timeout=100,
            env=check.environment,
        )
    assert done.stdout == "[(0, 120.0), (1, 120.0), (2, 120.0)] [0, 0, 0]\n", done.stderr


def sizes(names):
    """Return worlds of one rank, by each name and both kinds of rendezvous."""
    for name in names:
        for rendezvous in ("socket", "name"):
            with create_communicator(ShmConfig(name, 0, 1, rendezvous=rendezvous)) as comm:
                yield comm.size


def test_uuid_is_a_valid_segment_name():
    unique = str(uuid.uuid4())
    assert list(sizes([unique, f"/{unique}", f"cobre-study-{unique}", "x" * 63])) == [1] * 8

"""Studies in an MPI program that passes its communicators: the world, and parts of it."""

import subprocess
import sys

import environments
import pytest

CASE = environments.ROOT / "examples" / "two_reservoirs"
PROGRAM = environments.ROOT / "examples" / "own_processes" / "mpi_training.py"
ALONE = """
import sys, cobre
for seed in (0, 1):
    overrides = {"training.tree_seed": seed}
    print(cobre.train(sys.argv[1], iterations=4, threads=1, config_overrides=overrides).digest)
"""
# The program goes on with its own messages during and after a study; rank 2 takes no part in it.
BESIDE = """
import os, sys
from mpi4py import MPI
import numpy as np
import cobre
from cobre.comm import MpiCommunicator

world = MPI.COMM_WORLD
part = world.Split(0 if world.rank < 2 else MPI.UNDEFINED, world.rank)
if part != MPI.COMM_NULL:
    pending = part.irecv(source=1 - part.rank, tag=7)
    part.send(f"from {part.rank}", 1 - part.rank, tag=7)
    first = cobre.train(sys.argv[1], comm=part, iterations=2)
    with MpiCommunicator(comm=part) as comm:
        second = cobre.train(sys.argv[1], comm=comm, iterations=2)
        assert comm.state == "open"
        total = np.zeros(1)
        comm.allreduce(np.ones(1), total)
        assert total[0] == part.size
    assert pending.wait() == f"from {1 - part.rank}"
    assert first.digest == second.digest
    assert part.allreduce(1) == 2, "still there, and usable"
    part.Free()
assert world.allreduce(1) == 3
os.write(1, b"right\\n")
"""
# An invalid case is raised on every rank, and the program goes on with the same communicator.
CAUGHT = """
import os, sys
from mpi4py import MPI
import cobre
from cobre.comm import AbortedError, MpiCommunicator

part = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)
for comm in (part, MpiCommunicator(comm=part)):
    try:
        cobre.train(sys.argv[2], comm=comm)
    except cobre.InvalidCaseError as error:
        assert part.rank == 0, error
    except AbortedError as error:
        assert part.rank == 1 and "config.json" in str(error), error
    else:
        raise AssertionError("trained an invalid case")
    cobre.train(sys.argv[1], comm=comm, iterations=1)
assert MPI.COMM_WORLD.allreduce(1) == 4
os.write(1, b"right\\n")
"""
ALONE_IN_THE_MIDDLE = """
import sys
from mpi4py import MPI
import cobre

def stop(event):
    raise RuntimeError("the callback gave up")

cobre.train(sys.argv[1], comm=MPI.COMM_WORLD.Split(0), iterations=50, progress_callback=stop)
"""


@pytest.fixture(scope="module")
def digests():
    command = [sys.executable, "-c", ALONE, CASE]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    return done.stdout.split()


def test_two_parts_train_two_policies(mpi, digests):
    done = mpi.run(4, str(PROGRAM))
    expected = [f"seed {seed}, 2 ranks: digest {digest}" for seed, digest in enumerate(digests)]
    # Open MPI prints messages of its own here and there.
    printed = [line for line in done.output.splitlines() if line.startswith("seed")]
    assert (done.code, printed) == (0, expected), done.output


def test_program_continues_with_its_own_messages(mpi):
    done = mpi.run(3, "-c", BESIDE, str(CASE))
    assert (done.code, done.output.splitlines().count("right")) == (0, 3), done.output


def test_invalid_case_can_be_caught(mpi, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    done = mpi.run(4, "-c", CAUGHT, str(CASE), str(tmp_path))
    assert (done.code, done.output.splitlines().count("right")) == (0, 4), done.output


def test_failure_of_one_rank_ends_the_job(mpi):
    done = mpi.run(2, "-c", ALONE_IN_THE_MIDDLE, str(CASE))
    assert done.code != 0
    assert "the callback gave up" in done.output


@pytest.mark.parametrize(("comm", "words"), [("7", "must be an mpi4py.MPI.Intracomm"), ("MPI.COMM_NULL", "COMM_NULL")])
def test_wrong_communicator_type_raises(mpi, comm, words):
    program = f"from mpi4py import MPI; from cobre.comm import MpiCommunicator; MpiCommunicator(comm={comm})"
    done = mpi.run(1, "-c", program)
    assert done.code != 0
    assert "InitializationFailedError" in done.output and words in done.output

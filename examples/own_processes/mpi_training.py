"""Train two policies side by side in an MPI program that has communicators of its own.

    mpiexec -n 4 python examples/own_processes/mpi_training.py [CASE]

Even ranks train with one seed of the opening tree, odd ranks with another one: each half is a communicator of the
program, which Cobre uses but neither frees nor closes. The program continues with its own messages.
"""

import sys
from pathlib import Path

from mpi4py import MPI

import cobre

CASE = Path(__file__).parents[1] / "two_reservoirs"


def main(case=CASE):
    world = MPI.COMM_WORLD
    seed = world.rank % 2
    part = world.Split(seed, world.rank)
    trained = cobre.train(case, comm=part, iterations=4, config_overrides={"training.tree_seed": seed})
    digests = world.gather(f"seed {seed}, {part.size} ranks: digest {trained.digest}")
    if world.rank == 0:
        print("\n".join(sorted(set(digests))))
    part.Free()


if __name__ == "__main__":
    main(*sys.argv[1:])

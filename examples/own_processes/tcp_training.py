"""Train in processes on any machines, each of which knows the address of rank 0; no launcher, no variables.

    python examples/own_processes/tcp_training.py RANK SIZE ADDRESS:PORT SECRET_FILE [CASE]

Start it once for each rank, in any order. The secret is a file of random bytes that all machines have, such as
`openssl rand -hex 32 > run.secret; chmod 600 run.secret` makes.
"""

import sys
from pathlib import Path

import cobre
from cobre.comm import TcpConfig

CASE = Path(__file__).parents[1] / "two_reservoirs"


def main(rank, size, coordinator, secret_file, case=CASE):
    world = TcpConfig(coordinator, int(rank), int(size), secret_file=secret_file)
    trained = cobre.train(case, backend=world, iterations=4)  # joins the world, and leaves it at the end
    print(f"rank {rank}: digest {trained.digest}")


if __name__ == "__main__":
    main(*sys.argv[1:])

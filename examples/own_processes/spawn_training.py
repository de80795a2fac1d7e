"""Train and simulate in processes that this program starts by `multiprocessing`, with a communicator of its own.

    python examples/own_processes/spawn_training.py [RANKS [CASE]]

Each process creates its communicator from a configuration, passes it to Cobre and closes it. Every rank gets the
policy; rank 0 has the tables of the simulation.
"""

import multiprocessing
import secrets
import sys
from pathlib import Path

import cobre
from cobre.comm import ShmConfig, create_communicator

CASE = Path(__file__).parents[1] / "two_reservoirs"


def work(config, case, answers):
    with create_communicator(config) as comm:
        trained = cobre.train(case, comm=comm, iterations=4)
        simulated = cobre.simulate(case, trained.policy, comm=comm, scenarios=20)
        comm.barrier()  # still ours, and open
        answers.put((comm.rank, trained.digest, simulated.mean_cost, sorted(simulated.tables)[:2]))


def main(size=2, case=CASE):
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    name = f"training-{secrets.token_hex(8)}"  # the same for all ranks, and for no other run
    ranks = [context.Process(target=work, args=(ShmConfig(name, rank, size), case, answers)) for rank in range(size)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()  # a rank that fails or dies ends the others, by an error in their next call
    if any(process.exitcode for process in ranks):
        sys.exit("a rank failed; its error is above")
    for rank, digest, mean_cost, tables in sorted(answers.get() for _ in ranks):
        print(f"rank {rank}: digest {digest}, mean cost {mean_cost:.6e} $, tables {tables}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]), *sys.argv[2:3])

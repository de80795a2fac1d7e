"""Ranks in plain processes of `multiprocessing`: `python multiprocessing_program.py METHOD BACKEND RANKS`."""

import multiprocessing
import secrets
import sys

import numpy as np

from cobre.comm import ShmConfig, TcpConfig, create_communicator


def work(config, answers):
    with create_communicator(config) as comm:
        total = np.empty(1)
        comm.allreduce(np.array([10.0 * comm.rank]), total)
        with comm.create_shared_region(4, np.float64) as region:
            if comm.is_leader:
                region.as_mut_array()[:] = total
            region.fence()
            answers.put((comm.rank, float(region.as_array().sum())))


def configs(backend, size):
    if backend == "shm":
        name = f"cobre-{secrets.token_hex(8)}"  # the same for all ranks, and for no other run
        return [ShmConfig(name, rank, size) for rank in range(size)]
    address = ".".join(map(str, (127, *(secrets.randbelow(254) + 1 for _ in range(3)))))
    secret = secrets.token_hex(16)
    return [TcpConfig(address, rank, size, secret=secret) for rank in range(size)]


def main(method, backend, size):
    context = multiprocessing.get_context(method)
    answers = context.SimpleQueue()
    processes = [context.Process(target=work, args=(config, answers)) for config in configs(backend, size)]
    for process in processes:
        process.start()
    results = sorted(answers.get() for _ in processes)
    for process in processes:
        process.join()
    print(results, [process.exitcode for process in processes])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

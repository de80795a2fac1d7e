"""A world of our launcher whose ranks start processes; given a backend, it works until it is killed."""

import subprocess
import sys

import numpy as np

from cobre.comm import launch


def busy(comm):
    subprocess.Popen(["sleep", "600"])
    out = np.empty(8)
    for turn in range(400):
        with comm.create_shared_region(100 + turn, np.float64) as region:
            region.fence()
        comm.allreduce(np.full(8, float(comm.rank)), out)
    return float(out[0])


if __name__ == "__main__":
    launch.run(busy, 3, sys.argv[1])

"""Our mpi backend and mpi4py itself, in turns: `python -m collectives.ranks.cobre_mpi FOLDER CASE ... [--quick]`.

One rank under mpiexec. A difference of a percent or a microsecond shows only between calls of the same processes on
the same memory; from one world to the next the machine changes more than that.
"""

from mpi4py import MPI

from cobre.comm import create_communicator
from collectives.adapters.cobre import CobreAdapter
from collectives.adapters.mpi import MpiAdapter, MpiFoldAdapter
from collectives.ranks.entry import measure_and_leave, rank_parser


def main() -> None:
    """Join the world as any program would, and measure."""
    options = rank_parser().parse_args()
    with create_communicator("mpi") as comm:
        world = MPI.COMM_WORLD
        measure_and_leave([CobreAdapter(comm), MpiAdapter(world), MpiFoldAdapter(world)], options)


if __name__ == "__main__":
    main()

"""One rank of our mpi backend under mpiexec: `python -m collectives.ranks.cobre_mpi FOLDER CASE ... [--quick]`."""

from cobre.comm import create_communicator
from collectives.adapters.cobre import CobreAdapter
from collectives.ranks.entry import measure_and_leave, rank_parser


def main() -> None:
    """Join as any program would, and measure."""
    options = rank_parser().parse_args()
    with create_communicator("mpi") as comm:
        measure_and_leave(CobreAdapter(comm), options)


if __name__ == "__main__":
    main()

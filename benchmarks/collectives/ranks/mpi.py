"""One rank under mpiexec: `python -m collectives.ranks.mpi FOLDER CASE ... [--quick] [--adapter memcpy]`.

Needs mpi4py and not cobre.
"""

from mpi4py import MPI

from collectives.adapters.base import Adapter
from collectives.adapters.memcpy import MemcpyAdapter
from collectives.adapters.mpi import MpiAdapter
from collectives.ranks.entry import measure_and_leave, rank_parser


def main() -> None:
    """Measure mpi4py's calls, or copies that it keeps in step."""
    parser = rank_parser()
    parser.add_argument("--adapter", choices=("mpi", "memcpy"), default="mpi")
    options = parser.parse_args()
    adapter: Adapter = MpiAdapter(MPI.COMM_WORLD)
    measure_and_leave([MemcpyAdapter(adapter) if options.adapter == "memcpy" else adapter], options)


if __name__ == "__main__":
    main()

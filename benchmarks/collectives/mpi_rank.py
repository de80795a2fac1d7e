"""One rank under mpiexec: `python -m collectives.mpi_rank FOLDER CASE ... [--quick] [--adapter memcpy]`.

Runs in an environment that has mpi4py and not cobre. Leaves its durations in FOLDER/rank<N>.json.
"""

import argparse
import json
from pathlib import Path

from mpi4py import MPI

from collectives.adapters.base import Adapter
from collectives.adapters.memcpy import MemcpyAdapter
from collectives.adapters.mpi import MpiAdapter
from collectives.cases import select_cases
from collectives.timing import measure


def main() -> None:
    """Measure and leave the durations."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--adapter", choices=("mpi", "memcpy"), default="mpi")
    options = parser.parse_args()
    adapter: Adapter = MpiAdapter(MPI.COMM_WORLD)
    if options.adapter == "memcpy":
        adapter = MemcpyAdapter(adapter)
    durations = measure(adapter, select_cases(options.cases, quick=options.quick))
    (options.folder / f"rank{adapter.rank}.json").write_text(json.dumps(durations))


if __name__ == "__main__":
    main()

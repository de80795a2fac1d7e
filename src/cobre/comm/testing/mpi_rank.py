"""One rank of an MPI job of the kit: `mpiexec -n 4 python -m cobre.comm.testing.mpi_rank FOLDER`."""

import importlib
import json
import sys
from pathlib import Path

from cobre.comm.factory import create_communicator
from cobre.comm.testing.mpi import TASK, result_path
from cobre.comm.types import BackendKind


def main(folder: str) -> None:
    """Join, run the function that the task names, and write its return value."""
    task = json.loads((Path(folder) / TASK).read_text(encoding="utf-8"))
    function = getattr(importlib.import_module(task["module"]), task["function"])
    with create_communicator(BackendKind.MPI) as comm:
        value = function(comm, *task["args"])
    result_path(folder, comm.rank).write_text(json.dumps(value), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])

"""The launcher: starts N ranks on this machine, supervises them, and stops all of them at the first failure.

`run` calls a function on every rank and returns what each rank returned:

    from cobre.comm import launch

    def total(comm, numbers):
        mine = np.array([numbers[comm.rank]])
        everyone = np.empty_like(mine)
        comm.allreduce(mine, everyone)
        return int(everyone[0])

    launch.run(total, 4, args=([1, 2, 3, 4],))    # [10, 10, 10, 10]

`run_script` and `python -m cobre.comm.launch -n 4 script.py` run a script that calls `create_communicator()`.

For programs that start ranks in another way (Dask), or start processes that are not ranks: `describe_failure` turns
the exception of a rank into a `RankFailure` that can be sent, and `original_exception` turns it back;
`interpreter_flags` and `new_process_environment` make a new Python process like this one, without making it a rank.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cobre.comm.launch.launcher import run, run_script
    from cobre.comm.launch.messages import Output, discard, forward, send_to_parent
    from cobre.comm.launch.payload import RankFailure, WorkerError, describe_failure, original_exception
    from cobre.comm.launch.spawning import interpreter_flags, new_process_environment

__all__ = [
    "Output",
    "RankFailure",
    "WorkerError",
    "describe_failure",
    "discard",
    "forward",
    "interpreter_flags",
    "new_process_environment",
    "original_exception",
    "run",
    "run_script",
    "send_to_parent",
]

# A run without workers needs the package's signals and errors, and none of its processes.
_HOMES = {
    "Output": "messages",
    "RankFailure": "payload",
    "WorkerError": "payload",
    "describe_failure": "payload",
    "discard": "messages",
    "forward": "messages",
    "interpreter_flags": "spawning",
    "new_process_environment": "spawning",
    "original_exception": "payload",
    "run": "launcher",
    "run_script": "launcher",
    "send_to_parent": "messages",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'cobre.comm.launch' has no attribute {name!r}")
    value: object = getattr(import_module(f"cobre.comm.launch.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

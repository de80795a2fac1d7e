"""Start N ranks on this machine, watch them, stop all of them at the first failure.

`run` calls a function on every rank and returns what each rank returned:

    from cobre.comm import launch

    def total(comm, numbers):
        mine = np.array([numbers[comm.rank]])
        everyone = np.empty_like(mine)
        comm.allreduce(mine, everyone)
        return int(everyone[0])

    launch.run(total, 4, args=([1, 2, 3, 4],))    # [10, 10, 10, 10]

`run_script` and `python -m cobre.comm.launch -n 4 script.py` run a script that calls `create_communicator()`.
"""

from cobre.comm.launch.errors import WorkerError
from cobre.comm.launch.launcher import run, run_script
from cobre.comm.launch.messages import tell_parent
from cobre.comm.launch.output import Output, discard, forward

__all__ = ["Output", "WorkerError", "discard", "forward", "run", "run_script", "tell_parent"]

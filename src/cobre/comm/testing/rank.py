"""One rank of a fault plan: `python -m cobre.comm.testing.rank TASK`.

It joins the world that its environment describes, does what the task (JSON) says, and reports on standard output, one
JSON object per line. Commands from the parent arrive on standard input.
"""

import json
import os
import resource
import signal
import socket
import sys

from cobre._native import die_with_parent
from cobre.comm.errors import BackendError, CommError
from cobre.comm.factory import create_communicator
from cobre.comm.testing.faults.actions import ACTIONS
from cobre.comm.testing.faults.script import Script, report_event
from cobre.comm.testing.report import describe


def main() -> None:
    """Join, act, close, and report what happens; only a bug of the kit itself ends in a traceback."""
    die_with_parent(os.getppid())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell may have had it ignored
    task = json.loads(sys.argv[1])
    report_event("started", pid=os.getpid(), host=socket.gethostname())
    if task.get("joins_on_request"):
        sys.stdin.readline()
    try:
        comm = create_communicator()
    except (BackendError, CommError) as error:
        report_event("refused", **describe(error))
        return
    report_event("joined", size=comm.size)
    ACTIONS[task["action"]](Script(comm, task))
    comm.close()
    report_event("closed", state=comm.state)


if __name__ == "__main__":
    main()

"""Exit codes of `cobre`: one for each kind of error."""

import signal
from enum import IntEnum


class ExitCode(IntEnum):
    """0 is success; 2 is a wrong command line, as everywhere."""

    SUCCESS = 0
    UNEXPECTED = 1
    USAGE = 2
    INVALID_CASE = 3
    UNSOLVABLE = 4  # an LP is infeasible, unbounded or beyond the solver
    OUTPUT = 5  # results, or the answer that a command prints, cannot be written
    WORKER = 6  # a worker raised, was killed or got lost
    POLICY = 7  # a policy file is damaged or belongs to another study
    RESULTS = 8  # an output directory is missing, empty or only half there
    MISSING_EXTRA = 9  # the command needs a part of Cobre that is not installed
    INTERRUPTED = 128 + signal.SIGINT  # Ctrl-C; the policy so far was kept
    TERMINATED = 128 + signal.SIGTERM  # SIGTERM; likewise


DIFFERENT = 1
"""`cobre compare` and `cobre verify`: the results differ, as `cmp` has it. Other errors have codes of their own."""

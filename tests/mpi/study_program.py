"""`cobre run` as a rank of a job: `mpiexec -n 2 python study_program.py ODD_RANK ODD_CASE CASE FLAG ...`.

The odd rank is given the odd case. With `TERMINATE=rank` that rank gets SIGTERM when an iteration is finished.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from cobre.cli.main import main

LIMIT_S = 50


def own_rank():
    return int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])


def terminate_in_training(output):
    deadline = time.monotonic() + LIMIT_S
    log = Path(output, "events.jsonl")
    while time.monotonic() < deadline and not (log.exists() and '"iteration"' in log.read_text()):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    odd_rank, odd_case, case, *flags = sys.argv[1:]
    if os.environ.get("TERMINATE") == str(own_rank()):
        output = flags[flags.index("--output") + 1]
        threading.Thread(target=terminate_in_training, args=(output,), daemon=True).start()
    main(["run", odd_case if int(odd_rank) == own_rank() else case, "--plain", "--no-report", *flags])

"""Train for some CPU seconds, in ours or in cobre-python: a line of JSON for each iteration."""

import json
import os
import sys
import tempfile
from pathlib import Path

from process_memory import resident_bytes

import cobre
import cobre.run

request = json.loads(sys.argv[1])
overrides = {
    "simulation.enabled": False,
    "training.stopping_rules": [{"type": "iteration_limit", "limit": 100000}],
    "training.selection": {"method": "sampled", "forward_passes": request["forward_passes"]},
}


def cpu_seconds():
    """Return user and system seconds of this process since its start."""
    times = os.times()
    return times.user + times.system


def listen(event):
    """Print where training stands after an iteration; end the process once its CPU seconds are used up."""
    line = {
        "wall_s": event["wall_time_ms"] / 1000.0,
        "cpu_s": cpu_seconds(),
        "lower_bound": event["lower_bound"],
        "peak_bytes": resident_bytes("VmHWM"),
    }
    print(json.dumps(line), flush=True)
    if line["cpu_s"] >= request["cpu_s"]:
        os._exit(0)  # neither program can be stopped from a listener in the same way; nothing is kept


with tempfile.TemporaryDirectory(dir=Path(request["scratch"])) as folder:
    cobre.run.run(request["case"], folder + "/output", request["threads"], overrides, listen)

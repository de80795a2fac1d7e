"""One training run of cobre-python, in its own environment: the same request and answer as train_ours.py."""

import json
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # an isolated interpreter does not look beside its script

from process_memory import resident_bytes

import cobre


def main(request):
    baseline = resident_bytes()
    events, resident = [], []

    def listen(event):
        events.append(event)
        resident.append(resident_bytes())

    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        cobre.run.run(request["case"], folder, request["threads"], overrides(request), listen)
    wall_s = time.perf_counter() - begin
    elapsed = [event["wall_time_ms"] / 1000.0 for event in events]
    return {
        "training_s": elapsed[-1],
        "first_lower_bound": events[0]["lower_bound"],
        "lower_bound": events[-1]["lower_bound"],
        "upper_bound": events[-1]["upper_bound"],
        "elapsed_s": elapsed,
        "wall_s": wall_s,
        "baseline_bytes": baseline,
        "peak_bytes": resident_bytes("VmHWM"),
        "resident_bytes": resident,
        "version": version("cobre-python"),
    }


def overrides(request):
    chosen = {"simulation.enabled": False}
    if request["iterations"] is not None:
        chosen["training.stopping_rules"] = [{"type": "iteration_limit", "limit": request["iterations"]}]
    return chosen


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))

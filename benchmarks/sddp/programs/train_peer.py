"""One training run of cobre-python, in its own environment: the same request and answer as train_ours.py."""

import json
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # an isolated interpreter does not look beside its script

import pyarrow.parquet as pq
from process_memory import resident_bytes

import cobre


def main(request):
    baseline = resident_bytes()
    events, resident = [], []

    def listen(event):
        events.append(event)
        resident.append(resident_bytes())

    begin, cpu_begin = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        cobre.run.run(request["case"], folder, request["threads"], overrides(request), listen)
        wall_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu_begin
        counts = solver_counts(Path(folder))
    elapsed = [event["wall_time_ms"] / 1000.0 for event in events]
    return {
        "training_s": elapsed[-1],
        "first_lower_bound": events[0]["lower_bound"],
        "first_upper_bound": events[0]["upper_bound"],
        "lower_bound": events[-1]["lower_bound"],
        "upper_bound": events[-1]["upper_bound"],
        "elapsed_s": elapsed,
        "wall_s": wall_s,
        # The peer does not report CPU time of training: estimated by its share of the wall time.
        "cpu_s": cpu_s * elapsed[-1] / wall_s,
        "baseline_bytes": baseline,
        "peak_bytes": resident_bytes("VmHWM"),
        "resident_bytes": resident,
        "version": version("cobre-python"),
        **counts,
    }


def solver_counts(folder):
    """Return solves, pivots and solver seconds by iteration, from the peer's table."""
    rows = pq.read_table(folder / "training" / "solver" / "iterations.parquet").to_pylist()
    last = max(row["iteration"] for row in rows)
    solves, pivots, solver_s = [0] * last, [0] * last, [0.0] * last
    for row in rows:
        index = row["iteration"] - 1
        solves[index] += row["lp_solves"]
        pivots[index] += row["simplex_iterations"]
        solver_s[index] += row["solve_time_ms"] / 1000.0
    return {"solves": solves, "pivots": pivots, "solver_s": solver_s}


def overrides(request):
    chosen = {"simulation.enabled": False}
    if request["iterations"] is not None:
        chosen["training.stopping_rules"] = [{"type": "iteration_limit", "limit": request["iterations"]}]
    if request.get("forward_passes"):
        chosen["training.selection"] = {"method": "sampled", "forward_passes": request["forward_passes"]}
    return chosen


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))

"""One training run by workers, as a user's script would do it:

`train_workers.py '{"case": ..., "workers": 2, "threads": 1, "iterations": 20}'`.
"""

import json
import sys
import time
from typing import Any

from process_memory import resident_bytes

import cobre


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Train, and tell everything that the benchmark asks for; memory is this process's, not the workers'."""
    baseline = resident_bytes()
    begin = time.perf_counter()
    trained = cobre.train(
        request["case"],
        num_workers=request["workers"],
        backend="shm",
        threads=request["threads"],
        iterations=request["iterations"],
        config_overrides=chosen_passes(request.get("forward_passes")),
    )
    wall_s = time.perf_counter() - begin
    history = trained.history
    return {
        "training_s": history[-1].elapsed_s,
        "wall_s": wall_s,
        "first_lower_bound": history[0].lower_bound,
        "first_upper_bound": history[0].upper_bound,
        "lower_bound": history[-1].lower_bound,
        "upper_bound": history[-1].upper_bound,
        "elapsed_s": [record.elapsed_s for record in history],
        "baseline_bytes": baseline,
        "peak_bytes": resident_bytes("VmHWM"),
        "resident_bytes": [resident_bytes()],
        "solves": [record.solves for record in history],
        "pivots": [record.simplex_iterations for record in history],
        "digest": trained.digest,
        "version": cobre.__version__,
        "waiting_s": [worker.waiting_s for worker in trained.workers],
        "imbalance_s": [worker.imbalance_s for worker in trained.workers],
    }


def chosen_passes(count: int | None) -> dict[str, Any] | None:
    """Return the forward passes of an iteration if they are not those of the case."""
    return {"training.selection": {"method": "sampled", "forward_passes": count}} if count else None


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))

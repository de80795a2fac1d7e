"""Events as runs write them."""

import cobre

START = 1_800_000_000.0


def started(ranks=2, **facts):
    return {
        "event": "run_started",
        "time": START,
        "case": "my_case",
        "output": "out",
        "version": cobre.__version__,
        "host": "here",
        "pid": 1,
        "backend": "shm",
        "ranks": ranks,
        "threads": 1,
        "is_resumed": False,
    } | facts


def phase(name, **facts):
    return {"event": "phase", "time": START + 0.5, "name": name} | facts


def iteration(number, ranks=2, **facts):
    return {
        "event": "iteration",
        "time": START + 1.0 + number,
        "iteration": number,
        "lower_bound": 1e6 * (2.0 - 1.0 / number),
        "upper_bound": 2.1e6,
        "upper_bound_std": 1e4,
        "half_width": 9e3,
        "gap": 2.1 / (2.0 - 1.0 / number) - 1.0,
        "forward_passes": 4,
        "solves": 100,
        "simplex_iterations": 300,
        "cuts": 4 * number,
        "elapsed_s": float(number),
        "forward_s": 0.2,
        "backward_s": 0.6,
        "bound_s": 0.1,
        "exchange_s": 0.1,
        "solver_s": 0.5,
        "load": [[0.9, 0.1] for _ in range(ranks)],
    } | facts


def training(iterations, ranks=2):
    iteration_events = [iteration(number, ranks) for number in range(1, iterations + 1)]
    return [started(ranks), phase("building"), phase("training", iteration_limit=2 * iterations), *iteration_events]

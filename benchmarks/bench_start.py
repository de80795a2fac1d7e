"""Cost of starting: one worker, four, and 128 ranks; forked by a fork server, and each loading by itself.

    python benchmarks/bench_start.py [--rounds 5] [--ranks 128]

Rounds alternate between all of them, and the table shows medians. CPU time covers all processes of a start and hardly
depends on other load; wall time is meaningful only on a quiet machine, which the limits assume. Exit code 1 if a limit
is exceeded.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASE = Path(__file__).resolve().parents[1] / "examples" / "two_reservoirs"
BEYOND_ONE_S = 0.4
RANKS_S = 20.0
# Ranks load by themselves where something has started a thread in the process that they would be forked from.
THREAD_IN_TEMPLATE = """
import sys, threading, time
if any(word == "fork-server" for word in sys.orig_argv):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
"""
# Ranks that load by themselves on a busy machine may come later than a run would wait for them.
LONG_TIMEOUT = {"COBRE_SHM_CONNECT_TIMEOUT_SECS": "900"}
NOTHING = f"""
import sys
from cobre.comm import launch
launch.run(lambda comm: None, int(sys.argv[1]), environment={LONG_TIMEOUT})
"""


def measure(words, variables):
    """Return wall and CPU seconds of a command and its descendants."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, *map(str, words)], check=True, env=os.environ | LONG_TIMEOUT | variables, capture_output=True
    )
    wall_s = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def study(workers, folder):
    output = tempfile.mkdtemp(dir=folder)
    options = ["--workers", workers, "--iterations", 1, "--no-report", "--overwrite", "--output", output]
    return ["-m", "cobre.cli", "run", CASE, *options]


def rounds(count, ranks, folder):
    """Measure every kind of start `count` times, in turns; return wall and CPU times by name."""
    (Path(folder) / "sitecustomize.py").write_text(THREAD_IN_TEMPLATE)
    (Path(folder) / "nothing.py").write_text(NOTHING)
    without_fork_server = {"PYTHONPATH": os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))}
    starts = {
        "study, one worker": (lambda: study(1, folder), {}),
        "study, four workers": (lambda: study(4, folder), {}),
        "study, four workers, each loading by itself": (lambda: study(4, folder), without_fork_server),
        f"{ranks} ranks that do nothing": (lambda: [Path(folder) / "nothing.py", ranks], {}),
        f"{ranks} ranks, each loading by itself": (lambda: [Path(folder) / "nothing.py", ranks], without_fork_server),
        f"study, {ranks} workers": (lambda: study(ranks, folder), {}),
    }
    times = {name: [] for name in starts}
    measure(study(2, folder), {})  # fills caches, and keeps bytecode
    for _ in range(count):
        for name, (words, variables) in starts.items():
            times[name].append(measure(words(), variables))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=128)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        times = rounds(options.rounds, options.ranks, folder)
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in times.items()}
    print(f"{'':<46} {'wall s':>8} {'CPU s':>8}")
    for name, (wall_s, cpu_s) in medians.items():
        print(f"{name:<46} {wall_s:8.2f} {cpu_s:8.2f}")
    one = medians["study, one worker"]
    missed = []
    for name in ("study, four workers", "study, four workers, each loading by itself"):
        beyond = [four - single for four, single in zip(medians[name], one, strict=True)]
        print(f"{name.removeprefix('study, ') + ', beyond one':<46} {beyond[0]:8.2f} {beyond[1]:8.2f}")
        if name == "study, four workers" and beyond[0] > BEYOND_ONE_S:
            missed.append(f"four workers start within {BEYOND_ONE_S} s beyond one")
    if medians[f"{options.ranks} ranks that do nothing"][0] > RANKS_S:
        missed.append(f"{options.ranks} ranks start within {RANKS_S:g} s")
    for limit in missed:
        print(f"missed: {limit}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

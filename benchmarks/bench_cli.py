"""Cost of the command line: time of help and import, and the share of a training run that progress takes.

    python benchmarks/bench_cli.py [--case examples/four_regions] [--iterations 40]

Times of starting are the best of several, since other programs only add to them; the CPU time stands beside, which
they hardly change. Exit code 1 when a limit is missed.
"""

import argparse
import os
import pty
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from cobre.cli.run_output import LineProgress
from cobre.cli.run_table import LiveProgress
from cobre.study.placement import Placement, call_on_ranks
from cobre.study.requests import CaseRequest, RunRequest, with_iterations
from cobre.study.run import run_study

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
REPEATS = 15
LIMITS_MS = {"import cobre": 100.0, "cobre --help": 150.0}
LARGEST_SHARE = 0.01


def time_start(words):
    """Return wall and CPU time of starting a process, in ms: the minimum of several runs."""
    wall, cpu = [], []
    for _ in range(REPEATS):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        wall.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1e3 * min(wall), 1e3 * min(cpu)


class Timed:
    """A progress whose calls are timed, as the training sees them."""

    def __init__(self, progress):
        self.progress = progress
        self.telling_s = 0.0

    def emit(self, event):
        began = time.thread_time()
        self.progress.emit(event)
        self.telling_s += time.thread_time() - began

    @property
    def cost_s(self):
        return self.telling_s + getattr(self.progress, "drawing_s", 0.0)


def drained_terminal():
    """Return the slave end of a pseudo-terminal whose output a thread reads and discards."""
    master, slave = pty.openpty()

    def drain():
        try:
            while os.read(master, 65536):
                pass
        except OSError:
            return

    threading.Thread(target=drain, daemon=True).start()
    return os.fdopen(slave, "w", encoding="utf-8")


def time_display(progress, case, iterations):
    """Return CPU seconds spent on the display, and seconds of training."""
    timed = Timed(progress)
    with tempfile.TemporaryDirectory() as output:
        source = CaseRequest(case, with_iterations(None, iterations), 1)
        request = RunRequest(source, Path(output))
        summary = call_on_ranks(Placement("local", 1), run_study, (request,), timed.emit)[0]
    progress.close()
    return timed.cost_s, summary.training_seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", type=Path, default=EXAMPLES / "four_regions")
    parser.add_argument("--iterations", type=int, default=40)
    options = parser.parse_args()
    os.environ.setdefault("TERM", "xterm-256color")
    is_good = True
    for name, words in {
        "python": ["-c", "pass"],
        "import cobre": ["-c", "import cobre"],
        "cobre --help": ["-m", "cobre.cli", "--help"],
    }.items():
        wall_ms, cpu_ms = time_start(words)
        limit = LIMITS_MS.get(name)
        is_good &= limit is None or wall_ms < limit
        print(f"{name:<16} {wall_ms:7.1f} ms, of which {cpu_ms:6.1f} ms CPU" + (f" (limit {limit:g})" if limit else ""))
    for name, progress in {
        "live table": LiveProgress(drained_terminal()),
        "lines": LineProgress(drained_terminal()),
    }.items():
        cost_s, training_s = time_display(progress, options.case, options.iterations)
        is_good &= cost_s < LARGEST_SHARE * training_s
        share = 100 * cost_s / training_s
        print(f"{name:<16} {1e3 * cost_s:7.1f} ms CPU in {training_s:.2f} s of training: {share:.2f} %")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())

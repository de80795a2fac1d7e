"""Two workers beside one, beside two threads, and beside what two cores of this machine can do at all.

Five rounds in turns, kept in benchmarks/results: `python benchmarks/bench_workers.py` (or `make bench-workers`).
A part of it, printed only: `... --studies large --rounds 3 --print-only`.

The ceiling: one worker while the other core trains the same study for itself. The two share caches, memory and clock
rate and wait for nobody, so twice the time of one alone over this one's is what a second core is worth. A loop that
needs no memory tells whether the cores are hardware threads of one core.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from collectives.machine import describe_machine, restrict_to_cores
from collectives.report import table
from sddp.runs import PROGRAMS, Contender, Run, workers
from sddp.studies import STUDIES, Study

RESULTS = Path(__file__).resolve().parent / "results"
ITERATIONS = {"four_regions": 20, "large": 6, "deck-6x4": 2}
ROUNDS = 5
CORES = 2
PAUSE_S = 1.0
MIN_SPEED, MAX_BESIDE_THREADS = 1.9, 1.02
LOOP = "import time\nbegan = time.perf_counter()\nfor _ in range(20_000_000): pass\nprint(time.perf_counter() - began)"


@dataclass(slots=True)
class Times:
    """Times of one contender, by round: seconds of each iteration, and of the whole process."""

    iterations: list[list[float]]
    started: list[float]

    def add(self, run: Run, started: float) -> None:
        """Add a round."""
        self.iterations.append(run.iteration_s)
        self.started.append(started)

    @property
    def rounds(self) -> list[float]:
        """Seconds of training, by round."""
        return [sum(one) for one in self.iterations]

    @property
    def fastest(self) -> float:
        """Return the sum of the fastest times of each iteration: disturbances only add time."""
        return sum(map(min, zip(*self.iterations, strict=True)))


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ratios of two contenders' times, by their fastest iterations and round by round."""

    fastest: float
    rounds: list[float]

    @classmethod
    def between(cls, above: Times, below: Times, factor: float = 1.0) -> "Ratio":
        """Divide the time of one contender by that of another, for the best rounds and round by round."""
        pairs = zip(above.rounds, below.rounds, strict=True)
        return cls(factor * above.fastest / below.fastest, [factor * one / other for one, other in pairs])

    def __str__(self) -> str:
        return f"**{self.fastest:.2f}** ({min(self.rounds):.2f} to {max(self.rounds):.2f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and store."""
    options = parse(arguments)
    restrict_to_cores(CORES)
    if options.real_time:  # children inherit it
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    load = os.getloadavg()[0]
    loops = [two_loops() for _ in range(options.rounds)]
    names = [name for name in options.studies if STUDIES[name].is_here]
    by_study = {name: measure(STUDIES[name], options.rounds) for name in names}
    text = to_markdown(by_study, loops, load, is_real_time=options.real_time)
    print(f"\n{text}")
    if not options.print_only:
        (RESULTS / "workers.md").write_text(text)
        (RESULTS / "workers.json").write_text(json.dumps(to_json(by_study, loops, load), indent=1) + "\n")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="+", choices=ITERATIONS, default=tuple(ITERATIONS))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of every contender ({ROUNDS})")
    parser.add_argument("--print-only", action="store_true", help="store nothing")
    parser.add_argument("--real-time", action="store_true", help="before all other programs, where these are many")
    return parser.parse_args(arguments)


def two_loops() -> float:
    """Return the speed of two simultaneous loops relative to one: 2 if the cores share nothing.

    The loops use registers and the smallest cache only.
    """
    command = [sys.executable, "-c", LOOP]
    single_s = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return 4.0 * single_s / sum(float(process.communicate()[0]) for process in processes)


def measure(study: Study, rounds: int) -> dict[str, Times]:
    """Measure all contenders in turns; each round begins with another one."""
    contenders: dict[str, Callable[[], tuple[Run, float]]] = {
        "one": lambda: time_run(workers(1), study, 1),
        "two": lambda: time_run(workers(2), study, 1),
        "threads": lambda: time_run(workers(1), study, 2),
        "beside": lambda: time_beside(study),
    }
    times = {name: Times([], []) for name in contenders}
    time_run(workers(2), study, 1)  # files in the page cache, bytecode kept
    digests = set()
    for number in range(rounds):
        time.sleep(PAUSE_S)  # other programs have their turn, too
        shift = number % len(contenders)
        for name in [*contenders][shift:] + [*contenders][:shift]:
            run, started = contenders[name]()
            times[name].add(run, started)
            digests.add(run.digest)
        print(study.name, number + 1, {name: round(one.rounds[-1], 3) for name, one in times.items()}, flush=True)
    if len(digests) != 1:
        raise SystemExit(f"{study.name}: digests differ")
    return times


def time_run(contender: Contender, study: Study, threads: int) -> tuple[Run, float]:
    """Run a contender; return the run and the wall time of its process in seconds."""
    began = time.perf_counter()
    run = contender.run(study, threads, ITERATIONS[study.name])
    return run, time.perf_counter() - began


def time_beside(study: Study) -> tuple[Run, float]:
    """Run one worker while the other core trains the same study independently."""
    with busy_core(study):
        return time_run(workers(1), study, 1)


@contextmanager
def busy_core(study: Study) -> Iterator[None]:
    """Keep a core busy with a process that trains the same study repeatedly, until the block ends."""
    request = {"case": str(study.folder), "iterations": ITERATIONS[study.name], "forward_passes": study.forward_passes}
    command: list[str | Path] = [sys.executable, PROGRAMS / "train_again.py", json.dumps(request)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise SystemExit(f"{study.name}: the second training did not begin")
            yield
        finally:
            process.kill()


def to_markdown(
    by_study: dict[str, dict[str, Times]], loops: Sequence[float], load: float, *, is_real_time: bool
) -> str:
    """Return the results page as Markdown."""
    priority = ", real-time priority" if is_real_time else ""
    head = [
        "# Two workers on two cores",
        "",
        f"By `make bench-workers`, {datetime.now(UTC):%Y-%m-%d}; load at the start {load:.1f}{priority}.",
        "Ratios are of the least times: every iteration at its fastest of all rounds, for the work is the same in each",
        "and what disturbs it only adds; in brackets the lowest and the highest round. *Ceiling*: one worker while the",
        "other core trains the same study for itself, as two of it would be. Times are those of training, but for the",
        "last column: the whole process, with interpreter, case and results.",
        "",
        f"Two loops that need no memory, at once: {median(loops):.2f} times the speed of one (median of the rounds),",
        "which would be 2 on cores that are no hardware threads of one.",
        "",
    ]
    return "\n".join([*head, table(HEADS, [_row(name, times) for name, times in by_study.items()]), ""])


HEADS = (
    "study, iterations",
    "one worker, s",
    f"two workers, times the speed of one (goal {MIN_SPEED})",
    "ceiling",
    "of the ceiling",
    f"beside two threads, time (goal {MAX_BESIDE_THREADS})",
    "whole process, times the speed of one",
)


def _row(name: str, times: dict[str, Times]) -> list[str]:
    one, two, threads, beside = (times[key] for key in ("one", "two", "threads", "beside"))
    ratios = (
        Ratio.between(one, two),
        Ratio.between(one, beside, 2.0),
        Ratio.between(beside, two, 0.5),
        Ratio.between(two, threads),
    )
    started = f"{min(one.started) / min(two.started):.2f}"
    return [f"{name}, {ITERATIONS[name]}", f"{one.fastest:.2f}", *map(str, ratios), started]


def to_json(by_study: dict[str, dict[str, Times]], loops: Sequence[float], load: float) -> dict[str, Any]:
    """Return all rounds as JSON."""
    rounds = {
        study: {
            name: {"training_s": times.rounds, "least_s": times.fastest, "started_s": times.started}
            for name, times in by_contender.items()
        }
        for study, by_contender in by_study.items()
    }
    return {"machine": describe_machine(), "two_loops": list(loops), "load": load, "studies": rounds}


if __name__ == "__main__":
    sys.exit(main())

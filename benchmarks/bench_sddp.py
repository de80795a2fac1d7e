"""Training beside cobre-python, beside the same loop over highspy, and by several workers, interleaved in one run.

Three rounds, written to benchmarks/results: `python benchmarks/bench_sddp.py` (or `make bench-sddp`).
One short round, printed only: `... --quick`. A part of it: `... --studies 4ree,large --threads 1 --rounds 5`.
The sizes of production: `... --studies deck-2x1,deck-6x4,hydros-160,planes-100 --threads 1`; `--seed 7` draws others.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from collectives.environments import UnavailableError
from collectives.machine import describe_machine, restrict_to_cores
from sddp.figures import OURS, SHORT
from sddp.peer_environment import peer_environment
from sddp.report import Report
from sddp.results import Results
from sddp.runs import Contender, RunFailedError, highspy_loop, ours, peer, with_checkpoints, workers
from sddp.studies import STUDIES, Study

RESULTS = Path(__file__).resolve().parent / "results"
ROUNDS = 3
CORES = 2

Turn = tuple[Study, Contender, str, int, int]  # who trains what, under which name, threads, iterations


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; return 1 if a run of Cobre failed."""
    options = parse(arguments)
    restrict_to_cores(options.cores)
    machine = describe_machine()
    results = Results()
    studies = available_studies(options, results)
    contenders = [ours(), *find_peer(results)]
    failed = run_rounds(studies, contenders, options, results)
    report = Report(f"{datetime.now(UTC):%Y-%m-%d}", machine, studies, options.threads, options.rounds, results)
    print(f"\n{report.to_markdown()}")
    if options.output:
        write(report, options.output)
    return 1 if failed else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=study_names, default=tuple(STUDIES), help=f"of {', '.join(STUDIES)} (all)")
    parser.add_argument("--threads", type=integers, default=(1, 2), help="numbers of threads (1,2)")
    parser.add_argument("--rounds", type=int, help=f"turns of every contender ({ROUNDS}; quick: 1)")
    parser.add_argument("--cores", type=int, default=CORES, help=f"cores that all contenders share ({CORES})")
    parser.add_argument("--output", type=Path, help="where to keep results (benchmarks/results; quick: none)")
    parser.add_argument("--seed", type=int, default=1, help="of generated cases (1)")
    parser.add_argument("--quick", action="store_true", help="one round with an eighth of the iterations")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    options.output = options.output or (None if options.quick else RESULTS)
    return options


def study_names(text: str) -> tuple[str, ...]:
    """Split at commas."""
    chosen = tuple(part.strip() for part in text.split(",") if part.strip())
    if unknown := sorted(set(chosen) - set(STUDIES)):
        raise argparse.ArgumentTypeError(f"no such study: {', '.join(unknown)}; there are {', '.join(STUDIES)}")
    return chosen


def integers(text: str) -> tuple[int, ...]:
    """Split numbers at commas."""
    return tuple(int(part) for part in text.split(","))


def available_studies(options: argparse.Namespace, results: Results) -> list[Study]:
    """Return the studies whose folders exist or can be generated; report the missing ones."""
    studies = []
    for study in (STUDIES[name].with_seed(options.seed) for name in options.studies):
        study.make()
        if study.is_here:
            studies.append(study.shorter() if options.quick else study)
        else:
            report_missing(results, f"{study.name}: the case is not here (it belongs into {study.folder.parent})")
    return studies


def find_peer(results: Results) -> list[Contender]:
    """Return cobre-python as contender if an interpreter for it exists; its environment is created on first use."""
    try:
        environment = peer_environment()
        environment.ensure()
    except UnavailableError as error:
        report_missing(results, f"cobre-python: {error}")
        return []
    return [peer(environment.python)]


def run_rounds(
    studies: Sequence[Study], contenders: Sequence[Contender], options: argparse.Namespace, results: Results
) -> bool:
    """Interleave all contenders, so that disturbances affect all of them; return whether a run of Cobre failed."""
    failed = False
    for number in range(options.rounds):
        for study, contender, name, threads, iterations in turns(studies, contenders, options.threads, number):
            where = f"round {number + 1} of {options.rounds}: {study.name}, {name}, {threads} thread(s)"
            try:
                run = contender.run(study, threads, iterations)
            except RunFailedError as error:
                report_missing(results, f"{where}: {str(error).splitlines()[-1]}")
                failed = failed or contender.name.startswith(OURS + ",") or contender.name == OURS
            else:
                results.add(study.name, name, threads, run)
                print(f"{where}: {run.training_s:.2f} s, {run.lower_bound:.10g} $", flush=True)
    return failed


def turns(
    studies: Sequence[Study], contenders: Sequence[Contender], threads: Sequence[int], number: int
) -> Iterator[Turn]:
    """Yield the turns of a round, in an order that rotates from round to round."""
    shift = number % len(contenders)
    rotated = [*contenders[shift:], *contenders[:shift]]
    for study in studies:
        taking_part = [one for one in rotated if study.has_peer or one.name == OURS]
        for count in threads:
            yield from ((study, contender, contender.name, count, study.iterations) for contender in taking_part)
        others = [
            *(workers(count) for count in study.workers),
            *([with_checkpoints()] if study.has_checkpoints else []),
        ]
        for contender in others if number % 2 == 0 else reversed(others):
            yield study, contender, contender.name, 1, study.iterations
        if study.loop_iterations:
            short, loop = ours(), highspy_loop()
            pair = [(short, OURS + SHORT), (loop, loop.name)]
            for contender, name in pair if number % 2 == 0 else reversed(pair):
                yield study, contender, name, 1, study.loop_iterations


def report_missing(results: Results, what: str) -> None:
    """Print what was not measured, and list it in the report."""
    print(f"not measured: {what}", file=sys.stderr, flush=True)
    results.not_measured.append(what)


def write(report: Report, folder: Path) -> None:
    """Write the results as Markdown and JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sddp.json").write_text(json.dumps(report.to_json(), indent=1) + "\n")
    (folder / "sddp.md").write_text(report.to_markdown())
    print(f"written to {folder.name}/sddp.json and {folder.name}/sddp.md")


if __name__ == "__main__":
    sys.exit(main())

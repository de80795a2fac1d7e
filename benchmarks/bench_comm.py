"""Collectives of cobre.comm beside other libraries and beside plain copies, interleaved in one run.

Five rounds with 2 and 4 ranks, kept in benchmarks/results: `python benchmarks/bench_comm.py`.
One short round, printed only: `python benchmarks/bench_comm.py --quick`.
Another suite: `python benchmarks/bench_comm.py --suite net` (tcp beside gloo and plain sockets) or `--suite mpi`.
A part of it: `... --contenders shm,memcpy --ranks 2 --cases "barrier,broadcast 20 MB"`.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from collectives.contenders import CONTENDERS
from collectives.contenders.base import Contender, Entrant, Plan, WorldFailedError
from collectives.environments import UnavailableError
from collectives.machine import describe_machine, restrict_to_cores
from collectives.report import Report
from collectives.results import Failure, Results
from collectives.suites import SUITES
from collectives.targets import COMPARISONS
from collectives.timing import summarise

RESULTS = Path(__file__).resolve().parent / "results"
ROUNDS = 5
CORES = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and store; return 1 if one of our contenders failed."""
    options = parse(arguments)
    restrict_to_cores(options.cores)
    machine = describe_machine()
    results = Results()
    ready = prepare(options.contenders, results)
    plan = Plan(options.cases, options.quick)
    run_rounds(list(ready), options.ranks, options.rounds, plan, results)
    date, suite = f"{datetime.now(UTC):%Y-%m-%d}", SUITES[options.suite]
    report = Report(
        suite.command, date, machine, by_entrant(ready), plan.select(), options.ranks, options.rounds, results
    )
    print(f"\n{report.to_markdown()}")
    if options.output:
        write(report, options.output, suite.name)
    return 1 if ours_failed(results) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--suite", choices=SUITES, default="comm", help="what is measured together (comm)")
    parser.add_argument("--rounds", type=int, help=f"turns of every contender ({ROUNDS}; quick: 1)")
    parser.add_argument("--ranks", type=integers, default=(2, 4), help="sizes of the worlds (2,4)")
    choices = f"of {', '.join(CONTENDERS)} (the suite's)"
    parser.add_argument("--contenders", type=contender_names, help=choices)
    parser.add_argument("--cases", type=names, default=(), help="columns of the table (the suite's)")
    parser.add_argument("--cores", type=int, default=CORES, help=f"cores that all contenders share ({CORES})")
    parser.add_argument("--output", type=Path, help="folder for the results (benchmarks/results; quick: none)")
    parser.add_argument("--quick", action="store_true", help="one round with a third of the repetitions")
    options = parser.parse_args(arguments)
    suite = SUITES[options.suite]
    options.contenders = options.contenders or suite.contenders
    options.cases = options.cases or suite.cases
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    options.output = options.output or (None if options.quick else RESULTS)
    check_cases(parser, options.cases)
    return options


def check_cases(parser: argparse.ArgumentParser, cases: tuple[str, ...]) -> None:
    """Exit with an error if a case does not exist."""
    try:
        Plan(cases).select()
    except ValueError as error:
        parser.error(str(error))


def names(text: str) -> tuple[str, ...]:
    """Split at commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def integers(text: str) -> tuple[int, ...]:
    """Split numbers at commas."""
    return tuple(int(part) for part in names(text))


def contender_names(text: str) -> tuple[str, ...]:
    """Split names of contenders at commas."""
    selected = names(text)
    unknown = ", ".join(sorted(set(selected) - set(CONTENDERS)))
    if unknown:
        raise argparse.ArgumentTypeError(f"no such contender: {unknown}; there are {', '.join(CONTENDERS)}")
    return selected


def prepare(selected: Sequence[str], results: Results) -> dict[Contender, str]:
    """Prepare the contenders; return their versions. One that is not available is reported and left out."""
    versions = {}
    for contender in (CONTENDERS[name] for name in selected):
        try:
            versions[contender] = contender.prepare()
        except UnavailableError as error:
            needs = f" (needs {contender.needs})" if contender.needs else ""
            report_failure(results, Failure(contender.name, f"is not available here{needs}"), error)
    return versions


def by_entrant(versions: Mapping[Contender, str]) -> dict[Entrant, str]:
    """Return the version of each entrant, in the order of the table's rows."""
    return {entrant: version for contender, version in versions.items() for entrant in contender.entrants}


def run_rounds(
    contenders: Sequence[Contender], sizes: Sequence[int], rounds: int, plan: Plan, results: Results
) -> None:
    """Interleave all contenders, so that disturbances of the machine affect all of them."""
    for number in range(rounds):
        shift = number % max(1, len(contenders))
        for size in sizes:
            for contender in [*contenders[shift:], *contenders[:shift]]:  # rotate the order
                run_world(f"round {number + 1} of {rounds}", contender, size, plan, results)


def run_world(where: str, contender: Contender, size: int, plan: Plan, results: Results) -> None:
    """Run one contender in a world of this size."""
    begin = time.perf_counter()
    try:
        for entrant, by_rank in zip(contender.entrants, contender.run(size, plan), strict=True):
            results.add(size, entrant.name, summarise(by_rank))
    except WorldFailedError as error:
        report_failure(results, Failure(contender.name, f"failed with {size} ranks in {where}"), error)
    else:
        print(f"{where}: {contender.name}, {size} ranks, {time.perf_counter() - begin:.1f} s", flush=True)


def report_failure(results: Results, failure: Failure, error: Exception) -> None:
    """Print the full error, and add a short note to the report, which must not contain host names and paths."""
    print(f"{failure}: {error}", file=sys.stderr, flush=True)
    results.failures.append(failure)


def ours_failed(results: Results) -> bool:
    """Return whether one of our contenders is missing from the results."""
    ours = {comparison.ours for comparison in COMPARISONS}
    return any(failure.contender in ours for failure in results.failures)


def write(report: Report, folder: Path, name: str) -> None:
    """Write the results as Markdown and JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(report.to_json(), indent=1) + "\n")
    (folder / f"{name}.md").write_text(report.to_markdown())
    print(f"kept in {folder.name}/{name}.json and {folder.name}/{name}.md")


if __name__ == "__main__":
    sys.exit(main())

"""The conformance kit on the command line.

    python -m cobre.comm.testing --backend shm --ranks 1,2,4
    python -m cobre.comm.testing --backend shm --variant condvar --ranks 2 --case 'gather/*'
    python -m cobre.comm.testing --faults
    python -m cobre.comm.testing --backend shm --mutants --case 'mutants/*'

Exit code: 0 if all cells passed; 1 if one failed, or if a full run skipped one.
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from cobre.comm.factory import available_backends
from cobre.comm.testing import report
from cobre.comm.testing.case import Depth, all_cases
from cobre.comm.testing.faults.table import all_plans, run_plans
from cobre.comm.testing.harness import Setting, run_setting
from cobre.comm.testing.mutants.trial import SIZE as MUTANT_SIZE
from cobre.comm.testing.mutants.trial import run_control, run_trials
from cobre.comm.testing.profiles import Profile, Variant, profile
from cobre.comm.testing.report import Outcome, Result, bad

ALL_SIZES = (1, 2, 3, 4, 7)
QUICK_SIZES = (1, 2, 4)
FAULT_SIZES = (1, 2, 4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for, print the table of results, and return the exit code."""
    options = _parse(arguments)
    if options.list:
        _print(_catalogue())
        return 0
    logging.getLogger("cobre.comm").setLevel(logging.ERROR)  # no warnings: oversubscription is intended here
    begin = time.monotonic()
    results = list(_shown(_run(options)))
    _print(f"\n{report.table(results)}\n" if results else "no case matches")
    _print(report.skips(results), report.failures(results))
    _print(f"{len(results)} cells in {time.monotonic() - begin:.0f} s, {len(bad(results))} failed")
    if options.json:
        Path(options.json).write_text(json.dumps([result.to_json() for result in results], indent=1), encoding="utf-8")
    return 0 if _is_success(results, complete=not options.quick) else 1


def _is_success(results: Sequence[Result], *, complete: bool) -> bool:
    skipped = any(result.outcome is Outcome.SKIPPED for result in results)
    return bool(results) and not bad(results) and not (complete and skipped)


def _run(options: argparse.Namespace) -> Iterator[Result]:
    depth = Depth.QUICK if options.quick else Depth.FULL
    for found, variant in _variants(options):
        settings = [Setting(found, variant, size) for size in found.sizes(_sizes(options))]
        if options.faults:
            # Faults need ranks that are started one by one.
            if found.rank_environment is not None:
                yield from chain.from_iterable(run_plans(one, depth, options.case) for one in settings)
            continue
        yield from chain.from_iterable(run_setting(one, depth, options.case) for one in settings)
        if options.mutants and found.max_size is None:
            yield from run_control(Setting(found, variant, MUTANT_SIZE), options.case)
            yield from run_trials(Setting(found, variant, MUTANT_SIZE), options.case)


def _variants(options: argparse.Namespace) -> Iterator[tuple[Profile, Variant]]:
    for backend in options.backend or available_backends():
        found = profile(backend)
        yield from ((found, variant) for variant in found.variants if options.variant in (None, variant.name))


def _sizes(options: argparse.Namespace) -> Sequence[int]:
    default = FAULT_SIZES if options.faults else QUICK_SIZES if options.quick else ALL_SIZES
    return options.ranks or default


def _shown(results: Iterator[Result]) -> Iterator[Result]:
    """Print progress, and failures as they occur."""
    heading = ""
    for result in results:
        here = f"{result.cell.backend} {result.cell.variant} x{result.cell.size} {result.cell.group}"
        if here != heading:
            heading = here
            sys.stderr.write(f"\n{here} ")
        sys.stderr.write("." if result.outcome is Outcome.PASS else f"\n{result.outcome.value}: {result.cell.name}\n")
        sys.stderr.flush()
        yield result
    sys.stderr.write("\n")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m cobre.comm.testing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--backend", action="append", choices=available_backends(), help="default: all that are available"
    )
    parser.add_argument("--ranks", type=_ranks, help="numbers of ranks, such as 1,2,4")
    parser.add_argument(
        "--variant",
        "--wait",
        metavar="NAME",
        help="only this variant of the backend; for shm: futex, condvar or narrow (--wait is an older name)",
    )
    parser.add_argument("--quick", action="store_true", help="run a small part of the grid")
    parser.add_argument(
        "--case", default="*", metavar="PATTERN", help="run cases whose id, or id and parameters, match"
    )
    parser.add_argument("--list", action="store_true", help="list all cases and fault plans with their clauses")
    parser.add_argument("--json", metavar="FILE", help="also write all results to a file")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--faults", action="store_true", help="run the fault plans instead of the cases")
    kind.add_argument("--mutants", action="store_true", help="also check that the cases reject wrong communicators")
    return parser.parse_args(arguments)


def _catalogue() -> str:
    """Every case and fault plan, with the clauses that it checks and its description."""
    entries = [_entry(case.id, case.clauses, case.run) for case in all_cases().values()]
    return "\n".join(entries + [_entry(plan.id, plan.clauses, plan.run) for plan in all_plans().values()])


def _entry(identifier: str, clauses: Sequence[int], function: object) -> str:
    return f"{identifier:32} {','.join(map(str, clauses)):8} {(function.__doc__ or '').splitlines()[0]}"


def _ranks(text: str) -> list[int]:
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"expected numbers of ranks such as 1,2,4, got '{text}'")
    return sizes


def _print(*texts: str) -> None:
    for text in filter(None, texts):
        sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())

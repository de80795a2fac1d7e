"""The conformance kit on the command line.

    python -m cobre.comm.testing --backend shm --ranks 1,2,4
    python -m cobre.comm.testing --backend shm --variant condvar --ranks 2 --case 'gather/*'

Exit code: 0 if all cells passed; 1 if one failed, or if a full run skipped one.
"""

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from typing import Protocol

from cobre.comm.factory import available_backends
from cobre.comm.testing.case import Depth, all_cases
from cobre.comm.testing.harness import CellSetting, run_setting
from cobre.comm.testing.profiles import profile
from cobre.comm.testing.report import run_and_print

ALL_SIZES = (1, 2, 3, 4, 7)
QUICK_SIZES = (1, 2, 4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases that the command line selects, print the table of results, and return the exit code."""
    parser = command_line("python -m cobre.comm.testing", __doc__ or "")
    parser.add_argument("--list", action="store_true", help="list all cases with their clauses")
    options = parser.parse_args(arguments)
    if options.list:
        sys.stdout.write("".join(map(catalogue_line, all_cases().values())))
        return 0
    depth = Depth.QUICK if options.quick else Depth.FULL
    settings = selected_settings(options, QUICK_SIZES if options.quick else ALL_SIZES)
    results = (result for setting in settings for result in run_setting(setting, depth, options.case))
    return run_and_print(results, complete=not options.quick, json_file=options.json)


def command_line(program: str, description: str) -> argparse.ArgumentParser:
    """Return the parser of the options that select cells; programs with other cells use it, too."""
    # No warnings: oversubscription is intended in the kit.
    logging.getLogger("cobre.comm").setLevel(logging.ERROR)
    parser = argparse.ArgumentParser(
        prog=program, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--backend", action="append", choices=available_backends(), help="default: all that are available"
    )
    parser.add_argument("--ranks", type=_ranks, help="numbers of ranks, such as 1,2,4")
    parser.add_argument(
        "--variant", metavar="NAME", help="only this variant of the backend; for shm: futex, condvar or narrow"
    )
    parser.add_argument("--quick", action="store_true", help="run a small part of the grid")
    parser.add_argument(
        "--case", default="*", metavar="PATTERN", help="run cases whose id, or id and parameters, match"
    )
    parser.add_argument("--json", metavar="FILE", help="also write all results to a file")
    return parser


def selected_settings(options: argparse.Namespace, sizes: Sequence[int]) -> Iterator[CellSetting]:
    """Yield the settings that the options select. sizes: numbers of ranks if the options name none."""
    for backend in options.backend or available_backends():
        backend_profile = profile(backend)
        for variant in backend_profile.variants:
            if options.variant in (None, variant.name):
                yield from (
                    CellSetting(backend_profile, variant, size)
                    for size in backend_profile.sizes(options.ranks or sizes)
                )


class CatalogueEntry(Protocol):
    """A case, or a plan, as the catalogue shows it; the description is the docstring of `run`."""

    @property
    def id(self) -> str:
        """The id on the command line."""

    @property
    def clauses(self) -> tuple[int, ...]:
        """The numbers of the clauses of the contract that it checks."""

    @property
    def run(self) -> object:
        """The function."""


def catalogue_line(entry: CatalogueEntry) -> str:
    """Return the line of a case in the catalogue: id, clauses and description."""
    description = (entry.run.__doc__ or "").splitlines()[0]
    return f"{entry.id:32} {','.join(map(str, entry.clauses)):8} {description}\n"


def _ranks(text: str) -> list[int]:
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"expected numbers of ranks such as 1,2,4, got '{text}'")
    return sizes


if __name__ == "__main__":
    sys.exit(main())

"""One study, run in every possible way: prints the digest of each, and `one digest` if all are equal.

    python tests/determinism/matrix.py [--without-mpi] [--quick] [--keep FOLDER]

The digest is over both bounds of every iteration, the bytes of the policy file and all simulated tables.
"""

import argparse
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from cells import QUICK, WHOLE, CellFailedError
from studies import QUICK_CASE, SLOW_CASE, content_digest, small_copy

from cobre.io.output.results import software_versions
from cobre.runs.bit_comparison import compare_runs

ITERATIONS = ("--iterations", "8")
SELECTION = {"selection": {"method": "level1", "check_frequency": 3}}


@dataclass(frozen=True)
class Outcome:
    """A digest, or the error."""

    digest: str | None
    remark: str = ""


def main() -> int:
    options = parse()
    cells = [cell for cell in (QUICK if options.quick else WHOLE) if not (options.without_mpi and cell.needs)]
    print(", ".join(f"{name} {version}" for name, version in software_versions().items()))
    with folder_for_outputs(options.keep) as folder:
        studies = (
            ("two reservoirs", QUICK_CASE, ()),
            ("four regions", SLOW_CASE, ITERATIONS),
            ("four regions, cuts selected", small_copy(SLOW_CASE, folder, cut_selection=SELECTION), ITERATIONS),
        )
        passed = [study_has_one_digest(title, case, flags, cells, folder) for title, case, flags in studies]
    print("\none digest" if all(passed) else "\nNOT one digest")
    return 0 if all(passed) else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-mpi", action="store_true", help="leave out the cells that need an MPI")
    parser.add_argument("--quick", action="store_true", help="the cells of `make test` only")
    parser.add_argument("--keep", type=Path, help="leave the output directories here")
    return parser.parse_args()


@contextmanager
def folder_for_outputs(folder: Path | None):
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="cobre-determinism-") as temporary:
        yield Path(temporary)


def study_has_one_digest(title, case, flags, cells, folder) -> bool:
    """Run all cells, and compare each with the first."""
    print(f"\n{title} {' '.join(flags)}")
    reference = None
    outcomes = []
    for number, cell in enumerate(cells):
        output = folder / title.replace(" ", "-") / f"{number:02d}"
        began = time.monotonic()
        outcome = outcome_of(cell, case, output, flags, reference)
        outcomes.append(outcome)
        reference = reference or output
        print(
            f"  {cell.name:<40} {time.monotonic() - began:6.1f} s  {outcome.digest or '-'}{outcome.remark}", flush=True
        )
    digests = {outcome.digest for outcome in outcomes}
    return len(digests) == 1 and None not in digests


def outcome_of(cell, case, output, flags, reference) -> Outcome:
    if not cell.is_available():
        return Outcome(None, f"not available: `make mpi-environments` makes .venv-{cell.needs}")
    try:
        cell.run(case, output, flags)
    except (CellFailedError, AssertionError) as error:
        return Outcome(None, str(error))
    if reference is None:
        return Outcome(content_digest(output))
    comparison = compare_runs(reference, output)
    remark = "" if comparison.is_identical else f"\n    {comparison.difference}"
    return Outcome(comparison.digests[1], remark)


if __name__ == "__main__":
    sys.exit(main())

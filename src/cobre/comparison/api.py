"""`cobre.compare`: load two studies, match their stages and entities, compare bits and means."""

from pathlib import Path
from typing import TYPE_CHECKING

from cobre.comparison.money import Money, compare_money
from cobre.comparison.result import StudyComparison
from cobre.comparison.runs import ComparedRun, NotComparableError
from cobre.io.output import ResultsError
from cobre.runs.bit_comparison import compare_runs
from cobre.runs.content import IncompleteRunError
from cobre.runs.files import MANIFEST_FILE, SIMULATION

if TYPE_CHECKING:
    from cobre.study.results.script_results import SimulationResult


def compare(a: "str | Path | SimulationResult", b: "str | Path | SimulationResult") -> StudyComparison:
    """Compare study A with study B: whether bits are equal, and how costs, generation, storages and prices differ.

    a, b: output directories of runs, or two results of `cobre.simulate`. The studies may differ in plants, buses and
    stages: what both have is compared scenario by scenario, and what only one has is listed. Tables are read row group
    by row group, so that memory does not grow with the number of scenarios.

    >>> policies = [cobre.train("examples/two_reservoirs", iterations=n).policy for n in (1, 5)]
    >>> few, more = (cobre.simulate("examples/two_reservoirs", policy, scenarios=50) for policy in policies)
    >>> compared = cobre.compare(few, more)
    >>> [name for name in compared.summary.column_names if name in ("a", "b", "difference", "half_width")]
    ['a', 'b', 'difference', 'half_width']

    Raises IncompleteRunError for a directory without complete results, and NotComparableError where the two have no
    stage or scenario in common.
    """
    if isinstance(a, str | Path) and isinstance(b, str | Path):
        return compare_folders(Path(a), Path(b))
    if isinstance(a, str | Path) or isinstance(b, str | Path):
        raise TypeError("compare two output directories, or two results of cobre.simulate, not one of each")
    runs = [ComparedRun.in_memory(result, name) for result, name in ((a, "A"), (b, "B"))]
    money = compare_money(*runs)
    return StudyComparison(("A", "B"), None, money, money.notes)


def compare_folders(a: Path, b: Path) -> StudyComparison:
    """Compare the output directories of two runs: bits, and means where both have simulated."""
    bits = compare_runs(a, b)
    try:
        runs = [ComparedRun.stored(folder) for folder in (a, b)]
        money: Money | None = compare_money(*runs)
        notes = money.notes if money else ()
    except NotComparableError as error:
        money, notes = None, (str(error),)
    except ResultsError as error:
        if all((folder / SIMULATION / MANIFEST_FILE).exists() for folder in (a, b)):
            raise IncompleteRunError(str(error)) from error
        missing = [str(folder) for folder in (a, b) if not (folder / SIMULATION / MANIFEST_FILE).exists()]
        money, notes = None, (f"{' and '.join(missing)}: no simulation, so there is nothing to compare in money",)
    return StudyComparison((str(a), str(b)), bits, money, notes)

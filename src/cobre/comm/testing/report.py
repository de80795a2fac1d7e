"""Formats results as a table."""

from collections import Counter
from collections.abc import Iterable, Sequence

from cobre.comm.testing.results import Outcome, Result, bad

MARKS = {Outcome.PASS: "", Outcome.FAIL: "FAILED", Outcome.ERROR: "ERROR", Outcome.SKIPPED: "skipped"}


def table(results: Sequence[Result]) -> str:
    """One line per group of cases, one column per backend, variant and number of ranks."""
    columns = list(dict.fromkeys(_column(result) for result in results))
    groups = list(dict.fromkeys(result.cell.group for result in results))
    rows = [["", *columns]]
    rows += [[group, *(_square(_of(results, group, column)) for column in columns)] for group in groups]
    rows.append(["all", *(_square([result for result in results if _column(result) == column]) for column in columns)])
    return _aligned(rows)


def failures(results: Iterable[Result]) -> str:
    """The failures, each with the command that reproduces it."""
    return "\n\n".join(
        f"{MARKS[result.outcome]} {result.cell.name} ({_column(result)})\n"
        f"{_indented(result.message)}\n    reproduce: {result.cell.command}"
        for result in bad(results)
    )


def skips(results: Iterable[Result]) -> str:
    """The cells that were skipped, and why."""
    return "\n".join(
        f"skipped {result.cell.name} ({_column(result)}): {result.message}"
        for result in results
        if result.outcome is Outcome.SKIPPED
    )


def _column(result: Result) -> str:
    cell = result.cell
    return " ".join(filter(None, (cell.backend, cell.variant, f"x{cell.size}")))


def _of(results: Sequence[Result], group: str, column: str) -> list[Result]:
    return [result for result in results if result.cell.group == group and _column(result) == column]


def _square(results: Sequence[Result]) -> str:
    """The number of cells that passed, and the numbers of other outcomes by name."""
    outcomes = Counter(result.outcome for result in results)
    others = [f"{outcomes[outcome]} {mark}" for outcome, mark in MARKS.items() if mark and outcomes[outcome]]
    return ", ".join([f"{outcomes[Outcome.PASS]}", *others]) if results else "-"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    )


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines()[:60])

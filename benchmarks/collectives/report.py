"""Results as JSON and as a Markdown page."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from collectives.cases import Case
from collectives.contenders.base import Entrant
from collectives.results import Results, Spread, Standing
from collectives.targets import COMPARISONS, MICROSECONDS, Comparison, Measure


@dataclass(frozen=True, slots=True)
class Report:
    """Content of the two result files. command: the make target. versions: by entrant."""

    command: str
    date: str
    machine: dict[str, str]
    versions: dict[Entrant, str]
    cases: tuple[Case, ...]
    sizes: tuple[int, ...]
    rounds: int
    results: Results

    def to_json(self) -> dict[str, Any]:
        """Return the raw values of every round and the comparisons, for JSON."""
        return {
            "date": self.date,
            "machine": self.machine,
            "contenders": [asdict(one) | {"version": version} for one, version in self.versions.items()],
            "cases": [asdict(case) | {"bytes": case.nbytes} for case in self.cases],
            "rounds": self.rounds,
            "seconds": {str(size): self.results.rounds.get(size, {}) for size in self.sizes},
            "comparisons": [self._comparison_to_json(comparison) for comparison in self._comparisons()],
            "failures": [asdict(failure) for failure in self.results.failures],
        }

    def to_markdown(self) -> str:
        """Return the page: machine, contenders, and for each number of ranks tables of times and comparisons."""
        parts = [self._head(), *(self._section(size) for size in self.sizes), self._notes()]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _comparisons(self) -> list[Comparison]:
        present = {entrant.name for entrant in self.versions}
        return [comparison for comparison in COMPARISONS if comparison.ours in present]

    def _comparison_to_json(self, comparison: Comparison) -> dict[str, Any]:
        values = {
            str(size): {
                case.name: asdict(standing) | {"met": standing.met}
                for case in self.cases
                if (standing := self.results.compare(size, comparison, case))
            }
            for size in self.sizes
        }
        return {"title": comparison.title, "measure": comparison.measure, "values": values}

    def _head(self) -> str:
        facts = ", ".join(f"{name}: {value}" for name, value in self.machine.items())
        return (
            f"# Collectives, side by side\n\nMeasured {self.date} by `{self.command}`; {facts}.\n\n"
            f"All contenders take turns, {self.rounds} round(s). Of every repetition the slowest rank "
            "counts, of a round the median repetition; shown is the median round (best-worst round), in "
            "microseconds per call. Counts of allgatherv are ragged (80 to 120 % of the mean)."
        )

    def _section(self, size: int) -> str:
        cores = self.machine["cores"]
        return f"## {size} ranks on {cores} cores\n\n{self._times(size)}\n\n{self._standings(size)}".rstrip()

    def _times(self, size: int) -> str:
        spread = self.results.spread
        rows = [
            [one.title, *(show_time(spread(size, one.name, case.name)) for case in self.cases)] for one in self.versions
        ]
        return table(["us", *(case.name for case in self.cases)], rows)

    def _standings(self, size: int) -> str:
        rows = [row for comparison in self._comparisons() for row in self._rows(size, comparison)]
        return table(["comparison (range of rounds)", *(case.name for case in self.cases)], rows) if rows else ""

    def _rows(self, size: int, comparison: Comparison) -> list[list[str]]:
        standings = [self.results.compare(size, comparison, case) for case in self.cases]
        if not any(standings):
            return []
        unit = ", us" if comparison.measure is Measure.DIFFERENCE else ""
        rows = [[comparison.title + unit, *map(show_standing, standings)]]
        if comparison.targets.get(size):
            rows += [["target", *map(show_target, standings)], ["reached", *map(show_outcome, standings)]]
        if len(comparison.others) > 1:
            rows.append(["the better one", *(standing.better if standing else "" for standing in standings)])
        return rows

    def _notes(self) -> str:
        lines = [f"- {one.title}: {version}. Settings: {one.settings}." for one, version in self.versions.items()]
        lines += [f"- Not measured: {failure}" for failure in self.results.failures]
        return "## Contenders\n\n" + "\n".join(lines)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def show_time(spread: Spread | None) -> str:
    """Format microseconds with the spread of the rounds."""
    if spread is None:
        return ""
    low, middle, high = (show_number(seconds * MICROSECONDS) for seconds in (spread.low, spread.median, spread.high))
    return middle if low == high else f"{middle} ({low}-{high})"


def show_standing(standing: Standing | None) -> str:
    """Format the ratio or difference, and its range over the rounds."""
    if standing is None:
        return ""
    digits = 3 if 0.9 < standing.value < 1.1 else 2  # near one a percent matters
    value, low, high = (f"{number:.{digits}f}" for number in (standing.value, standing.low, standing.high))
    return f"**{value}**" if low == high else f"**{value}** ({low} to {high})"


def show_target(standing: Standing | None) -> str:
    """Format the target value; empty if there is none."""
    return f"{standing.target}" if standing and standing.target is not None else ""


def show_outcome(standing: Standing | None) -> str:
    """Format whether the target was reached; empty if there is none."""
    if standing is None or standing.target is None:
        return ""
    return "yes" if standing.met else "no"


def show_number(value: float) -> str:
    """Format with about three digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"

"""The results as JSON for programs and as markdown for people."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from collectives.cases import Case
from collectives.results import Ratio, Results, Spread
from collectives.targets import COMPARISONS, Comparison

MICROSECONDS = 1e6


@dataclass(frozen=True, slots=True)
class Entrant:
    """A contender that took part."""

    name: str
    title: str
    version: str
    settings: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that goes into the two files."""

    date: str
    machine: dict[str, str]
    entrants: tuple[Entrant, ...]
    cases: tuple[Case, ...]
    sizes: tuple[int, ...]
    rounds: int
    results: Results

    def to_json(self) -> dict[str, Any]:
        """The raw value of every round, and the ratios."""
        return {
            "date": self.date,
            "machine": self.machine,
            "contenders": [asdict(entrant) for entrant in self.entrants],
            "cases": [asdict(case) | {"bytes": case.nbytes} for case in self.cases],
            "rounds": self.rounds,
            "seconds": {str(size): self.results.rounds.get(size, {}) for size in self.sizes},
            "comparisons": [self._comparison_to_json(comparison) for comparison in COMPARISONS],
            "failures": [asdict(failure) for failure in self.results.failures],
        }

    def to_markdown(self) -> str:
        """One page: machine, contenders, a table of times and one of ratios per number of ranks."""
        parts = [self._head(), *(self._section(size) for size in self.sizes), self._notes()]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _comparison_to_json(self, comparison: Comparison) -> dict[str, Any]:
        ratios = {
            str(size): {
                case.name: asdict(ratio) | {"met": ratio.met}
                for case in self.cases
                if (ratio := self.results.ratio(size, comparison, case))
            }
            for size in self.sizes
        }
        return {"title": comparison.title, "ratios": ratios}

    def _head(self) -> str:
        facts = ", ".join(f"{name}: {value}" for name, value in self.machine.items())
        return (
            f"# Collectives, side by side\n\nMeasured {self.date} by `make bench-comm`; {facts}.\n\n"
            f"All contenders take turns, {self.rounds} round(s). Of every repetition the slowest rank "
            "counts, of a round the median repetition; shown is the median round (best-worst round), in "
            "microseconds per call. Counts of allgatherv are ragged (80 to 120 % of the mean)."
        )

    def _section(self, size: int) -> str:
        cores = self.machine["cores"]
        return f"## {size} ranks on {cores} cores\n\n{self._times(size)}\n\n{self._ratios(size)}".rstrip()

    def _times(self, size: int) -> str:
        spread = self.results.spread
        rows = [
            [one.title, *(show_time(spread(size, one.name, case.name)) for case in self.cases)] for one in self.entrants
        ]
        return table(["us", *(case.name for case in self.cases)], rows)

    def _ratios(self, size: int) -> str:
        rows = [row for comparison in COMPARISONS for row in self._ratio_rows(size, comparison)]
        return table(["ratio (range of rounds)", *(case.name for case in self.cases)], rows) if rows else ""

    def _ratio_rows(self, size: int, comparison: Comparison) -> list[list[str]]:
        ratios = [self.results.ratio(size, comparison, case) for case in self.cases]
        if not any(ratios):
            return []
        rows = [[comparison.title, *map(show_ratio, ratios)]]
        if comparison.targets.get(size):
            rows += [["target", *map(show_target, ratios)], ["reached", *map(show_met, ratios)]]
        if len(comparison.others) > 1:
            rows.append(["the better one", *(ratio.better if ratio else "" for ratio in ratios)])
        return rows

    def _notes(self) -> str:
        lines = [f"- {one.title}: {one.version}. Settings: {one.settings}." for one in self.entrants]
        lines += [f"- Not measured: {failure}" for failure in self.results.failures]
        return "## Contenders\n\n" + "\n".join(lines)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def show_time(spread: Spread | None) -> str:
    """Microseconds with the spread of the rounds."""
    if spread is None:
        return ""
    low, middle, high = (show_number(seconds * MICROSECONDS) for seconds in (spread.low, spread.median, spread.high))
    return middle if low == high else f"{middle} ({low}-{high})"


def show_ratio(ratio: Ratio | None) -> str:
    """The ratio and its range over the rounds."""
    if ratio is None:
        return ""
    spread = "" if ratio.low == ratio.high else f" ({ratio.low:.2f}-{ratio.high:.2f})"
    return f"**{ratio.value:.2f}**{spread}"


def show_target(ratio: Ratio | None) -> str:
    """The ratio to reach."""
    return f"{ratio.target}" if ratio and ratio.target is not None else ""


def show_met(ratio: Ratio | None) -> str:
    """Whether it was reached."""
    if ratio is None or ratio.target is None:
        return ""
    return "yes" if ratio.met else "no"


def show_number(value: float) -> str:
    """About three digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"

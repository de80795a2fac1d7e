"""All runs of a benchmark, by study, contender and number of threads."""

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

from sddp.runs import Run

Key = tuple[str, str, int]  # study, contender, threads


@dataclass(frozen=True, slots=True)
class Spread:
    """A median over the rounds, and the lowest and highest round."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """Summarise one value per round."""
        return cls(median(values), min(values), max(values))


@dataclass(slots=True)
class Results:
    """All runs of a benchmark."""

    runs: dict[Key, list[Run]] = field(default_factory=lambda: defaultdict(list))
    not_measured: list[str] = field(default_factory=list)

    def add(self, study: str, contender: str, threads: int, run: Run) -> None:
        """Add a run."""
        self.runs[study, contender, threads].append(run)

    def of(self, study: str, contender: str, threads: int = 1) -> list[Run]:
        """Return one run per round; empty if nothing was measured."""
        return self.runs.get((study, contender, threads), [])

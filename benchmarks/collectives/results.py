"""Results: seconds by number of ranks, contender, case and round, and how they compare."""

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

from collectives.cases import Case
from collectives.targets import Comparison, Measure


@dataclass(frozen=True, slots=True)
class Spread:
    """A median over the rounds, and the best and the worst round."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """Summarise one value per round."""
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Standing:
    """Comparison of ours with the best competitor. value: ratio or difference. better: name of that competitor."""

    value: float
    low: float
    high: float
    better: str
    target: float | None

    @property
    def met(self) -> bool:
        """Whether the target was reached; true if there is none."""
        return self.target is None or self.value <= self.target


@dataclass(frozen=True, slots=True)
class Failure:
    """Contenders that could not be measured, and why."""

    contender: str
    reason: str

    def __str__(self) -> str:
        return f"{self.contender} {self.reason}"


def _rounds() -> dict[int, dict[str, dict[str, list[float]]]]:
    return defaultdict(lambda: defaultdict(lambda: defaultdict(list)))


@dataclass(slots=True)
class Results:
    """Results of all worlds measured so far."""

    rounds: dict[int, dict[str, dict[str, list[float]]]] = field(default_factory=_rounds)
    failures: list[Failure] = field(default_factory=list)

    def add(self, size: int, contender: str, seconds: dict[str, float]) -> None:
        """Add one round of one contender."""
        for case, value in seconds.items():
            self.rounds[size][contender][case].append(value)

    def values(self, size: int, contender: str, case: str) -> list[float]:
        """Return one value per round; empty if nothing was measured."""
        return self.rounds.get(size, {}).get(contender, {}).get(case, [])

    def spread(self, size: int, contender: str, case: str) -> Spread | None:
        """Summarise one cell of the table."""
        values = self.values(size, contender, case)
        return Spread.of(values) if values else None

    def compare(self, size: int, comparison: Comparison, case: Case) -> Standing | None:
        """Compare ours with the best of the others by medians; low and high are the extremes over rounds."""
        ours = self.values(size, comparison.ours, case.name) if comparison.covers(case.name) else []
        others = {name: values for name in comparison.others if (values := self._baseline(size, name, case))}
        if not ours or not others:
            return None
        better = min(others, key=lambda name: median(others[name]))
        value = comparison.measure.of(median(ours), median(others[better]))
        by_round = compare_rounds(comparison.measure, ours, list(others.values())) or [value]
        target = comparison.targets.get(size, {}).get(case.name)
        return Standing(value, min(by_round), max(by_round), better, target)

    def _baseline(self, size: int, contender: str, case: Case) -> list[float]:
        return self.values(size, contender, case.name) or self.values(size, contender, case.compared_with)


def compare_rounds(measure: Measure, ours: list[float], others: list[list[float]]) -> list[float]:
    """Compare ours with the best other round by round; empty if one of them missed a round."""
    if any(len(values) != len(ours) for values in others):
        return []
    return [measure.of(own, min(rest)) for own, *rest in zip(ours, *others, strict=True)]

"""Crafted cases once more, as plain loops over all scenarios: what inflows follow from noise, and what a policy costs.

Nothing of the package is used. Lags are means of seasons, put together day by day.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from crafted_case import CraftedCase, Period

SeasonOf = Callable[[date], tuple[date, date]]  # the days of the season that a day belongs to


def days(start: str, end: str) -> list[date]:
    first = date.fromisoformat(start)
    return [first + timedelta(days=n) for n in range((date.fromisoformat(end) - first).days)]


def month_of(day: date) -> tuple[date, date]:
    return day.replace(day=1), (day.replace(day=28) + timedelta(days=4)).replace(day=1)


def quarter_of(day: date) -> tuple[date, date]:
    first = 3 * ((day.month - 1) // 3) + 1
    return date(day.year, first, 1), date(day.year + first // 10, (first + 2) % 12 + 1, 1)


def week_of(day: date) -> tuple[date, date]:
    year, week, _ = day.isocalendar()
    first = date.fromisocalendar(year, min(week, 52), 1)
    return first, first + timedelta(days=7) if week < 52 else date.fromisocalendar(year + 1, 1, 1)


@dataclass(frozen=True)
class Remembered:
    """A stage's own season and the day that tells it; resolution by stage."""

    case: CraftedCase
    season_of: Sequence[SeasonOf]  # by stage
    told_by: Sequence[date]  # by stage: a day of its season

    def own(self, stage: int) -> tuple[date, date]:
        return self.season_of[stage](self.told_by[stage])

    def lag(self, stage: int, lag: int, inflows: Sequence[float]) -> float:
        """The mean of a season before the stage's own, over the days that are known when it is first read."""
        first, end = self.own(stage)
        for _ in range(lag):
            first, end = self.season_of[stage](first - timedelta(days=1))
        reader = next(
            t
            for t in range(len(self.case.periods))
            if self.season_of[t] is self.season_of[stage] and self.own(t)[0] > first
        )
        total, count = 0.0, 0
        for value, known in self._known(inflows[:reader]):
            inside = sum(first <= day < end for day in known)
            total, count = total + value * inside, count + inside
        return total / count

    def _known(self, inflows: Sequence[float]) -> list[tuple[float, list[date]]]:
        stages = [(value, days(p.start, p.end)) for value, p in zip(inflows, self.case.periods, strict=False)]
        start = date.fromisoformat(self.case.periods[0].start)
        observed = [(row[3], [day for day in days(row[1], row[2]) if day < start]) for row in self.case.observed]
        return observed + stages

    def inflow(self, stage: int, innovation: float, inflows: Sequence[float], before: dict[int, tuple[float, float]]):
        """Mean, plus what the lags deviate from theirs, plus the innovation (m3/s). `before`: statistics of lags."""
        mean, deviation = self.case.inflow[0, stage]
        total = mean + innovation
        for (_, at, lag), phi in self.case.memory.items():
            if at == stage:
                lag_mean, lag_deviation = before[lag]
                total += phi * deviation / lag_deviation * (self.lag(stage, lag, inflows) - lag_mean)
        return total


def hours(period: Period) -> float:
    return period.all_hours

"""The days of a season: months, ISO weeks, or dates of one's own."""

from abc import ABC, abstractmethod
from datetime import date, timedelta

from cobre.core.temporal import Season, SeasonDefinitions
from cobre.records import dataclass

LAST_WEEK = 52  # the 53rd week of a long year belongs to it
FEBRUARY, LAST_OF_FEBRUARY, DECEMBER = 2, 28, 12
ORDINARY_YEAR = 2023  # lengths are those of a year that is not a leap year


class SeasonDays(ABC):
    """The days of a season in each year."""

    @abstractmethod
    def of_year(self, year: int) -> tuple[date, date]:
        """First day, and first day after it, of the season that starts in a year (of weeks: the ISO year)."""

    @property
    def start(self) -> tuple[int, int]:
        """Month and day of the beginning in an ordinary year."""
        first = self.of_year(ORDINARY_YEAR)[0]
        return first.month, first.day

    @property
    def length(self) -> int:
        """Days of the season in an ordinary year."""
        first, end = self.of_year(ORDINARY_YEAR)
        return (end - first).days

    def overlaps(self, other: "SeasonDays") -> bool:
        """Whether two seasons have a day in common."""
        first, end = self.of_year(ORDINARY_YEAR)
        others = (other.of_year(year) for year in range(ORDINARY_YEAR - 1, ORDINARY_YEAR + 2))
        return any(first < other_end and other_first < end for other_first, other_end in others)


@dataclass(frozen=True, slots=True)
class MonthDays(SeasonDays):
    """From the first of a month until the next season begins."""

    month: int

    def of_year(self, year: int) -> tuple[date, date]:
        """From the first of the month, for at most a year."""
        return date(year, self.month, 1), date(year + 1, self.month, 1)


@dataclass(frozen=True, slots=True)
class WeekDays(SeasonDays):
    """An ISO 8601 week, from Monday to Sunday."""

    week: int

    def of_year(self, year: int) -> tuple[date, date]:
        """The last week has fourteen days in a year of 53."""
        first = date.fromisocalendar(year, self.week, 1)
        end = date.fromisocalendar(year + 1, 1, 1) if self.week == LAST_WEEK else first + timedelta(days=7)
        return first, end


@dataclass(frozen=True, slots=True)
class DatedDays(SeasonDays):
    """From one day of the year to another. What ends with February has the 29th, too."""

    first: tuple[int, int]
    last: tuple[int, int]

    def of_year(self, year: int) -> tuple[date, date]:
        """A season that ends before it begins ends in the next year."""
        later = year + (self.last < self.first)
        return date(year, *self.first), _day_after(later, *self.last)


def _day_after(year: int, month: int, day: int) -> date:
    """Days that a month does not have count as its last."""
    following = date(year + (month == DECEMBER), month % DECEMBER + 1, 1)
    length = (following - date(year, month, 1)).days
    ends_month = day >= length or (month == FEBRUARY and day >= LAST_OF_FEBRUARY)
    return following if ends_month else date(year, month, day + 1)


def season_days(definitions: SeasonDefinitions, season: Season) -> SeasonDays:
    """The days of a season; its end matters in custom cycles alone."""
    if definitions.cycle_type == "monthly":
        return MonthDays(season.month_start)
    if definitions.cycle_type == "weekly":
        return WeekDays(min(season.id + 1, LAST_WEEK))
    first = (season.month_start, season.day_start or 1)
    return DatedDays(first, (season.month_end or season.month_start, season.day_end or 31))

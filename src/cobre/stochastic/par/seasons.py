"""The seasons of a year: their distances in a cycle, and the days of each occurrence.

Seasons follow one another in a cycle. A calendar may have several cycles over the same days, such as months and
quarters; the season of a stage determines its cycle. Positions number all seasons, cycle by cycle.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise

from cobre.core.arrays import MONTHS_PER_YEAR
from cobre.core.file_names import STAGES_FILE
from cobre.core.temporal import Horizon, Season, SeasonDefinitions, Stage
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError

# The days of a season: months, ISO weeks, or dates of one's own.

LAST_WEEK = 52  # the 53rd week of a long year belongs to it
FEBRUARY, LAST_OF_FEBRUARY, DECEMBER = 2, 28, 12
ORDINARY_YEAR = 2023  # lengths are those of a year that is not a leap year


class SeasonDays(ABC):
    """The days of a season in each year."""

    @abstractmethod
    def of_year(self, year: int) -> tuple[date, date]:
        """Return the first day of the season of a year (of weeks: an ISO year), and the day after its last."""

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
        """Return whether two seasons have a day in common."""
        first, end = self.of_year(ORDINARY_YEAR)
        others = (other.of_year(year) for year in range(ORDINARY_YEAR - 1, ORDINARY_YEAR + 2))
        return any(first < other_end and other_first < end for other_first, other_end in others)


@dataclass(frozen=True, slots=True)
class MonthDays(SeasonDays):
    """From the first of a month until the next season begins."""

    month: int

    def of_year(self, year: int) -> tuple[date, date]:
        """Return the limits of a season from the first of a month on, for at most a year."""
        return date(year, self.month, 1), date(year + 1, self.month, 1)


@dataclass(frozen=True, slots=True)
class WeekDays(SeasonDays):
    """An ISO 8601 week, from Monday to Sunday."""

    week: int

    def of_year(self, year: int) -> tuple[date, date]:
        """Return the limits of a week; the last one has fourteen days in a year of 53."""
        first = date.fromisocalendar(year, self.week, 1)
        end = date.fromisocalendar(year + 1, 1, 1) if self.week == LAST_WEEK else first + timedelta(days=7)
        return first, end


@dataclass(frozen=True, slots=True)
class DatedDays(SeasonDays):
    """From one day of the year to another. What ends with February has the 29th, too."""

    first: tuple[int, int]
    last: tuple[int, int]

    def of_year(self, year: int) -> tuple[date, date]:
        """Return the limits of a season; one that ends before it begins ends in the next year."""
        later = year + (self.last < self.first)
        return date(year, *self.first), _day_after(later, *self.last)


def _day_after(year: int, month: int, day: int) -> date:
    """Return the day after a day of a year; days that a month does not have count as its last."""
    following = date(year + (month == DECEMBER), month % DECEMBER + 1, 1)
    length = (following - date(year, month, 1)).days
    ends_month = day >= length or (month == FEBRUARY and day >= LAST_OF_FEBRUARY)
    return following if ends_month else date(year, month, day + 1)


def season_days(definitions: SeasonDefinitions, season: Season) -> SeasonDays:
    """Return the days of a season; its end only matters in custom cycles."""
    if definitions.cycle_type == "monthly":
        return MonthDays(season.month_start)
    if definitions.cycle_type == "weekly":
        return WeekDays(min(season.id + 1, LAST_WEEK))
    first = (season.month_start, season.day_start or 1)
    return DatedDays(first, (season.month_end or season.month_start, season.day_end or 31))


Period = tuple[date, date]  # the first day, and the first day after it


@dataclass(frozen=True)
class SeasonCycle:
    """Seasons in calendar order, and the position of each study stage among them."""

    seasons: tuple[Season, ...]
    stage_positions: tuple[int, ...]
    days: tuple[SeasonDays, ...]  # by position
    cycle_starts: tuple[int, ...] = (0,)  # the first position of each cycle

    @property
    def length(self) -> int:
        """The number of seasons."""
        return len(self.seasons)

    def cycle_of(self, position: int) -> range:
        """Return the positions of the cycle that a season belongs to."""
        number = bisect_right(self.cycle_starts, position)
        last = self.cycle_starts[number] if number < len(self.cycle_starts) else self.length
        return range(self.cycle_starts[number - 1], last)

    def before(self, position: int, lag: int) -> int:
        """Return the season `lag` seasons before another one of its cycle."""
        cycle = self.cycle_of(position)
        return cycle[(position - cycle.start - lag) % len(cycle)]

    def occurrence(self, position: int, year: int) -> Period:
        """Return the days of a season that starts in a year; it lasts at most until the next one of its cycle."""
        start, end = self.days[position].of_year(year)
        following = self.before(position, -1)
        next_start = self.days[following].of_year(year + (following <= position))[0]
        return start, min(end, next_start)

    @property
    def cycles(self) -> list[range]:
        """The positions of the seasons of each cycle."""
        return [self.cycle_of(start) for start in self.cycle_starts]

    def year_of(self, day: date, cycle: range) -> int:
        """Return the year of the season of a cycle that holds a day."""
        return self._holding(day, cycle)[1]

    def position_of(self, day: date) -> int:
        """Return the season of the first cycle that a day belongs to."""
        return self._holding(day, self.cycle_of(0))[0]

    def _holding(self, day: date, cycle: range) -> tuple[int, int]:
        """Return the season of a cycle that started last before a day was over, and its year."""
        candidates = [
            (self.days[p].of_year(year)[0], p, year) for year in range(day.year - 1, day.year + 2) for p in cycle
        ]
        _, position, year = max(candidate for candidate in candidates if candidate[0] <= day)
        return position, year

    def stage_occurrence(self, position: int, start: date, end: date) -> tuple[int, Period]:
        """Return year and days of the occurrence of a season that shares most days with a stage."""
        candidates = [(year, self.occurrence(position, year)) for year in range(start.year - 1, end.year + 2)]
        return max(candidates, key=lambda item: (shared_days(item[1], (start, end)), -abs((item[1][0] - start).days)))

    def past_periods(self, study_start: date, count: int) -> list[Period]:
        """Return the last `count` seasons before the study's, the latest first."""
        position, year = self._holding(study_start, self.cycle_of(0))
        return self.periods_before(position, year, count)

    def periods_before(self, position: int, year: int, count: int) -> list[Period]:
        """Return the `count` seasons before an occurrence of a season, the latest first."""
        periods = []
        for _ in range(count):
            earlier = self.before(position, 1)
            year, position = year - (earlier >= position), earlier
            periods.append(self.occurrence(position, year))
        return periods

    @cached_property
    def stage_cycles(self) -> tuple[range, ...]:
        """By stage of the study: the cycle that its season belongs to."""
        return tuple(self.cycle_of(position) for position in self.stage_positions)


def shared_days(one: Period, other: Period) -> int:
    """Return the number of days that two periods have in common."""
    return max(0, (min(one[1], other[1]) - max(one[0], other[0])).days)


def season_cycle(horizon: Horizon) -> SeasonCycle:
    """Return the season cycle of a study with autoregressive inflows; raises if stages.json has no usable one."""
    definitions = horizon.season_definitions
    if definitions is None:
        raise NoiseModelError(
            STAGES_FILE, "season_definitions", "missing; inflows with autoregressive terms need the seasons of a year"
        )
    cycles = _cycles(definitions)
    seasons = tuple(season for cycle in cycles for season in cycle)
    starts = tuple(sum(len(cycle) for cycle in cycles[:number]) for number in range(len(cycles)))
    days = tuple(season_days(definitions, season) for season in seasons)
    position = {season.id: index for index, season in enumerate(seasons)}
    bare = SeasonCycle(seasons, (), days, starts)
    return SeasonCycle(seasons, tuple(_position(bare, stage, position) for stage in horizon.stages), days, starts)


def _cycles(definitions: SeasonDefinitions) -> list[list[Season]]:
    """Split seasons into cycles: those that overlap belong to different ones; the shortest come first."""
    if not definitions.seasons:
        raise NoiseModelError(STAGES_FILE, "season_definitions", "there is no season")
    if definitions.cycle_type == "weekly":
        return [sorted(definitions.seasons, key=lambda season: season.id)]
    days = {season.id: season_days(definitions, season) for season in definitions.seasons}
    if definitions.cycle_type == "monthly":
        return [_check_unique_months(sorted(definitions.seasons, key=lambda season: days[season.id].start))]
    cycles: list[list[Season]] = []
    for season in sorted(definitions.seasons, key=lambda season: (days[season.id].length, days[season.id].start)):
        fitting = (cycle for cycle in cycles if not any(days[season.id].overlaps(days[one.id]) for one in cycle))
        cycle = next(fitting, None)
        if cycle is None:
            cycles.append([season])
        else:
            cycle.append(season)
    return [sorted(cycle, key=lambda season: days[season.id].start) for cycle in cycles]


def _check_unique_months(seasons: list[Season]) -> list[Season]:
    if len({season.month_start for season in seasons}) != len(seasons):
        raise NoiseModelError(STAGES_FILE, "season_definitions", "give each season a month_start of its own")
    return seasons


def _position(cycle: SeasonCycle, stage: Stage, position: dict[int, int]) -> int:
    """Return the position of a stage's season; where seasons do not overlap, by the day on which the stage starts."""
    if stage.season_id is None and len(cycle.cycle_starts) == 1:
        return cycle.position_of(stage.start_date)
    if stage.season_id is None or stage.season_id not in position:
        raise NoiseModelError(
            STAGES_FILE, f"stage {stage.id}, season_id", f"{stage.season_id} is not one of the defined seasons"
        )
    return position[stage.season_id]


# Which seasons the stages of a study belong to, day by day, and which earlier ones their inflows remember.
#
# The lags of a model are means of whole seasons. Where every stage is one season and follows the one before, the lag
# is simply the inflow of an earlier stage. Elsewhere, as with weeks that share a month or quarters that follow
# months, a season's mean is put together from the stages that have days of it.


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """A season of a certain year: its cycle's first position, its days, its own position."""

    cycle: int
    days: Period
    position: int
    year: int


@dataclass(frozen=True)
class StagePeriods:
    """The stages of a study in the calendar of seasons."""

    horizon: Horizon
    cycle: SeasonCycle

    @cached_property
    def is_plain(self) -> bool:
        """Whether every stage is a season of its own, the one after that of the stage before it."""
        positions = self.cycle.stage_positions
        follows = all(self.cycle.before(b, 1) == a for a, b in pairwise(positions))
        stages = self.horizon.stages
        is_whole = all(
            at.days == (stage.start_date, stage.end_date) for at, stage in zip(self.of_stages, stages, strict=True)
        )
        return follows and (is_whole or (self.cycle.length == MONTHS_PER_YEAR and all(map(_is_a_month, stages))))

    @cached_property
    def of_stages(self) -> tuple[Occurrence, ...]:
        """The occurrence that each stage belongs to: of its season the one that it shares most days with."""
        return tuple(map(self._of_stage, self.horizon.stages, self.cycle.stage_positions))

    def _of_stage(self, stage: Stage, position: int) -> Occurrence:
        year, days = self.cycle.stage_occurrence(position, stage.start_date, stage.end_date)
        return Occurrence(self.cycle.cycle_of(position).start, days, position, year)

    @cached_property
    def end(self) -> Occurrence:
        """The season after the study: the one after that of the last stage, or the same if days of it are left."""
        last, day = self.of_stages[-1], self.horizon.stages[-1].end_date
        if last.days[1] > day:
            return last
        position = self.cycle.before(last.position, -1)
        year = last.year + (position <= last.position)
        return Occurrence(last.cycle, self.cycle.occurrence(position, year), position, year)

    def earlier(self, occurrence: Occurrence, lag: int) -> Occurrence:
        """Return the season `lag` seasons before, in the same cycle."""
        position, year = occurrence.position, occurrence.year
        for _ in range(lag):
            before = self.cycle.before(position, 1)
            position, year = before, year - (before >= position)
        return Occurrence(occurrence.cycle, self.cycle.occurrence(position, year), position, year)

    def days_of(self, stage: int, occurrence: Occurrence) -> int:
        """Return the number of days of an occurrence in a stage."""
        stage_data = self.horizon.stages[stage]
        return shared_days((stage_data.start_date, stage_data.end_date), occurrence.days)

    def lag_stage_id(self, stage: int, lag: int) -> int | None:
        """Return the stage, in or before the study, that has the statistics of a lag; None: its season has them."""
        stages = self.horizon.stages
        if self.is_plain:
            return stages[stage].id - lag
        wanted = self.earlier(self.of_stages[stage], lag)
        if wanted in self.of_stages:
            return stages[self.of_stages.index(wanted)].id
        dated = (id_ for id_, occurrence in self.before_study.items() if occurrence == wanted)
        return next(dated, self._counted_back(wanted))

    def _counted_back(self, wanted: Occurrence) -> int | None:
        """Return the id of an occurrence before the study, if the seasons before it are numbered one by one."""
        first = self.of_stages[0]
        if wanted.cycle != first.cycle or wanted.days >= first.days:
            return None
        steps = 1
        while self.earlier(first, steps) != wanted:
            steps += 1
        return self.horizon.stages[0].id - steps

    @cached_property
    def before_study(self) -> dict[int, Occurrence]:
        """Stages before the study that stages.json dates, the latest first."""
        position = {season.id: index for index, season in enumerate(self.cycle.seasons)}
        dated = sorted(self.horizon.pre_study_stages, key=lambda stage: -stage.id)
        return {
            stage.id: self._of_stage(Stage(stage.id, stage.start_date, stage.end_date, ()), position[stage.season_id])
            for stage in dated
            if stage.season_id in position
        }

    def position_before_study(self, stage_id: int) -> int:
        """Return the season of a stage before the study: by its dates, or counted back from the first stage."""
        if not self.is_plain and stage_id in self.before_study:
            return self.before_study[stage_id].position
        first = self.cycle.stage_positions[0]
        return self.cycle.before(first, self.horizon.stages[0].id - stage_id)


def _is_a_month(stage: Stage) -> bool:
    start = stage.start_date
    following = date(start.year + start.month // MONTHS_PER_YEAR, start.month % MONTHS_PER_YEAR + 1, 1)
    return start.day == 1 and stage.end_date == following

"""The seasons of a year: which one lies how far back, and which days each of its occurrences has.

Seasons follow one another in a cycle. A calendar may have several cycles over the same days, such as months and
quarters; the season of a stage tells to which it belongs. Positions number all seasons, cycle by cycle.
"""

from bisect import bisect_right
from datetime import date
from functools import cached_property

from cobre.core.case_file_names import STAGES_FILE
from cobre.core.temporal import Horizon, Season, SeasonDefinitions, Stage
from cobre.records import dataclass
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.par.season_days import SeasonDays, season_days

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
        """The positions of the cycle that a season belongs to."""
        number = bisect_right(self.cycle_starts, position)
        last = self.cycle_starts[number] if number < len(self.cycle_starts) else self.length
        return range(self.cycle_starts[number - 1], last)

    def before(self, position: int, lag: int) -> int:
        """The season `lag` seasons before another one of its cycle."""
        cycle = self.cycle_of(position)
        return cycle[(position - cycle.start - lag) % len(cycle)]

    def occurrence(self, position: int, year: int) -> Period:
        """The days of a season that starts in a year; it lasts no longer than until the next one of its cycle."""
        start, end = self.days[position].of_year(year)
        following = self.before(position, -1)
        next_start = self.days[following].of_year(year + (following <= position))[0]
        return start, min(end, next_start)

    @property
    def cycles(self) -> list[range]:
        """The positions of the seasons of each cycle."""
        return [self.cycle_of(start) for start in self.cycle_starts]

    def year_of(self, day: date, cycle: range) -> int:
        """The year of the season of a cycle that holds a day."""
        return self._holding(day, cycle)[1]

    def position_of(self, day: date) -> int:
        """The season of the first cycle that a day belongs to."""
        return self._holding(day, self.cycle_of(0))[0]

    def _holding(self, day: date, cycle: range) -> tuple[int, int]:
        """The season of a cycle that started last before a day was over, and its year."""
        candidates = [
            (self.days[p].of_year(year)[0], p, year) for year in range(day.year - 1, day.year + 2) for p in cycle
        ]
        _, position, year = max(candidate for candidate in candidates if candidate[0] <= day)
        return position, year

    def stage_occurrence(self, position: int, start: date, end: date) -> tuple[int, Period]:
        """Year and days of that occurrence of a season which shares most days with a stage."""
        found = [(year, self.occurrence(position, year)) for year in range(start.year - 1, end.year + 2)]
        return max(found, key=lambda item: (shared_days(item[1], (start, end)), -abs((item[1][0] - start).days)))

    def past_periods(self, study_start: date, count: int) -> list[Period]:
        """The last `count` seasons before the study's, the latest first."""
        position, year = self._holding(study_start, self.cycle_of(0))
        return self.periods_before(position, year, count)

    def periods_before(self, position: int, year: int, count: int) -> list[Period]:
        """The `count` seasons before an occurrence of a season, the latest first."""
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
    """How many days two periods have in common."""
    return max(0, (min(one[1], other[1]) - max(one[0], other[0])).days)


def season_cycle(horizon: Horizon) -> SeasonCycle:
    """The season cycle of a study with autoregressive inflows; raises if stages.json has none that is usable."""
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
    """Seasons that overlap belong to different cycles; the shortest ones come first."""
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
    """The position of a stage's season; where seasons do not overlap, by the day on which the stage starts."""
    if stage.season_id is None and len(cycle.cycle_starts) == 1:
        return cycle.position_of(stage.start_date)
    if stage.season_id is None or stage.season_id not in position:
        raise NoiseModelError(
            STAGES_FILE, f"stage {stage.id}, season_id", f"{stage.season_id} is not one of the defined seasons"
        )
    return position[stage.season_id]

"""The cycle of seasons: which season lies how far back, and which days a past season had."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from cobre.core.temporal import Horizon, Season, SeasonDefinitions
from cobre.stochastic.errors import NoiseModelError

_STAGES_FILE = "stages.json"


@dataclass(frozen=True, slots=True)
class SeasonCycle:
    """Seasons of a monthly cycle in calendar order, and the position of each study stage in it."""

    seasons: tuple[Season, ...]
    stage_positions: tuple[int, ...]

    @property
    def length(self) -> int:
        """How many seasons a year has."""
        return len(self.seasons)

    def position_before(self, stage: int, lag: int) -> int:
        """The season `lag` seasons before a stage."""
        return (self.stage_positions[stage] - lag) % self.length

    def position_of(self, day: date) -> int:
        """The season that a day belongs to."""
        starts = [season.month_start for season in self.seasons]
        return (sum(start <= day.month for start in starts) - 1) % self.length

    def period_start(self, day: date) -> date:
        """The first day of the season's occurrence that holds a day."""
        start = self.seasons[self.position_of(day)].month_start
        return date(day.year if start <= day.month else day.year - 1, start, 1)

    def period_end(self, day: date) -> date:
        """The first day after the season's occurrence that holds a day."""
        following = self.seasons[(self.position_of(day) + 1) % self.length].month_start
        start = self.period_start(day)
        return date(start.year if following > start.month else start.year + 1, following, 1)

    def past_periods(self, study_start: date, count: int) -> list[tuple[date, date]]:
        """First days and ends (exclusive) of the last `count` seasons before the study's, the latest first."""
        periods, end = [], self.period_start(study_start)
        for _ in range(count):
            start = self.period_start(date.fromordinal(end.toordinal() - 1))
            periods.append((start, end))
            end = start
        return periods


def season_cycle(horizon: Horizon) -> SeasonCycle:
    """The cycle of a study whose inflows remember; raises when stages.json does not define a usable one."""
    definitions = horizon.season_definitions
    if definitions is None:
        raise NoiseModelError(
            _STAGES_FILE, "season_definitions", "missing; inflows with autoregressive terms need the seasons of a year"
        )
    seasons = _calendar_order(definitions)
    position = {season.id: index for index, season in enumerate(seasons)}
    return SeasonCycle(seasons, tuple(_position(stage.id, stage.season_id, position) for stage in horizon.stages))


def _calendar_order(definitions: SeasonDefinitions) -> tuple[Season, ...]:
    if definitions.cycle_type != "monthly":
        raise NoiseModelError(
            _STAGES_FILE,
            "season_definitions, cycle_type",
            f"{definitions.cycle_type!r} cannot be combined with autoregressive inflows yet; use 'monthly'",
        )
    seasons = tuple(sorted(definitions.seasons, key=lambda season: season.month_start))
    if not seasons or len({season.month_start for season in seasons}) != len(seasons):
        raise NoiseModelError(_STAGES_FILE, "season_definitions", "give each season a month_start of its own")
    return seasons


def _position(stage_id: int, season_id: int | None, position: dict[int, int]) -> int:
    if season_id is None or season_id not in position:
        raise NoiseModelError(
            _STAGES_FILE, f"stage {stage_id}, season_id", f"{season_id} is not one of the defined seasons"
        )
    return position[season_id]


def check_one_season_per_stage(horizon: Horizon, cycle: SeasonCycle) -> None:
    """Lags shift by one season at every stage, so stages must follow the cycle one by one."""
    positions: Sequence[int] = cycle.stage_positions
    for stage, before, after in zip(horizon.stages[1:], positions, positions[1:], strict=False):
        if after != (before + 1) % cycle.length:
            raise NoiseModelError(
                _STAGES_FILE,
                f"stage {stage.id}, season_id",
                "with autoregressive inflows each stage must be the season after that of the stage before it",
            )

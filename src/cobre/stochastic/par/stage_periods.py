"""Which seasons the stages of a study belong to, day by day, and which earlier ones their inflows remember.

The lags of a model are means of whole seasons. Where every stage is one season and follows the one before, the lag is
simply the inflow of an earlier stage. Elsewhere, as with weeks that share a month or quarters that follow months, a
season's mean is put together from the stages that have days of it.
"""

from datetime import date
from functools import cached_property
from itertools import pairwise

from cobre.core.temporal import Horizon, Stage
from cobre.core.units import MONTHS_PER_YEAR
from cobre.records import dataclass
from cobre.stochastic.par.seasons import Period, SeasonCycle, shared_days


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
        """What follows the study: the season after that of the last stage, or the same if days of it are left."""
        last, day = self.of_stages[-1], self.horizon.stages[-1].end_date
        if last.days[1] > day:
            return last
        position = self.cycle.before(last.position, -1)
        year = last.year + (position <= last.position)
        return Occurrence(last.cycle, self.cycle.occurrence(position, year), position, year)

    def earlier(self, occurrence: Occurrence, lag: int) -> Occurrence:
        """The season `lag` seasons before, in the same cycle."""
        position, year = occurrence.position, occurrence.year
        for _ in range(lag):
            before = self.cycle.before(position, 1)
            position, year = before, year - (before >= position)
        return Occurrence(occurrence.cycle, self.cycle.occurrence(position, year), position, year)

    def days_of(self, stage: int, occurrence: Occurrence) -> int:
        """How many days of an occurrence a stage has."""
        found = self.horizon.stages[stage]
        return shared_days((found.start_date, found.end_date), occurrence.days)

    def lag_stage_id(self, stage: int, lag: int) -> int | None:
        """The stage, in or before the study, that has the statistics of a lag; None: its season has them."""
        stages = self.horizon.stages
        if self.is_plain:
            return stages[stage].id - lag
        wanted = self.earlier(self.of_stages[stage], lag)
        if wanted in self.of_stages:
            return stages[self.of_stages.index(wanted)].id
        dated = (id_ for id_, found in self.before_study.items() if found == wanted)
        return next(dated, self._counted_back(wanted))

    def _counted_back(self, wanted: Occurrence) -> int | None:
        """The id of an occurrence before the study, if the seasons before it are numbered one by one."""
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
        """The season of a stage before the study: as its dates say, or counted back from the first stage."""
        if not self.is_plain and stage_id in self.before_study:
            return self.before_study[stage_id].position
        first = self.cycle.stage_positions[0]
        return self.cycle.before(first, self.horizon.stages[0].id - stage_id)


def _is_a_month(stage: Stage) -> bool:
    start = stage.start_date
    following = date(start.year + start.month // MONTHS_PER_YEAR, start.month % MONTHS_PER_YEAR + 1, 1)
    return start.day == 1 and stage.end_date == following

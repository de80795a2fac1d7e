"""Deliveries in later stages: power of anticipated thermal plants, and water in transit."""

from collections.abc import Sequence
from datetime import date, timedelta
from functools import cache, cached_property
from itertools import accumulate

import numpy as np

from cobre.core.arrays import HOURS_PER_DAY, Floats, sum_in_order
from cobre.core.entities import AnticipatedConfig, Thermal
from cobre.core.hydro import Hydro
from cobre.core.temporal import Horizon, Stage
from cobre.records import dataclass

# Anticipated thermal plants: which stage decides the power that is delivered in a later stage.
#
# Deliveries are numbered as stages are: those of the study from 0, then the stages after the study in which decisions
# of the study are still delivered. A plant with a lead in stages decides in stage t what it delivers in stage t + lead.
# A lead in hours is counted back from the end of the delivery, in block hours: the stage that contains that moment
# decides. Where that is the delivery stage itself, the plant is dispatched like any other.

BEFORE_STUDY = -1
_SLACK_HOURS = 1e-6  # block hours are sums of decimal numbers


@dataclass(frozen=True, slots=True)
class PostStudyStage:
    """A period after the study in which power that the study decides is delivered."""

    start_date: date
    duration_hours: float

    @property
    def end_date(self) -> date:
        """The first day after the stage."""
        return self.start_date + timedelta(hours=self.duration_hours)


@dataclass(frozen=True, slots=True)
class PostStudyBound:
    """Limits (MW) and cost ($/MWh) of an anticipated plant's deliveries in a stage after the study."""

    thermal_id: int
    post_study_stage_index: int
    cost_per_mwh: float
    min_mw: float
    max_mw: float


@dataclass(frozen=True, slots=True)
class PostStudy:
    """post_study_stages.json; without the file nothing is delivered after the study."""

    stages: tuple[PostStudyStage, ...] = ()
    thermal_bounds: tuple[PostStudyBound, ...] = ()


@dataclass(frozen=True, slots=True)
class PastCommitment:
    """Power (MW) committed before the study for some days; `end_date` is the first day after them."""

    thermal_id: int
    start_date: date
    end_date: date
    value_mw: float


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Stages in which power may be delivered: those of the study, then those after it."""

    num_stages: int  # of the study
    starts: tuple[date, ...]
    ends: tuple[date, ...]
    hours: tuple[float, ...]

    @classmethod
    def of(cls, horizon: Horizon, after: PostStudy) -> "Deliveries":
        """Return the stages of a horizon, then those after the study, in order."""
        inside, outside = horizon.stages, after.stages
        return cls(
            len(inside),
            (*(stage.start_date for stage in inside), *(stage.start_date for stage in outside)),
            (*(stage.end_date for stage in inside), *(stage.end_date for stage in outside)),
            (*(stage.hours for stage in inside), *(stage.duration_hours for stage in outside)),
        )

    def deciders(self, config: AnticipatedConfig) -> tuple[int, ...]:
        """Return for each delivery the stage that decides it; BEFORE_STUDY: decided before the study.

        It is the delivery stage itself if nothing is decided ahead, and a stage after the study if no stage of
        the study decides.
        """
        if config.lead_stages is not None:
            return tuple(max(at - config.lead_stages, BEFORE_STUDY) for at in range(len(self.hours)))
        ends = list(accumulate(self.hours))
        return tuple(_stage_at(ends, end - (config.lead_time_hours or 0.0)) for end in ends)

    def overlap_days(self, delivery: int, start: date, end: date) -> int:
        """Return days of a delivery that lie between two dates."""
        return max(0, (min(self.ends[delivery], end) - max(self.starts[delivery], start)).days)

    def committed_mw(self, delivery: int, windows: Sequence[PastCommitment]) -> float:
        """Return the power (MW) committed before the study for a delivery: the mean over its days."""
        days = (self.ends[delivery] - self.starts[delivery]).days
        parts = [self.overlap_days(delivery, row.start_date, row.end_date) * row.value_mw for row in windows]
        covered = [row.value_mw for row, part in zip(windows, parts, strict=True) if part]
        return covered[0] if len(set(covered)) == 1 else sum_in_order(parts) / days if covered else 0.0


def _stage_at(ends: Sequence[float], moment: float) -> int:
    """Return the stage that contains a moment (hours from the start of the study); the end of a stage belongs to it."""
    if moment <= _SLACK_HOURS:
        return BEFORE_STUDY
    return next(stage for stage, end in enumerate(ends) if moment <= end + _SLACK_HOURS)


@dataclass(frozen=True)  # without slots: distances are kept in the instance
class Anticipation:
    """The deliveries of one plant, and the stage that decides each of them."""

    thermal: Thermal
    deciders: tuple[int, ...]
    num_stages: int

    @cached_property
    def distances(self) -> int:
        """The largest number of stages between a decision and its delivery; 0 if nothing is decided ahead."""
        return max((at - stage for at, stage in self._ahead()), default=0)

    @cached_property
    def decided_distances(self) -> tuple[int, ...]:
        """The distances, in stages, at which stages of the study decide; ascending."""
        return tuple(sorted({at - stage for at, stage in self._ahead() if stage != BEFORE_STUDY}))

    @property
    def decided(self) -> tuple[int, ...]:
        """Deliveries that stages of the study decide ahead, in the order in which they do."""
        return tuple(at for _, at in sorted((stage, at) for at, stage in self._ahead() if stage != BEFORE_STUDY))

    def decides(self, stage: int, delivery: int) -> bool:
        """Return whether a stage of the study decides a later delivery."""
        is_ahead = stage < delivery < len(self.deciders) and stage < self.num_stages
        return is_ahead and self.deciders[delivery] == stage

    def is_known_after(self, stage: int, delivery: int) -> bool:
        """Return whether a future delivery was decided by the end of a stage (BEFORE_STUDY: when the study begins)."""
        return stage < delivery < len(self.deciders) and self.deciders[delivery] <= stage

    def _ahead(self) -> tuple[tuple[int, int], ...]:
        return _decided_ahead(self.deciders, self.num_stages)


@cache
def _decided_ahead(deciders: tuple[int, ...], num_stages: int) -> tuple[tuple[int, int], ...]:
    """Return deliveries that a stage of the study, or the time before it, decides ahead, each with that stage."""
    return tuple((at, stage) for at, stage in enumerate(deciders) if stage < at and stage < num_stages)


def anticipations(thermals: Sequence[Thermal], deliveries: Deliveries) -> tuple[Anticipation, ...]:
    """Return one for each anticipated plant, in canonical order."""
    return tuple(
        Anticipation(plant, deliveries.deciders(plant.anticipated_config), deliveries.num_stages)
        for plant in thermals
        if plant.anticipated_config is not None
    )


# Travel time of water between two plants: when releases arrive.
#
# Time is counted in block hours from the start of the study. The release of a stage leaves at a constant rate over the
# stage, or over each block where blocks are chronological, and arrives one travel time later; water that arrives in a
# later stage is part of the state until then. Releases before the study are dated back from its start by the calendar.


@dataclass(frozen=True, slots=True)
class PastRelease:
    """The mean release of a plant, m3/s, on some days before the study; `end_date` is the first day after them."""

    hydro_id: int
    start_date: date
    end_date: date
    value_m3s: float


@dataclass(frozen=True, slots=True)
class TravelArc:
    """The reach from a plant to the one downstream, with its travel time in hours."""

    hydro_id: int
    downstream_id: int
    hours: float


def travel_arcs(hydros: Sequence[Hydro]) -> tuple[TravelArc, ...]:
    """Return cascade arcs with a travel time above 0 and a downstream plant, in canonical order."""
    return tuple(
        TravelArc(hydro.id, hydro.downstream_id, hydro.travel_time_hours)
        for hydro in hydros
        if hydro.travel_time_hours and hydro.downstream_id is not None
    )


@dataclass(frozen=True, slots=True)
class Spans:
    """Consecutive periods, in hours from the start of the study; `edges` has one number more than there are periods."""

    edges: Floats

    @property
    def lengths(self) -> Floats:
        """The length of each period in hours."""
        return np.diff(self.edges)

    def overlap_hours(self, start: Floats, end: Floats) -> Floats:
        """Return hours [given, periods] that given periods have in common with these."""
        low = np.maximum(start[:, None], self.edges[None, :-1])
        high = np.minimum(end[:, None], self.edges[None, 1:])
        common: Floats = np.maximum(0.0, high - low)
        return common


@dataclass(frozen=True, slots=True)
class TravelAxis:
    """The stages of a study and their blocks, in hours from its start.

    stages: of the study, then the periods after it in which arriving water still has a value.
    """

    stages: Spans
    blocks: tuple[Spans, ...]  # of each stage of the study; one period where blocks are parallel
    start: date

    @classmethod
    def of(cls, horizon: Horizon, later_hours: Sequence[float] = ()) -> "TravelAxis":
        """Place the stages and blocks of a horizon in hours from its start. later_hours: of the periods after it."""
        hours = (*(stage.hours for stage in horizon.stages), *later_hours)
        edges = np.array([0.0, *accumulate(hours)])
        blocks = tuple(_blocks(stage, float(begin)) for stage, begin in zip(horizon.stages, edges, strict=False))
        return cls(Spans(edges), blocks, horizon.stages[0].start_date)

    @property
    def num_periods(self) -> int:
        """The number of stages of the study and of periods after it."""
        return len(self.stages.edges) - 1

    def shares(self, stage: int, hours: float) -> Floats:
        """Return shares [periods of the stage, stages] of a release that arrive in each stage, or period after them."""
        periods = self.blocks[stage]
        shares: Floats = self._arrivals(periods, hours) / periods.lengths[:, None]
        return shares

    def arrival_shares_within(self, stage: int, hours: float) -> Floats:
        """Return shares [periods, periods] of a stage's releases that arrive in each period of the same stage."""
        periods = self.blocks[stage]
        overlap: Floats = periods.overlap_hours(periods.edges[:-1] + hours, periods.edges[1:] + hours)
        return overlap / periods.lengths[:, None]

    def arrival_shares(self, stage: int, hours: float) -> Floats:
        """Return shares [periods of the stage] of the water from earlier stages that arrive in each period.

        Water released before the study arrives evenly.
        """
        periods = self.blocks[stage]
        begins, ends = self.stages.edges[:stage] + hours, self.stages.edges[1 : stage + 1] + hours
        common = periods.overlap_hours(begins, ends).sum(axis=0)
        weight = common if common.sum() > 0.0 else periods.lengths
        return np.asarray(weight / weight.sum(), np.float64)

    def arrives_after_study(self, stage: int, hours: float) -> bool:
        """Return whether a part of a stage's release arrives after the last stage."""
        return bool(self.stages.edges[stage + 1] + hours > self.stages.edges[len(self.blocks)])

    def past_hours(self, release: PastRelease, hours: float) -> Floats:
        """Return by stage the hours of a release before the study that arrive in it."""
        begin = np.array([(release.start_date - self.start).days * HOURS_PER_DAY])
        end = np.minimum([(release.end_date - self.start).days * HOURS_PER_DAY], 0.0)
        overlap: Floats = self.stages.overlap_hours(begin + hours, end + hours)[0]
        return overlap

    def _arrivals(self, periods: Spans, hours: float) -> Floats:
        return self.stages.overlap_hours(periods.edges[:-1] + hours, periods.edges[1:] + hours)


def _blocks(stage: Stage, begin: float) -> Spans:
    if stage.block_mode == "chronological" and len(stage.blocks) > 1:
        return Spans(begin + np.array([0.0, *accumulate(block.hours for block in stage.blocks)]))
    return Spans(begin + np.array([0.0, stage.hours]))

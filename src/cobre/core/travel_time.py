"""Travel time of water between two plants: when releases arrive.

Time is counted in block hours from the start of the study. The release of a stage leaves at a constant rate over the
stage, or over each block where blocks are chronological, and arrives one travel time later; water that arrives in a
later stage is part of the state until then. Releases before the study are dated back from its start by the calendar.
"""

from collections.abc import Sequence
from datetime import date
from itertools import accumulate

import numpy as np

from cobre.core.arrays import HOURS_PER_DAY, Floats
from cobre.core.hydro import Hydro
from cobre.core.temporal import Horizon, Stage
from cobre.records import dataclass


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
        found: Floats = self._arrivals(periods, hours) / periods.lengths[:, None]
        return found

    def arrival_shares_within(self, stage: int, hours: float) -> Floats:
        """Return shares [periods, periods] of a stage's releases that arrive in each period of the same stage."""
        periods = self.blocks[stage]
        found: Floats = periods.overlap_hours(periods.edges[:-1] + hours, periods.edges[1:] + hours)
        return found / periods.lengths[:, None]

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
        found: Floats = self.stages.overlap_hours(begin + hours, end + hours)[0]
        return found

    def _arrivals(self, periods: Spans, hours: float) -> Floats:
        return self.stages.overlap_hours(periods.edges[:-1] + hours, periods.edges[1:] + hours)


def _blocks(stage: Stage, begin: float) -> Spans:
    if stage.block_mode == "chronological" and len(stage.blocks) > 1:
        return Spans(begin + np.array([0.0, *accumulate(block.hours for block in stage.blocks)]))
    return Spans(begin + np.array([0.0, stage.hours]))

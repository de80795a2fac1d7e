"""Means and standard deviations of inflows: of study stages, and of the seasons that lie before them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cobre.core.arrays import Flags, Floats
from cobre.core.case import Case
from cobre.stochastic.par.sample_statistics import SampleStatistics
from cobre.stochastic.par.seasons import SeasonCycle
from cobre.stochastic.stage_tables import StageTable

STATS_FILE = "scenarios/inflow_seasonal_stats.parquet"


@dataclass(frozen=True, slots=True)
class InflowStatistics:
    """By study stage and hydro. Elsewhere: stages before the study by id, and seasons by position; NaN is unknown."""

    stage_ids: tuple[int, ...]
    hydro_ids: tuple[int, ...]
    mean_m3s: Floats
    std_m3s: Floats
    is_given: Flags
    before: Mapping[int, tuple[Floats, Floats]]
    by_season: Mapping[int, tuple[Floats, Floats]]

    def of_season(self, cycle: SeasonCycle, stage_id: int | None, position: int) -> tuple[Floats, Floats]:
        """Mean and deviation, per hydro, of a stage by its id, or of its season.

        The row of that very stage counts first, then the earliest study stage of the same season, then what is known of
        the season. Plants with none of them get zeros: such a lag takes no part.
        """
        mean = np.full(len(self.hydro_ids), np.nan)
        std = mean
        for found_mean, found_std in self._candidates(cycle, stage_id, position):
            is_new = np.isnan(mean)
            mean, std = np.where(is_new, found_mean, mean), np.where(is_new, found_std, std)
        unknown = np.isnan(mean)
        return np.where(unknown, 0.0, mean), np.where(unknown, 0.0, std)

    def _candidates(self, cycle: SeasonCycle, stage_id: int | None, position: int) -> list[tuple[Floats, Floats]]:
        found = []
        if stage_id is not None and stage_id in self.stage_ids:
            found.append(self._of_stage(self.stage_ids.index(stage_id)))
        if stage_id is not None and stage_id in self.before:
            found.append(self.before[stage_id])
        found += [self._of_stage(stage) for stage, at in enumerate(cycle.stage_positions) if at == position]
        if position in self.by_season:
            found.append(self.by_season[position])
        return found

    def _of_stage(self, stage: int) -> tuple[Floats, Floats]:
        given = self.is_given[stage]
        return np.where(given, self.mean_m3s[stage], np.nan), np.where(given, self.std_m3s[stage], np.nan)


def given_statistics(case: Case) -> InflowStatistics:
    """What the table of seasonal statistics says; no row: no inflow."""
    hydro_ids = tuple(hydro.id for hydro in case.system.hydros)
    table = StageTable(STATS_FILE, case.scenarios.inflow_seasonal_stats, "hydro_id", ("mean_m3s", "std_m3s"), hydro_ids)
    stage_ids = tuple(stage.id for stage in case.horizon.stages)
    values = table.over(stage_ids, (0.0, 0.0))
    is_given = np.array([~np.isnan(table.at(stage_id)[0]) for stage_id in stage_ids]).reshape(len(stage_ids), -1)
    others = [stage_id for stage_id in table.stage_ids if stage_id not in set(stage_ids)]
    before = {stage_id: (table.at(stage_id)[0], table.at(stage_id)[1]) for stage_id in others}
    return InflowStatistics(stage_ids, hydro_ids, values[:, 0], values[:, 1], is_given, before, {})


def estimated_statistics(case: Case, sample: SampleStatistics, cycle: SeasonCycle) -> InflowStatistics:
    """What history says of the seasons, given to the stages."""
    positions = list(cycle.stage_positions)
    mean, std = sample.mean[positions], sample.std[positions]
    known = sample.count > 0
    by_season = {
        season: (
            np.where(known[season], sample.mean[season], np.nan),
            np.where(known[season], sample.std[season], np.nan),
        )
        for season in range(cycle.length)
    }
    return InflowStatistics(
        tuple(stage.id for stage in case.horizon.stages),
        tuple(hydro.id for hydro in case.system.hydros),
        mean,
        std,
        known[positions],
        {},
        by_season,
    )

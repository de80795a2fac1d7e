"""Means and standard deviations of inflows: of study stages, and of the seasons before them."""

from collections.abc import Mapping, Sequence

import numpy as np

from cobre._native import add_rows
from cobre.core.arrays import Flags, Floats, Indices
from cobre.core.case import Case
from cobre.core.file_names import INFLOW_STATS_FILE
from cobre.records import dataclass
from cobre.stochastic.layout import StageTable
from cobre.stochastic.par.observations import ObservationKinds, Observations, observation_kinds
from cobre.stochastic.par.seasons import SeasonCycle

# Statistics of a grid of observations: means, deviations and correlations, season by season.
#
# Sums run over years in order, all hydros at a time, so the bits do not depend on how a library adds.


@dataclass(frozen=True, slots=True)
class SampleStatistics:
    """By season and hydro: how many observations, their mean and population deviation, and standardised values."""

    count: Indices
    mean: Floats
    std: Floats
    standardised: Floats
    kinds: ObservationKinds

    def correlation(self, season: int, lag: int) -> Floats:
        """Return per hydro the correlation of a season with the one `lag` before it, over years with both."""
        return mean_product(self.standardised[:, season], self.lagged(season, lag))

    def lagged(self, season: int, lag: int) -> Floats:
        """Return standardised values (year, hydro) of `lag` seasons before, aligned with the year of `season`."""
        seasons = self.standardised.shape[1]
        return shift_years(self.standardised[:, (season - lag) % seasons], (lag - season + seasons - 1) // seasons)


def sample_statistics(observations: Observations) -> SampleStatistics:
    """Return statistics of history; a season that hardly varies has deviation 0 and standardised values 0."""
    return statistics_of(observations.values, observation_kinds(observations.values))


def statistics_of(values: Floats, kinds: ObservationKinds) -> SampleStatistics:
    """Return statistics of a grid (year, season, hydro) whose kinds are known."""
    is_known = ~np.isnan(values)
    count = is_known.sum(axis=0)
    divisor = np.maximum(count, 1)
    mean = np.where(kinds.is_level, kinds.level_m3s, ordered_sum(np.where(is_known, values, 0.0)) / divisor)
    deviation = np.where(is_known & ~kinds.is_level, values - mean, 0.0)
    std = np.sqrt(ordered_sum(deviation * deviation) / divisor)
    standardised = np.where(is_known, deviation / np.where(std > 0.0, std, 1.0), np.nan)
    return SampleStatistics(count, mean, std, standardised, kinds)


def ordered_sum(values: Floats) -> Floats:
    """Return the sums over the first axis, in its order: NumPy's own depend on the shape."""
    total = np.empty(values.shape[1:])
    add_rows(np.ascontiguousarray(values).reshape(len(values), total.size), total.reshape(-1))
    return total


def mean_product(left: Floats, right: Floats) -> Floats:
    """Return the mean over years of the products where both are known; 0 without any."""
    both = ~(np.isnan(left) | np.isnan(right))
    total = ordered_sum(np.where(both, left * right, 0.0))
    result: Floats = np.clip(total / np.maximum(both.sum(axis=0), 1), -1.0, 1.0)
    return result


def shift_years(values: Floats, years: int) -> Floats:
    """Return the values `years` earlier, by year; NaN where the grid begins."""
    if years <= 0:
        return values
    shifted = np.full_like(values, np.nan)
    shifted[years:] = values[:-years]
    return shifted


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


Pair = tuple[Floats, Floats]


class SeasonStatistics:
    """Mean and deviation, per hydro, of seasons: what a stage has at its lags.

    A deck asks for the same few seasons thousands of times, so each is put together once.
    """

    def __init__(self, statistics: InflowStatistics, cycle: SeasonCycle) -> None:
        self._statistics = statistics
        self._stages = {stage_id: stage for stage, stage_id in enumerate(statistics.stage_ids)}
        self._positions = cycle.stage_positions
        self._of_season: dict[int, Pair] = {}
        self._found: dict[tuple[int | None, int], Pair] = {}

    @property
    def hydros(self) -> int:
        """The number of plants."""
        return len(self._statistics.hydro_ids)

    def of(self, stage_id: int | None, position: int) -> Pair:
        """Return mean and deviation of a stage by its id, or of its season by its position in the cycle.

        The stage's own row takes precedence, then the earliest study stage of the same season, then what is known of
        the season. Plants with none of them get zeros: such a lag has no effect.
        """
        key = (stage_id, position)
        if key not in self._found:
            mean, std = _first_known([*self._of_id(stage_id), self._season(position)])
            unknown = np.isnan(mean)
            self._found[key] = np.where(unknown, 0.0, mean), np.where(unknown, 0.0, std)
        return self._found[key]

    def _of_id(self, stage_id: int | None) -> list[Pair]:
        pairs: list[Pair] = []
        if stage_id is None:
            return pairs
        if stage_id in self._stages:
            pairs.append(self._of_stage(self._stages[stage_id]))
        if stage_id in self._statistics.before:
            pairs.append(self._statistics.before[stage_id])
        return pairs

    def _season(self, position: int) -> Pair:
        if position not in self._of_season:
            pairs = [self._of_stage(stage) for stage, at in enumerate(self._positions) if at == position]
            if position in self._statistics.by_season:
                pairs.append(self._statistics.by_season[position])
            unknown = np.full(self.hydros, np.nan)
            self._of_season[position] = _first_known([*pairs, (unknown, unknown)])
        return self._of_season[position]

    def _of_stage(self, stage: int) -> Pair:
        statistics = self._statistics
        given = statistics.is_given[stage]
        return np.where(given, statistics.mean_m3s[stage], np.nan), np.where(given, statistics.std_m3s[stage], np.nan)


def _first_known(pairs: Sequence[Pair]) -> Pair:
    """Return per hydro the first pair whose mean is known."""
    mean, std = pairs[0]
    for found_mean, found_std in pairs[1:]:
        is_new = np.isnan(mean)
        mean, std = np.where(is_new, found_mean, mean), np.where(is_new, found_std, std)
    return mean, std


def given_statistics(case: Case) -> InflowStatistics:
    """Return the statistics given in the table of seasonal statistics; 0 without a row."""
    hydro_ids = tuple(hydro.id for hydro in case.system.hydros)
    table = StageTable(
        INFLOW_STATS_FILE, case.scenarios.inflow_seasonal_stats, "hydro_id", ("mean_m3s", "std_m3s"), hydro_ids
    )
    stage_ids = tuple(stage.id for stage in case.horizon.stages)
    values = table.over(stage_ids, (0.0, 0.0))
    is_given = np.array([~np.isnan(table.at(stage_id)[0]) for stage_id in stage_ids]).reshape(len(stage_ids), -1)
    others = [stage_id for stage_id in table.stage_ids if stage_id not in set(stage_ids)]
    before = {stage_id: (table.at(stage_id)[0], table.at(stage_id)[1]) for stage_id in others}
    return InflowStatistics(stage_ids, hydro_ids, values[:, 0], values[:, 1], is_given, before, {})


def estimated_statistics(case: Case, sample: SampleStatistics, cycle: SeasonCycle) -> InflowStatistics:
    """Return statistics of the seasons from history, by stage."""
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


# Residuals of a model on history, in standardised form.


def lag_residuals(statistics: SampleStatistics, coefficients: Floats, season: int) -> Floats:
    """Return residuals (year, hydro) of a season's standardised values for `coefficients` (lag, hydro).

    A yearly component, which is small, is not removed, as in the correlations of cobre-python.
    """
    residual: Floats = statistics.standardised[:, season]
    for lag, coefficient in enumerate(coefficients, start=1):
        residual = np.where(coefficient == 0.0, residual, residual - coefficient * statistics.lagged(season, lag))
    return residual


def residual_deviations(
    statistics: SampleStatistics, annual: SampleStatistics | None, coefficients: Floats, annual_coefficient: Floats
) -> Floats:
    """Return root mean squares (season, hydro) of residuals without the yearly component; 1 without memory.

    Coefficients are (season, lag, hydro) and (season, hydro).
    """
    scale = np.ones(annual_coefficient.shape)
    for season in range(len(scale)):
        residual = lag_residuals(statistics, coefficients[season], season)
        if annual is not None:
            residual = residual - annual_coefficient[season] * annual.standardised[:, season]
        is_known = ~np.isnan(residual)
        mean = ordered_sum(np.where(is_known, residual * residual, 0.0)) / np.maximum(is_known.sum(axis=0), 1)
        is_white = ~(coefficients[season] != 0.0).any(axis=0) & (annual_coefficient[season] == 0.0)
        scale[season] = np.where(is_white, 1.0, np.sqrt(mean))
    return scale

"""Statistics of a grid of observations: means, deviations and correlations, season by season.

Sums run over years in order, all hydros at a time, so the bits do not depend on a library's way of adding.
"""

import numpy as np

from cobre.core.arrays import Floats, Indices
from cobre.records import dataclass
from cobre.stochastic.par.observation_kinds import ObservationKinds, observation_kinds
from cobre.stochastic.par.observations import Observations


@dataclass(frozen=True, slots=True)
class SampleStatistics:
    """By season and hydro: how many observations, their mean and population deviation, and standardised values."""

    count: Indices
    mean: Floats
    std: Floats
    standardised: Floats
    kinds: ObservationKinds

    def correlation(self, season: int, lag: int) -> Floats:
        """Per hydro, of a season and the one `lag` seasons before it, over the years that have both; within [-1, 1]."""
        return mean_product(self.standardised[:, season], self.lagged(season, lag))

    def lagged(self, season: int, lag: int) -> Floats:
        """Standardised values (year, hydro) of the season `lag` seasons before, beside the year of `season`."""
        seasons = self.standardised.shape[1]
        return shift_years(self.standardised[:, (season - lag) % seasons], (lag - season + seasons - 1) // seasons)


def sample_statistics(observations: Observations) -> SampleStatistics:
    """Statistics of history; a season that hardly varies has deviation 0 and standardised values 0."""
    return statistics_of(observations.values, observation_kinds(observations.values))


def statistics_of(values: Floats, kinds: ObservationKinds) -> SampleStatistics:
    """Statistics of a grid (year, season, hydro) whose kinds are known."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    divisor = np.maximum(count, 1)
    mean = np.where(kinds.is_level, kinds.level_m3s, ordered_sum(np.where(known, values, 0.0)) / divisor)
    deviation = np.where(known & ~kinds.is_level, values - mean, 0.0)
    std = np.sqrt(ordered_sum(deviation * deviation) / divisor)
    standardised = np.where(known, deviation / np.where(std > 0.0, std, 1.0), np.nan)
    return SampleStatistics(count, mean, std, standardised, kinds)


def ordered_sum(values: Floats) -> Floats:
    """The sum over the first axis, in its order."""
    total = np.zeros(values.shape[1:])
    for value in values:
        total = total + value
    return total


def mean_product(left: Floats, right: Floats) -> Floats:
    """The mean over years of the products where both are known; 0 where none is."""
    both = ~(np.isnan(left) | np.isnan(right))
    total = ordered_sum(np.where(both, left * right, 0.0))
    result: Floats = np.clip(total / np.maximum(both.sum(axis=0), 1), -1.0, 1.0)
    return result


def shift_years(values: Floats, years: int) -> Floats:
    """Values of `years` before, beside each year; NaN where the grid begins."""
    if years <= 0:
        return values
    shifted = np.full_like(values, np.nan)
    shifted[years:] = values[:-years]
    return shifted

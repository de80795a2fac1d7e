"""What a model leaves unexplained of history, in standardised form."""

import numpy as np

from cobre.core.arrays import Floats
from cobre.stochastic.par.sample_statistics import SampleStatistics, ordered_sum


def lag_residuals(statistics: SampleStatistics, coefficients: Floats, season: int) -> Floats:
    """What the lags, with `coefficients` (lag, hydro), leave of the standardised values (year, hydro) of a season.

    A yearly component is left in. So it is in the correlations of the Rust program; it is a small part.
    """
    left: Floats = statistics.standardised[:, season]
    for lag, coefficient in enumerate(coefficients, start=1):
        left = np.where(coefficient == 0.0, left, left - coefficient * statistics.lagged(season, lag))
    return left


def residual_deviations(
    statistics: SampleStatistics, annual: SampleStatistics | None, coefficients: Floats, annual_coefficient: Floats
) -> Floats:
    """Root mean squares (season, hydro) of residuals without the yearly component; 1 where nothing is remembered.

    Coefficients are (season, lag, hydro) and (season, hydro).
    """
    found = np.ones(annual_coefficient.shape)
    for season in range(len(found)):
        left = lag_residuals(statistics, coefficients[season], season)
        if annual is not None:
            left = left - annual_coefficient[season] * annual.standardised[:, season]
        known = ~np.isnan(left)
        mean = ordered_sum(np.where(known, left * left, 0.0)) / np.maximum(known.sum(axis=0), 1)
        is_white = ~(coefficients[season] != 0.0).any(axis=0) & (annual_coefficient[season] == 0.0)
        found[season] = np.where(is_white, 1.0, np.sqrt(mean))
    return found

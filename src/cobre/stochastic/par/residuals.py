"""How much of an inflow's variance its past does not explain.

The ratio is not read from a file but follows from the model: with standardised coefficients phi the process keeps its
standard deviation when r^2 = 1 - sum_i sum_j phi_i phi_j rho(t-i, t-j), where rho are the model's own correlations in
the steady state of its yearly cycle. Seasons without a model count as white noise.
"""

import numpy as np

from cobre.core.arrays import Floats

_TOLERANCE = 1e-15
_MAX_YEARS = 2000
# Correlations of a process that is stationary may pass 1 on the way to their limit, but not by that much.
_DIVERGED = 1e6


def periodic_correlations(coefficients: Floats) -> Floats:
    """Correlations (season, lag, hydro) of a cyclic model with standardised `coefficients` (season, order, hydro).

    `result[m, k]` belongs to seasons m and m - k; lag 0 is 1. Found by running the cycle until nothing changes. NaN for
    hydros whose process grows without bound.
    """
    seasons, order, hydros = coefficients.shape
    correlations = np.zeros((seasons, order + 1, hydros))
    correlations[:, 0] = 1.0
    has_diverged = np.zeros(hydros, dtype=np.bool_)
    for _ in range(_MAX_YEARS):
        before = correlations.copy()
        for season in range(seasons):
            _advance(correlations, coefficients, season)
        if np.abs(correlations - before).max(initial=0.0) <= _TOLERANCE:
            break
        is_diverging = (np.abs(correlations) > _DIVERGED).any(axis=(0, 1))
        if is_diverging.any():
            has_diverged |= is_diverging
            coefficients = np.where(has_diverged, 0.0, coefficients)
    result: Floats = np.where(has_diverged, np.nan, correlations)
    return result


def _advance(correlations: Floats, coefficients: Floats, season: int) -> None:
    """Correlations of one season with those before it, from those that are known."""
    for lag in range(1, correlations.shape[1]):
        total = np.zeros(correlations.shape[2])
        for i in range(1, correlations.shape[1]):
            total = total + coefficients[season, i - 1] * between(correlations, season, i, lag)
        correlations[season, lag] = total


def between(correlations: Floats, season: int, i: int, j: int) -> Floats:
    """The correlation of the seasons i and j before a season."""
    nearer = (season - min(i, j)) % correlations.shape[0]
    found: Floats = correlations[nearer, abs(i - j)]
    return found


def residual_variance(correlations: Floats, season: int, coefficients: Floats) -> Floats:
    """r^2 per hydro of a stage in `season` with standardised `coefficients` (order, hydro)."""
    explained = np.zeros(coefficients.shape[1])
    for i in range(coefficients.shape[0]):
        for j in range(coefficients.shape[0]):
            product = coefficients[i] * coefficients[j]
            explained = explained + product * between(correlations, season, i + 1, j + 1)
    return 1.0 - explained

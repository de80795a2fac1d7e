"""How much of an inflow's variance its past does not explain.

The ratio is not read from a file but follows from the model: with standardised coefficients phi the process keeps its
standard deviation when r^2 = 1 - sum_i sum_j phi_i phi_j rho(t-i, t-j), where rho are the model's own correlations in
the steady state of its yearly cycle. Seasons without a model count as white noise.
"""

import numpy as np

from cobre import _native
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
    correlations = np.empty((seasons, order + 1, hydros))
    has_diverged = np.zeros(hydros, dtype=np.bool_)
    given = np.ascontiguousarray(coefficients)
    _native.periodic_correlations(given, _TOLERANCE, _MAX_YEARS, _DIVERGED, correlations, has_diverged)
    result: Floats = np.where(has_diverged, np.nan, correlations)
    return result


def residual_variance(correlations: Floats, season: int, coefficients: Floats) -> Floats:
    """r^2 per hydro of a stage in `season` with standardised `coefficients` (order, hydro)."""
    explained = np.empty(coefficients.shape[1])
    given = np.ascontiguousarray(coefficients)
    _native.explained_variance(np.ascontiguousarray(correlations), season, given, explained)
    return 1.0 - explained

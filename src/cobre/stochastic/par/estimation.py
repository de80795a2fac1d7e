"""Fitting PAR(p) and PAR(p)-A models to history. The arithmetic is native code (`native/par_fit.cpp`).

Orders come from the periodic partial autocorrelations: the largest one that is significant at 95 %. A model whose
first coefficient is negative is dropped, and one through which past inflow would work with a negative sign (the
contributions of Maceira and Damazio) is fitted again with a smaller order.

With a yearly component the mean of the last year stands beside the lags in the Yule-Walker equations, and partial
correlations are taken given it. Then at least one lag is kept. When a negative first coefficient drops the lags, the
yearly coefficient stays as it was fitted beside them in the first fit of a season, and is fitted alone in a later one.
A season before which only one year is known is white noise.
This matches the Rust implementation, whose results we reproduce.
"""

import numpy as np

from cobre._native import fit_autoregressions
from cobre.core.arrays import Floats, Indices
from cobre.core.confidence import NORMAL_QUANTILE_95
from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class PeriodicSample:
    """What fitting needs of all hydros.

    correlation: (season, lag, hydro), of a season and the one `lag` before it. std, count: (season, hydro).
    annual: as `correlation`, of the season `lag` before and the mean of the year before the season; None for PAR(p).
    annual_std: (season, hydro), of that mean.
    """

    correlation: Floats
    std: Floats
    count: Floats | Indices
    annual: Floats | None = None
    annual_std: Floats | None = None


@dataclass(frozen=True, slots=True)
class Fits:
    """Standardised coefficients: (season, lag, hydro), nearest lag first, and (season, hydro) of the last year's mean.

    There are as many lags as the largest order; 0 beyond a season's own.
    """

    coefficients: Floats
    yearly: Floats


def fit_hydros(sample: PeriodicSample, max_order: int, max_magnitude: float | None = None) -> Fits:
    """The models of all seasons and hydros.

    In each round the largest order allowed to a season with a negative contribution goes down by one, in all such
    seasons of a hydro at once: the contributions of one depend on the orders of the others. A model with a coefficient
    beyond `max_magnitude` becomes white noise.
    """
    correlation = _doubles(sample.correlation)
    seasons, _, hydros = correlation.shape
    coefficients, yearly = np.zeros((seasons, max_order, hydros)), np.zeros((seasons, hydros))
    order = fit_autoregressions(
        correlation,
        correlation if sample.annual is None else _doubles(sample.annual),
        sample.annual is not None,
        _doubles(sample.std),
        _doubles(sample.count),
        _doubles(sample.std if sample.annual_std is None else sample.annual_std),
        max_order,
        np.inf if max_magnitude is None else max_magnitude,
        NORMAL_QUANTILE_95,
        coefficients,
        yearly,
    )
    return Fits(np.ascontiguousarray(coefficients[:, :order]), yearly)


def _doubles(values: Floats | Indices) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float64)

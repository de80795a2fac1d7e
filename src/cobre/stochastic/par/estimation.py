"""Fitting PAR(p) and PAR(p)-A models to history, one hydro at a time.

Orders come from the periodic partial autocorrelations: the largest one that is significant at 95 %. A model whose
first coefficient is negative is dropped, and one through which past inflow would work with a negative sign (the
contributions of Maceira and Damazio) is fitted again with a smaller order.

With a yearly component the mean of the last year stands beside the lags in the Yule-Walker equations, and partial
correlations are taken given it. Then at least one lag is kept. When a negative first coefficient drops the lags, the
yearly coefficient stays as it was fitted beside them in the first fit of a season, and is fitted alone in a later one.
A season before which only one year is known is white noise.
This matches the Rust implementation, whose results we reproduce.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cobre.core.confidence import NORMAL_QUANTILE_95
from cobre.stochastic.par.linear_solve import solve

# The correlation of a season (any integer, counted in cycles) with the one a number of seasons before it.
PeriodicCorrelation = Callable[[int, int], float]


@dataclass(frozen=True, slots=True)
class SeasonFit:
    """Standardised coefficients of one season, nearest lag first, and that of the last year's mean."""

    coefficients: tuple[float, ...] = ()
    annual_coefficient: float = 0.0


WHITE = SeasonFit()


@dataclass(frozen=True, slots=True)
class HydroSample:
    """What fitting needs of one hydro, by season. `annual(m, k)`: of season m - k and the mean of the year before m."""

    correlation: PeriodicCorrelation
    std: Sequence[float]
    count: Sequence[int]
    annual: PeriodicCorrelation | None = None
    annual_std: Sequence[float] | None = None

    @property
    def seasons(self) -> int:
        """The number of seasons in a cycle."""
        return len(self.std)


def fit_hydro(sample: HydroSample, max_order: int, max_magnitude: float | None = None) -> list[SeasonFit]:
    """The models of all seasons of a hydro.

    In each round the largest order allowed to a season with a negative contribution goes down by one, in all such
    seasons at once: the contributions of one depend on the orders of the others.
    """
    limits = [max_order] * sample.seasons
    fits = [_fit_season(sample, season, max_order, max_magnitude) for season in range(sample.seasons)]
    while failing := [season for season in range(sample.seasons) if _has_negative(sample, fits, season)]:
        for season in failing:
            limits[season] -= 1
            if limits[season] < len(fits[season].coefficients):
                fit = _fit_season(sample, season, limits[season], max_magnitude)
                fits[season] = fit if fit.coefficients else _without_lags(sample, season, fit)
    return fits


def _without_lags(sample: HydroSample, season: int, fit: SeasonFit) -> SeasonFit:
    """The last year alone, where `fit` has a coefficient for it."""
    alone = yule_walker(sample, season, 0) if fit.annual_coefficient != 0.0 else None
    return fit if not alone else SeasonFit((), alone[0])


def _has_negative(sample: HydroSample, fits: Sequence[SeasonFit], season: int) -> bool:
    return min(contributions(sample, fits, season), default=0.0) < 0.0


def _fit_season(sample: HydroSample, season: int, max_order: int, max_magnitude: float | None) -> SeasonFit:
    if sample.std[season] == 0.0 or sample.count[season] == 0:
        return WHITE
    if sample.annual_std is not None and sample.annual_std[season] == 0.0:
        return WHITE  # one year before this season is known: two points would give a correlation of exactly 1
    order = select_order(sample, season, max_order)
    solution = yule_walker(sample, season, order)
    if solution is None:  # such as a lag that follows the last year exactly: the last year alone
        alone = None if sample.annual is None else yule_walker(sample, season, 0)
        return WHITE if alone is None else SeasonFit((), alone[0])
    phi, annual = tuple(solution[:order]), solution[order] if sample.annual is not None else 0.0
    if max_magnitude is not None and any(abs(value) > max_magnitude for value in phi):
        return WHITE
    return SeasonFit(() if phi and phi[0] < 0.0 else phi, annual)


def select_order(sample: HydroSample, season: int, max_order: int) -> int:
    """The largest order whose partial correlation is significant."""
    threshold = NORMAL_QUANTILE_95 / math.sqrt(sample.count[season])
    for order in range(max_order, 0, -1):
        if abs(partial_correlation(sample, season, order)) > threshold:
            return order
    return min(1, max_order) if sample.annual is not None else 0


def partial_correlation(sample: HydroSample, season: int, order: int) -> float:
    """Partial correlation of a season and the one `order` before it, given those between (and the last year).

    Without a yearly component it is taken as the last coefficient of the model of that order. 0 when undetermined.
    """
    matrix, right = _equations(sample, season, order)
    if sample.annual is None:
        solution = solve(matrix, right)
        return 0.0 if solution is None else solution[-1]
    whole = [[1.0, *right], *([value, *row] for value, row in zip(right, matrix, strict=True))]
    first, last = _inverse_column(whole, 0), _inverse_column(whole, order)
    if first is None or last is None or first[0] * last[order] <= 0.0:
        return 0.0
    return -first[order] / math.sqrt(first[0] * last[order])


def _inverse_column(matrix: Sequence[Sequence[float]], column: int) -> list[float] | None:
    return solve(matrix, [1.0 if row == column else 0.0 for row in range(len(matrix))])


def yule_walker(sample: HydroSample, season: int, order: int) -> list[float] | None:
    """Coefficients of an order (then the yearly one) that reproduce the correlations; None when undetermined."""
    return solve(*_equations(sample, season, order))


def _equations(sample: HydroSample, season: int, order: int) -> tuple[list[list[float]], list[float]]:
    matrix = [
        [sample.correlation(season - 1 - min(i, j), abs(i - j)) if i != j else 1.0 for j in range(order)]
        for i in range(order)
    ]
    right = [sample.correlation(season, i + 1) for i in range(order)]
    if sample.annual is not None:
        beside = [sample.annual(season, i + 1) for i in range(order)]
        matrix = [[*row, value] for row, value in zip(matrix, beside, strict=True)] + [[*beside, 1.0]]
        right.append(sample.annual(season, 0))
    return matrix, right


def contributions(sample: HydroSample, fits: Sequence[SeasonFit], season: int) -> list[float]:
    """How much an inflow 1, 2, ... seasons back adds to that of `season`, through all seasons in between."""
    order = len(fits[season].coefficients)
    row = [_in_units(sample, fits, season, lag) for lag in range(1, order + 1)]
    found = row[:1]
    for back in range(1, order):
        longer = [*row[1:], 0.0]
        row = [row[0] * _in_units(sample, fits, season - back, j + 1) + longer[j] for j in range(order)]
        found.append(row[0])
    return found


def _in_units(sample: HydroSample, fits: Sequence[SeasonFit], season: int, lag: int) -> float:
    """A coefficient in m3/s per m3/s; 0 beyond the order."""
    at = season % sample.seasons
    earlier = sample.std[(season - lag) % sample.seasons]
    if lag > len(fits[at].coefficients) or earlier == 0.0:
        return 0.0
    return fits[at].coefficients[lag - 1] * sample.std[at] / earlier

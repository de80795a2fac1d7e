"""How much of an inflow's variance its past does not explain.

The ratio is not read from a file but follows from the model: with standardised coefficients phi the process keeps its
standard deviation when r^2 = 1 - sum_i sum_j phi_i phi_j rho(t-i, t-j), where rho are the model's own correlations in
the steady state of its yearly cycle. Seasons without a model count as white noise.
"""

import numpy as np

from cobre import _native
from cobre._native import add_outer_products, fewest_pairs, pair_products
from cobre.core.arrays import Flags, Floats
from cobre.core.case import Case, Correlation, CorrelationGroup
from cobre.stochastic.correlation import DEFAULT_PROFILE
from cobre.stochastic.par.seasons import SeasonCycle
from cobre.stochastic.par.statistics import SampleStatistics, lag_residuals, ordered_sum
from cobre.stochastic.par.terms import AutoregressiveTerms

_TOLERANCE = 1e-15
_MAX_YEARS = 2000

# Correlations of a process that is stationary may pass 1 on the way to their limit, but not by that much.
_DIVERGED = 1e6


def periodic_correlations(coefficients: Floats) -> Floats:
    """Return correlations (season, lag, hydro) of a cyclic model with `coefficients` (season, order, hydro).

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
    """Return r^2 per hydro of a stage in `season` with standardised `coefficients` (order, hydro)."""
    explained = np.empty(coefficients.shape[1])
    given = np.ascontiguousarray(coefficients)
    _native.explained_variance(np.ascontiguousarray(correlations), season, given, explained)
    return 1.0 - explained


# Correlation between plants of the residuals that their inflow models leave of history.
#
# Every season has a matrix of its own, unless it has few years: then the residuals of all seasons make one for it.

# Years that each pair of plants must have in common for a season to have a matrix of its own.
_MIN_PAIRS = 30


def residual_correlation(
    case: Case, statistics: SampleStatistics, terms: AutoregressiveTerms, cycle: SeasonCycle
) -> Correlation:
    """Return a profile for each season of the study with enough years, scheduled for its stages, and one for others."""
    entities = tuple(("inflow", hydro.id) for hydro in case.system.hydros)
    residuals = _residuals_by_season(statistics, terms, cycle)
    of_study = sorted(set(cycle.stage_positions))
    own = [position for position in of_study if fewest_pairs(~np.isnan(residuals[position])) >= _MIN_PAIRS]
    matrices = {_profile_name(cycle, position): _correlation_matrix(residuals[position]) for position in own}
    if len(own) < len(of_study):
        matrices[DEFAULT_PROFILE] = _correlation_matrix(_pooled(residuals))
    profiles = {name: (CorrelationGroup("history", entities, matrix),) for name, matrix in matrices.items()}
    schedule = {
        stage.id: _profile_name(cycle, position) if position in own else DEFAULT_PROFILE
        for stage, position in zip(case.horizon.stages, cycle.stage_positions, strict=True)
    }
    return Correlation(profiles, schedule)


def _profile_name(cycle: SeasonCycle, position: int) -> str:
    return f"season_{cycle.seasons[position].id:02d}"


def _residuals_by_season(
    statistics: SampleStatistics, terms: AutoregressiveTerms, cycle: SeasonCycle
) -> dict[int, Floats]:
    """Return residuals (year, hydro) by position in the cycle; seasons without terms are white noise."""
    hydros = statistics.mean.shape[1]
    coefficients = dict.fromkeys(range(cycle.length), np.zeros((0, hydros)))
    coefficients |= {position: row.coefficients for position, row in terms.by_season.items()}
    for stage in reversed(range(len(terms.stages))):
        coefficients[cycle.stage_positions[stage]] = terms.stages[stage].coefficients
    return {position: lag_residuals(statistics, coefficients[position], position) for position in range(cycle.length)}


def _pooled(residuals: dict[int, Floats]) -> Floats:
    """Return residuals of all seasons in order of time."""
    by_year = np.stack([residuals[position] for position in sorted(residuals)], axis=1)
    return by_year.reshape(-1, by_year.shape[2])


def _correlation_matrix(residuals: Floats) -> Floats:
    """Return correlations of all pairs of hydros, each over the times that both have."""
    is_known = ~np.isnan(residuals)
    values = np.where(is_known, residuals, 0.0)
    if is_known.all():
        return _normalised(*_whole_products(values))
    return _normalised(*_pairwise_products(values, is_known))


def _whole_products(values: Floats) -> tuple[Floats, Floats]:
    """Return products and squares of deviations from the mean, for every pair."""
    hydros = values.shape[1]
    deviations = values - ordered_sum(values) / max(len(values), 1)
    products = np.zeros((hydros, hydros))
    add_outer_products(deviations, np.ones(len(deviations)), products)
    return products, np.repeat(np.diagonal(products)[:, None], hydros, axis=1)


def _pairwise_products(values: Floats, known: Flags) -> tuple[Floats, Floats]:
    """Return products and squares of deviations where values are missing: each pair has means of its own."""
    hydros = values.shape[1]
    products, squares = np.empty((hydros, hydros)), np.empty((hydros, hydros))
    # Squares in row i, column j: of what i deviates from its mean over the times it shares with j.
    pair_products(np.ascontiguousarray(values), np.ascontiguousarray(known), products, squares)
    return products, squares


def _normalised(products: Floats, squares: Floats) -> Floats:
    scale = np.sqrt(squares * squares.T)
    usable = scale > 0.0
    matrix = np.clip(np.where(usable, products / np.where(usable, scale, 1.0), 0.0), -1.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    return matrix

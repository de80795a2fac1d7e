"""Fitting PAR(p) and PAR(p)-A models to history. The arithmetic is native code (`native/par_fit.cpp`).

Orders come from the periodic partial autocorrelations: the largest one that is significant at 95 %. A model whose
first coefficient is negative is dropped, and one through which past inflow would work with a negative sign (the
contributions of Maceira and Damazio) is fitted again with a smaller order.

With a yearly component the mean of the last year is added to the lags in the Yule-Walker equations, and partial
correlations are taken given it. Then at least one lag is kept. When a negative first coefficient drops the lags, the
yearly coefficient of the first fit of a season is kept, and is fitted without lags in a later one.
A season before which only one year is known is white noise.
The rules are those of cobre-python (docs/adr/0025-estimates-are-those-of-cobre-python.md).
"""

from collections.abc import Iterator

import numpy as np

from cobre._native import fit_autoregressions
from cobre.core.arrays import MONTHS_PER_YEAR, Floats, Indices
from cobre.core.case import Case
from cobre.core.confidence import NORMAL_QUANTILE_95
from cobre.core.config import EstimationConfig
from cobre.core.file_names import CONFIG_FILE, HISTORY_FILE
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError, NoiseNote
from cobre.stochastic.par.observations import Observations, ordinary
from cobre.stochastic.par.seasons import SeasonCycle
from cobre.stochastic.par.statistics import (
    SampleStatistics,
    ordered_sum,
    residual_deviations,
    sample_statistics,
    statistics_of,
)
from cobre.stochastic.par.terms import AutoregressiveTerms, TermsRow


@dataclass(frozen=True, slots=True)
class PeriodicSample:
    """Statistics of all hydros, from which models are fitted.

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
    """Return the models of all seasons and hydros.

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


# Models of all hydros from history: statistics and coefficients.

_MIN_OBSERVATIONS = 2


def checked_statistics(case: Case, observations: Observations, cycle: SeasonCycle) -> SampleStatistics:
    """Return statistics of history, which must cover every season of the study for every hydro."""
    statistics = sample_statistics(observations)
    for position in sorted(set(cycle.stage_positions)):
        for index, hydro in enumerate(case.system.hydros):
            if statistics.count[position, index] < _MIN_OBSERVATIONS:
                raise NoiseModelError(
                    HISTORY_FILE,
                    f"hydro_id {hydro.id} ({hydro.name})",
                    f"season {cycle.seasons[position].id} is covered in {statistics.count[position, index]} years; at "
                    f"least {_MIN_OBSERVATIONS} are needed to estimate from history",
                )
    return statistics


def fitted_terms(
    observations: Observations, statistics: SampleStatistics, cycle: SeasonCycle, config: EstimationConfig
) -> AutoregressiveTerms:
    """Fit PAR(p), or PAR(p)-A if the configuration selects orders by `pacf_annual`."""
    seasons, hydros = statistics.mean.shape
    annual = annual_statistics(observations) if config.order_selection == "pacf_annual" else None
    fits = fit_hydros(_sample(statistics, annual, config.max_order), config.max_order, config.max_coefficient_magnitude)
    coefficients, yearly = fits.coefficients, fits.yearly
    zeros = np.zeros((seasons, hydros))
    mean, std = (zeros, zeros) if annual is None else (annual.mean, annual.std)
    ratios = residual_deviations(statistics, annual, coefficients, yearly)
    rows = [TermsRow(*of_season) for of_season in zip(coefficients, yearly, std, ratios, mean, strict=True)]
    return AutoregressiveTerms(tuple(rows[at] for at in cycle.stage_positions), {}, dict(enumerate(rows)), HISTORY_FILE)


def annual_statistics(observations: Observations) -> SampleStatistics:
    """Return statistics of the mean of the last twelve months, aligned with the season that follows, where known."""
    years, seasons, hydros = observations.values.shape
    if seasons != MONTHS_PER_YEAR:
        raise NoiseModelError(CONFIG_FILE, "estimation, order_selection", "pacf_annual needs twelve monthly seasons")
    flat = observations.values.reshape(years * seasons, hydros)
    means = np.full_like(flat, np.nan)
    following = flat[MONTHS_PER_YEAR:]
    past = np.zeros_like(following)
    for month in range(MONTHS_PER_YEAR):  # oldest first: the order of the sum is that of its bits
        past += flat[month : month + len(following)]
    means[MONTHS_PER_YEAR:] = np.where(np.isnan(following), np.nan, past / MONTHS_PER_YEAR)
    grid = means.reshape(years, seasons, hydros)
    return statistics_of(grid, ordinary(grid))


def _sample(statistics: SampleStatistics, annual: SampleStatistics | None, max_order: int) -> PeriodicSample:
    seasons, lags = range(len(statistics.mean)), range(max_order + 1)
    plain = np.array([[statistics.correlation(season, lag) for lag in lags] for season in seasons])
    if annual is None:
        return PeriodicSample(plain, statistics.std, statistics.count)
    yearly = np.array([[_with_last_year(statistics, annual, season, lag) for lag in lags] for season in seasons])
    return PeriodicSample(plain, statistics.std, statistics.count, yearly, annual.std)


def _with_last_year(statistics: SampleStatistics, annual: SampleStatistics, season: int, lag: int) -> Floats:
    """Return the correlation of a lag and the last year's mean, divided by all observations of the lagged season.

    The first year has no year before it, and counts all the same. Seasons differ in their number of observations where
    history ends within a year.
    """
    lagged, yearly = statistics.lagged(season, lag), annual.standardised[:, season]
    is_known = ~(np.isnan(lagged) | np.isnan(yearly))
    total = ordered_sum(np.where(is_known, lagged * yearly, 0.0))
    observed = statistics.count[(season - lag) % len(statistics.count)]
    result: Floats = np.clip(total / np.maximum(observed, 1), -1.0, 1.0)
    return result


def notes_on_kinds(case: Case, statistics: SampleStatistics, cycle: SeasonCycle) -> Iterator[NoiseNote]:
    """Yield a note for each plant on seasons whose observations are mostly one number, or often negative."""
    kinds = statistics.kinds
    texts = (
        (
            "constant-observations",
            kinds.is_saturated,
            "more than half of the observations are the same whole number: the inflow counts as constant",
        ),
        ("negative-observations", kinds.is_negative, "more than a tenth of the observations are negative"),
    )
    of_study = sorted(set(cycle.stage_positions))
    for index, hydro in enumerate(case.system.hydros):
        for kind, is_so, text in texts:
            season_ids = [str(cycle.seasons[position].id) for position in of_study if is_so[position, index]]
            if season_ids:
                yield NoiseNote(
                    kind,
                    HISTORY_FILE,
                    f"hydro_id {hydro.id} ({hydro.name})",
                    f"{'season' if len(season_ids) == 1 else 'seasons'} {', '.join(season_ids)}: {text}",
                )


def notes_on_short_history(
    case: Case, observations: Observations, statistics: SampleStatistics, cycle: SeasonCycle
) -> Iterator[NoiseNote]:
    """Yield a note for each plant on seasons that are white noise because years before them are missing."""
    if case.config.estimation.order_selection != "pacf_annual":
        return
    is_short = (annual_statistics(observations).std == 0.0) & (statistics.std > 0.0)
    for index, hydro in enumerate(case.system.hydros):
        season_ids = [
            str(cycle.seasons[position].id)
            for position in sorted(set(cycle.stage_positions))
            if is_short[position, index]
        ]
        if season_ids:
            yield NoiseNote(
                "inflows-without-memory",
                HISTORY_FILE,
                f"hydro_id {hydro.id} ({hydro.name})",
                f"{'season' if len(season_ids) == 1 else 'seasons'} {', '.join(season_ids)}: the mean of the year "
                "before is known only once, so that the inflow is white noise, without memory (give a longer history, "
                "or set estimation.order_selection to pacf)",
            )
